"""Releases, uploads of source maps by clients of Sentry, and the resolution of minified frames."""
