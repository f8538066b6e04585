"""A small self-hosted server that speaks the GitLab REST API v4."""

import sys

if "rich" not in sys.modules:
    # structlog loads rich where it finds it, to paint tracebacks for terminals: ours are JSON, and it takes 6 MiB
    sys.modules["rich"] = None  # type: ignore[assignment]  # which says that there is none
    import structlog  # noqa: F401

    del sys.modules["rich"]
