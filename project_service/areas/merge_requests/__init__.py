"""Merge requests that archives brought, and the notes under them: to be read."""
