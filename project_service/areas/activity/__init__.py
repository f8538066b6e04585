"""The feeds of activity events."""
