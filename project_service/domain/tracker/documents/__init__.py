"""Designs, snippets and wiki pages."""
