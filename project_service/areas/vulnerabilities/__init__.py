"""Vulnerability findings: reports of scanners, what is found in them, and what people decided about it."""
