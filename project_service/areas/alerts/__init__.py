"""Alerts: receivers for monitoring tools, their configuration, the list, and incidents made from alerts."""
