"""Error tracking: the collector of events of Sentry SDKs, errors, and the settings of projects."""
