"""Findings as users see and change them: lists, pages, feedback, dependencies."""
