"""Back-up and restoration of a whole instance: tables, files and repositories in one file for both databases."""
