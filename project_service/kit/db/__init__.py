"""Database: models base, session, locking, pagination, bulk load."""
