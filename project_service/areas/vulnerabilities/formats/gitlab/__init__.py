"""Reports in GitLab's format: validation, older forms, and mapping to findings."""
