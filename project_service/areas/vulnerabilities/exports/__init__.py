"""Exports of tracked findings as files: CSV, SARIF and CycloneDX."""
