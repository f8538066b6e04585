"""The collector of events of Sentry SDKs: from a request to a stored event."""
