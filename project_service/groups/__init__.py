"""Groups and subgroups."""
