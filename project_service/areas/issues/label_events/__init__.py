"""Label events of issues."""
