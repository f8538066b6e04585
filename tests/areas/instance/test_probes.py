"""Health checks and metrics."""

from __future__ import annotations

import errno

import pytest
from prometheus_client.parser import text_string_to_metric_families

from project_service.kit import jobs
from project_service.kit import metrics as known_metrics
from project_service.kit.storage import Storage
from tests.conftest import SQLITE, NoRedis, make_app

OK = [{"status": "ok"}]
METRICS_TOKEN = "a token for metrics only"
BUCKETS = {*["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "+Inf"]}


class Redis:
    """A fake Redis with the heartbeat keys of the given workers."""

    def __init__(self, *workers):
        self.workers = workers

    def ping(self):
        return True

    def scan_iter(self, match, **_options):
        return iter(self.workers)

    def hgetall(self, _key):
        return {b"done some.job": b"3"}


@pytest.fixture
def replace_redis(app, monkeypatch):
    """Replaces the unavailable Redis."""

    def replace(connection):
        monkeypatch.setitem(app.extensions, "redis", connection)

    return replace


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("address", ["/-/liveness", "/-/health"])
def test_liveness_does_not_depend_on_other_services(method, address, browser):
    response = browser.open(address, method=method)

    assert response.status_code == 200
    assert method == "HEAD" or response.text in ('{"status":"ok"}', "GitLab OK")


def test_the_service_is_ready_when_all_checks_pass(browser, replace_redis):
    replace_redis(Redis(b"project-service:worker:host-5"))

    response = browser.get("/-/readiness")

    assert response.status_code == 200
    assert response.json == {
        "status": "ok",
        "database_check": OK,
        "secrets_check": OK,
        "redis_check": OK,
        "storage_check": OK,
        "worker_check": OK,
    }


def test_the_service_is_not_ready_without_a_worker(browser, replace_redis):
    replace_redis(Redis())

    response = browser.get("/-/readiness")

    assert (response.status_code, response.json["status"]) == (503, "failed")
    assert response.json["worker_check"] == [{"status": "failed", "message": "no worker has been seen recently"}]
    assert response.json["redis_check"] == OK


def test_the_service_is_not_ready_without_redis(browser, replace_redis):
    replace_redis(NoRedis())

    response = browser.get("/-/readiness")

    assert response.status_code == 503
    assert response.json["redis_check"] == [{"status": "failed", "message": "ConnectionError"}]
    assert response.json["worker_check"] == [{"status": "failed", "message": "ConnectionError"}]
    assert (response.json["database_check"], response.json["storage_check"]) == (OK, OK)


def test_the_service_is_not_ready_without_storage(app, browser, replace_redis, monkeypatch, tmp_path):
    replace_redis(Redis(b"project-service:worker:host-5"))
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setitem(app.extensions, "storage", Storage.at(f"file://{tmp_path}/file"))

    response = browser.get("/-/readiness")

    assert response.status_code == 503
    assert response.json["storage_check"][0]["status"] == "failed"
    assert str(tmp_path) not in response.text
    assert [response.json[f"{part}_check"] for part in ("database", "redis", "worker")] == [OK] * 3


def test_the_service_is_alive_but_not_ready_without_a_database(tmp_path):
    app = make_app(SQLITE, tmp_path)
    with app.app_context():
        app.extensions["sqlalchemy"].engine.dispose()
    for file in tmp_path.glob("project-service.db*"):
        file.unlink()
    (tmp_path / "project-service.db").mkdir()

    browser = app.test_client()
    response = browser.get("/-/readiness")

    assert (response.status_code, response.json["database_check"][0]["status"]) == (503, "failed")
    assert browser.get("/-/liveness").status_code == 200


def test_probes_refuse_other_methods(browser):
    assert browser.post("/-/readiness").status_code in (400, 405)
    assert browser.delete("/-/liveness").status_code in (400, 405)


# Metrics


@pytest.fixture
def with_token(app, monkeypatch):
    monkeypatch.setitem(app.config, "METRICS_TOKEN", METRICS_TOKEN)


def metrics_status(browser, address="127.0.0.1", query="", **headers):
    return browser.get(f"/-/metrics{query}", headers=headers, environ_base={"REMOTE_ADDR": address}).status_code


def test_the_service_is_ready_on_a_full_disk(browser, replace_redis, monkeypatch):
    def fail(_storage):
        raise OSError(errno.ENOSPC, "No space left on device")

    replace_redis(Redis(b"project-service:worker:host-5"))
    monkeypatch.setattr(Storage, "check", fail)
    response = browser.get("/-/readiness")

    [storage_check] = response.json["storage_check"]
    assert (response.status_code, response.json["status"], storage_check["status"]) == (200, "ok", "ok")
    assert "writes are refused" in storage_check["message"]


def test_metrics_describe_requests_queues_and_jobs(browser, replace_redis):
    replace_redis(Redis())
    browser.get("/-/liveness")

    response = browser.get("/-/metrics")

    assert response.content_type.startswith("text/plain; version=0.0.4")
    assert 'project_service_requests_total{method="GET",route="/-/liveness",status="200"}' in response.text
    assert 'project_service_queue_depth{queue="default"} 0.0' in response.text
    assert 'project_service_jobs_total{job="some.job",outcome="done"} 3.0' in response.text


def test_every_label_of_every_metric_has_a_bounded_set_of_values(app, browser, replace_redis):
    replace_redis(Redis())
    paths = ("/api/v4/projects", "/api/v4/x{}", "/x/y{}", "/-/metrics", "/a/b{}/alerts/notify.json", "/static/x{}")
    for number, path in enumerate(paths):
        for method in (f"M{number}", "PROPFIND", "G-T", "BREW"):
            response = browser.open(path.format(number), method=method)
            assert (
                response.status_code in (401, 404, 405) if method == "PROPFIND" else response.status_code in (401, 405)
            )
    families = text_string_to_metric_families(browser.get("/-/metrics").text)
    samples = [sample for family in families for sample in family.samples]

    rules = {rule.rule for rule in app.url_map.iter_rules()}
    bounded = {
        "method": {*known_metrics.KNOWN_METHODS, "OTHER"},
        "route": rules | {"unknown", "/counted", "some"},
        "status": {str(status) for status in range(100, 600)},
        "queue": set(jobs.QUEUES),
        "outcome": {"done", "failed", "lost"},
        "job": {"some.job"},
        "le": BUCKETS,
    }
    unbounded = [
        (name, value) for sample in samples for name, value in sample.labels.items() if value not in bounded[name]
    ]
    assert (unbounded, len(samples) > 10) == ([], True)


def test_metrics_work_without_redis(browser):
    response = browser.get("/-/metrics")

    assert (response.status_code, "project_service_queue_depth" in response.text) == (200, True)


@pytest.mark.parametrize(
    ("address", "status"), [("127.0.0.1", 200), ("127.8.8.8", 200), ("::1", 200), ("10.0.0.1", 403), ("", 403)]
)
def test_metrics_are_served_to_loopback_addresses_only(address, status, browser):
    assert metrics_status(browser, address) == status


@pytest.mark.parametrize(
    "name", ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "Forwarded"]
)
def test_metrics_are_refused_through_a_local_proxy(name, browser):
    assert metrics_status(browser, "127.0.0.1", **{name: "127.0.0.1"}) == 403


def test_metrics_are_refused_through_a_trusted_proxy(tmp_path):
    app = make_app(SQLITE, tmp_path, TRUSTED_PROXIES="127.0.0.1")

    assert metrics_status(app.test_client(), "127.0.0.1", **{"X-Forwarded-For": "127.0.0.1"}) == 403
    assert metrics_status(app.test_client(), "127.0.0.1") == 200


@pytest.mark.parametrize(
    ("query", "authorization", "status"),
    [
        ("", f"Bearer {METRICS_TOKEN}", 200),
        (f"?token={METRICS_TOKEN}", "", 200),
        ("", METRICS_TOKEN[:-1], 403),
        ("", "Bearer ", 403),
        ("?token=", "", 403),
        ("?token=%FF%00", "", 403),
        ("", "Bearer ünïcödé", 403),
    ],
)
def test_metrics_are_served_to_holders_of_the_token(query, authorization, status, browser, with_token):
    headers = {"X-Forwarded-For": "10.0.0.1"} | ({"Authorization": authorization} if authorization else {})

    assert metrics_status(browser, "10.0.0.1", query, **headers) == status


def test_without_a_configured_token_no_token_is_accepted(browser):
    assert metrics_status(browser, "10.0.0.1", "?token=None", Authorization="Bearer None") == 403
