"""Git repositories of projects: refs as rows, packs in the storage, local bare repositories (views) for reading."""
