"""Namespaces as the API lists them: personal ones and groups together."""
