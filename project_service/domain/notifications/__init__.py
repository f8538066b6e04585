"""Events that people and channels are notified of, and the tables that decide whether anybody is."""
