"""Tables and finders of the issue tracker: issues, merge requests, milestones, labels, notes, snippets; no routes."""
