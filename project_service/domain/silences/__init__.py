"""Silences: for a time nobody is told of the alerts of a project that match (silences reference)."""
