"""Rules: which events are told to which targets (notifications reference, section 7)."""
