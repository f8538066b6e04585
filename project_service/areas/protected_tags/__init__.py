"""Protected tags: who may create which tags of a repository."""
