"""HTTP requests to URLs that users chose, kept away from networks that users must not reach."""
