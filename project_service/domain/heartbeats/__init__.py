"""Heartbeats: calls that a program makes regularly, whose absence opens an alert (heartbeats reference)."""
