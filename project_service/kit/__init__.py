"""Generic parts, which know nothing about projects: database, HTTP, jobs, security, storage, mail, logs."""
