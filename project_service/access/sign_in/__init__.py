"""Who signs in: passwords, credentials of git, new accounts."""
