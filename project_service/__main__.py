"""``python -m project_service`` is ``project-service``."""

from project_service.cli.main import main

main(prog_name="project-service")
