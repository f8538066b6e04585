"""Stack traces of events, as they are grouped and shown."""
