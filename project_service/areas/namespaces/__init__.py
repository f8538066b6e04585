"""Personal namespaces and groups, listed together."""
