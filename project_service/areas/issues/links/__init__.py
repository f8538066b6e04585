"""Links between related issues."""
