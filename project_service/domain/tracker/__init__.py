"""The issue tracker: tables, finders and rules of issues, merge requests, milestones, labels, notes; no routes."""
