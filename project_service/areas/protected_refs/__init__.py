"""Protected tags and protected branches: API, and sections of the settings page of repositories."""
