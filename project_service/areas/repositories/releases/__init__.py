"""Releases and their links."""
