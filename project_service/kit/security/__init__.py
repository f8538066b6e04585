"""Encryption at rest, tokens, passwords, guarded outgoing requests."""
