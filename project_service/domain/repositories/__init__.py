"""Git repositories of projects: bundles in the storage and bare repositories restored from them."""
