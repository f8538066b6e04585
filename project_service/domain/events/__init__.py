"""What happened: one table, and one door into it."""
