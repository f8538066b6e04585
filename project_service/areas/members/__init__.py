"""Members of groups and projects."""
