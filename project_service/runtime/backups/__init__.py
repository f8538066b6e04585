"""Backup and restore of an instance: tables, files and repositories in one file, for both databases."""
