"""Tests of OAuth tokens."""
