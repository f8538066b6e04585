"""Writing files: commits by the API, by the rules of a push."""
