"""Access tokens of users, projects and groups."""
