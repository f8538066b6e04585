"""Paths of projects and groups."""
