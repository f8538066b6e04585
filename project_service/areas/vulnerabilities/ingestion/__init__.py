"""Ingestion of security reports: from an upload to stored findings of a pipeline."""
