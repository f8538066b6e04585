"""Rules: which events are told to which targets (notifications and on-call reference, section 7)."""
