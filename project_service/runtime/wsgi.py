"""The WSGI application, made from the environment."""

from project_service.kit import collecting
from project_service.runtime.startup import Preparation

with collecting.spared():
    from project_service.factory import create_app

    app = create_app()
Preparation(app.config["SETTINGS"].runtime_dir).wait()  # ``serve`` upgrades the database meanwhile
