"""A user's own settings and profile page."""
