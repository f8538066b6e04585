"""Projects themselves."""
