"""Repositories: git over HTTP, the rules of pushes, and what a push changes."""
