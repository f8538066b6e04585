"""A small self-hosted server that speaks the GitLab REST API v4."""
