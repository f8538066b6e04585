"""The worker: ``python worker.py`` is ``project-service worker``."""

import sys

from project_service.cli.main import main

if __name__ == "__main__":
    main(["worker", *sys.argv[1:]])
