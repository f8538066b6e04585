"""Settings of error tracking and client keys."""
