"""The routes of Sentry that its command line and plug-ins call."""
