"""Search across projects, in groups and in projects."""
