"""Branches and tags: lists, creation and deletion by the rules of pushes."""
