"""Events of an error: list, search, text and page."""
