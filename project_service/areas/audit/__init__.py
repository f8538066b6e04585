"""Audit events: the API, the page with filters, CSV and removal after the retention time."""
