"""Texts as HTML: Markdown, allowed HTML, links, highlighted code."""
