"""Discussions of issues: comments with their replies."""
