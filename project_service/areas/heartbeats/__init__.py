"""Heartbeats of projects: API, pages, the receiver of their calls, and the check for missing ones."""
