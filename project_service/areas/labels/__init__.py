"""Labels of projects: to be read."""
