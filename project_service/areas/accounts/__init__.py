"""Users, personal access tokens and browser sessions."""
