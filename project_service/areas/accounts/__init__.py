"""People and their ways in: users, personal access tokens, browser sessions."""
