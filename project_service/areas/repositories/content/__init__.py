"""Content of repositories by API and pages: files, commits, comparisons, archives."""
