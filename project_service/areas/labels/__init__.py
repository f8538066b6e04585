"""Labels of projects, read-only."""
