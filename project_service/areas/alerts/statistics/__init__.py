"""How many alerts there were and how fast they were acknowledged and resolved."""
