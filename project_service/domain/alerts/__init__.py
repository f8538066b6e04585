"""Alerts as other areas make and change them."""
