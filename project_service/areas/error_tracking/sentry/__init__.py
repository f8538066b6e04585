"""Errors that a server of Sentry stores."""
