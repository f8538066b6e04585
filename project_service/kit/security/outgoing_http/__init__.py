"""HTTP requests to URLs that users chose, without access to internal networks."""
