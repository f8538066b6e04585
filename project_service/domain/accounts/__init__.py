"""Users and what they sign in with."""
