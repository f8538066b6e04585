"""Import of an archive: relations to rows."""
