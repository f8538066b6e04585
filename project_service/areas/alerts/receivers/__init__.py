"""Receivers of alerts: payloads, their mapping and grouping, and ingestion."""
