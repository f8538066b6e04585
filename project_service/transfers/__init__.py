"""Project export and import: an archive carries a bit of every area."""
