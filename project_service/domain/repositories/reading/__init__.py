"""Read repositories: commits, trees, files, diffs, blame and archives. Every reading has limits of time and size."""
