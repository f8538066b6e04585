"""The work on a project: issues, merge requests, milestones, labels, notes, snippets; tables and finders, no routes."""
