"""Imported merge requests and their notes, read-only."""
