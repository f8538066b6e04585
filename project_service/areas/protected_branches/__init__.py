"""Protected branches: who may push to which branches of a repository."""
