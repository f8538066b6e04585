"""Errors and their events as users see and change them."""
