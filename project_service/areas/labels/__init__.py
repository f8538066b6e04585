"""Labels of projects, with those of groups."""
