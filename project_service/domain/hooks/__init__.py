"""Events of web hooks and the parts of their payloads."""
