"""Feeds of activity events."""
