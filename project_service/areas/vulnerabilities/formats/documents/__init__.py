"""JSON documents of any size: unpacking, parsing, and lists that are read entry by entry."""
