"""Pictures of users, groups and projects."""
