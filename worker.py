"""The worker: ``python worker.py`` is ``project-service worker``."""

from project_service.cli import worker

if __name__ == "__main__":
    worker()
