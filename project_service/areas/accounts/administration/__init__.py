"""Users: queries, changes, and their pages in the administration area."""
