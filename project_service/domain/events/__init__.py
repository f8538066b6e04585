"""Activity events: the table, and the functions that record and change events."""
