"""Tracking of findings: which finding of a report is which of the reports before, and its state on each branch."""
