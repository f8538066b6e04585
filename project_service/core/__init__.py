"""The nouns all areas share: users, tokens, namespaces, projects, memberships; tables and finders, no routes."""
