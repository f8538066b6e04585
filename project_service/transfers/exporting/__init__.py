"""Export of a project: rows to relations."""
