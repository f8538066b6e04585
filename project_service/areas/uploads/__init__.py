"""Files that users attach to texts and releases."""
