"""Audit events: who did what that matters for security or administration. Rows are added and never changed."""
