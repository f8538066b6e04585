"""The instance itself: version, application settings, feature flags, probes, metrics, the API's own document."""
