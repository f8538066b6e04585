"""Environments of projects."""
