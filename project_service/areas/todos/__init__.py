"""To-do items of users."""
