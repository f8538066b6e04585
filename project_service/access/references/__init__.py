"""What areas register for others: targets of to-do items, scopes of searches, references in texts."""
