"""Milestones of projects."""
