"""Silences: for a time nobody is notified of the alerts of a project that match (silences reference)."""
