"""Links in messages that acknowledge alerts without a session (acknowledging reference)."""
