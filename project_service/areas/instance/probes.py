"""Health checks and metrics, without authentication by token or session."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import orjson
from flask import Blueprint, Response, current_app, request
from sqlalchemy import text

from project_service.kit import jobs, metrics
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.clients.proxies import WAS_FORWARDED
from project_service.kit.http.errors import DISK_FULL_ERRNOS, Forbidden
from project_service.kit.jobs import rq_worker
from project_service.kit.security import encryption, tokens
from project_service.kit.storage import storage

probes = Blueprint("probes", __name__)
DISK_FULL = "the disk is full: reads are answered, writes are refused with 507"
PARTS_THAT_WRITE = ("storage", "worker")


@probes.get("/-/liveness")
def show_liveness() -> Response:
    """Respond if the process runs."""
    return _json({"status": "ok"})


@probes.get("/-/health")
def show_health() -> Response:
    """Respond if the process runs, with the text of GitLab."""
    return Response("GitLab OK", mimetype="text/plain")


@probes.get("/-/readiness")
def show_readiness() -> Response:
    """Check all dependencies; 503 with the ones that fail.

    A service on a full disk is ready, since it answers reads; the check of the storage says that writes are refused.
    Its workers cannot report to the embedded Redis then.
    """
    problems, is_ready = readiness()
    parts = {f"{name}_check": [_check_result(problems.get(name))] for name in CHECKS}
    return _json({"status": "ok" if is_ready else "failed", **parts}, 200 if is_ready else 503)


def readiness() -> tuple[dict[str, str], bool]:
    """Return the dependencies that fail, each with its error, and whether the service is ready nevertheless."""
    problems = {name: problem for name, check in CHECKS.items() if (problem := _error_of(check))}
    is_full = DISK_FULL in problems.values()
    return problems, all(is_full and name in PARTS_THAT_WRITE for name in problems)


@probes.get("/-/metrics")
def show_metrics() -> Response:
    """Return Prometheus metrics, to local clients without a proxy or with the metrics token."""
    if not _may_read_metrics():
        raise Forbidden
    with unit_of_work(write=False):
        queues, values = jobs.counts(), metrics.gauges()
    return Response(metrics.text(queues, jobs.outcomes(), values), mimetype="text/plain; version=0.0.4")


def _check_database() -> None:
    with unit_of_work(write=False):
        db.session.execute(text("SELECT 1"))


def _check_secrets() -> None:
    encryption.prove_key()


def _check_redis() -> None:
    jobs.connect().ping()


def _check_storage() -> None:
    storage().check()


def _check_worker() -> None:
    if not rq_worker.has_live_worker(jobs.connect()):
        raise LookupError("no worker has been seen recently")


CHECKS: dict[str, Callable[[], None]] = {
    "database": _check_database,
    "secrets": _check_secrets,
    "redis": _check_redis,
    "storage": _check_storage,
    "worker": _check_worker,
}


def _error_of(check: Callable[[], None]) -> str | None:
    try:
        check()
    except Exception as error:  # noqa: BLE001  # any error is a failed check
        if isinstance(error, OSError) and error.errno in DISK_FULL_ERRNOS:
            return DISK_FULL
        return type(error).__name__ if not isinstance(error, LookupError) else str(error)
    return None


def _check_result(problem: str | None) -> dict[str, str]:
    if problem is None:
        return {"status": "ok"}
    return {"status": "ok" if problem == DISK_FULL else "failed", "message": problem}


def _may_read_metrics() -> bool:
    token: str | None = current_app.config["METRICS_TOKEN"]
    sent = request.headers.get("Authorization", "").removeprefix("Bearer ") or request.args.get("token", "")
    if token and sent and tokens.same(token, sent):
        return True
    try:
        direct = ipaddress.ip_address(request.remote_addr or "").is_loopback
    except ValueError:
        direct = False
    return direct and not request.environ.get(WAS_FORWARDED)


def _json(value: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, mimetype="application/json")
