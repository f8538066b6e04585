"""Events that people and channels are told of, and the tables that decide whether anybody is."""
