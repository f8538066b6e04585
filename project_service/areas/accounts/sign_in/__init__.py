"""Signing in: browser sessions, passwords, two-factor authentication."""
