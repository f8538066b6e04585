"""Integrations and their settings pages."""
