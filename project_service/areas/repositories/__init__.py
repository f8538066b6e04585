"""Repositories: git over HTTP, the rules of pushes, what a push changes, and their content by API and pages."""
