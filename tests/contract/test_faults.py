"""Killed processes are restarted, no accepted request is lost, and no process or file is left over."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import gitlab
import pytest

from tests.contract import service as services
from tests.contract.service import TOKEN, Service, children_of, is_running, state_of_process, tree_of, wait_for

RESTART_SECONDS = 10.0  # or twice the measured start on a busy machine
STOP_SECONDS = 10.0


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service for this module only, since its processes are killed."""
    running = Service(tmp_path_factory.mktemp("faults"), is_measured=True)
    running.patience = max(RESTART_SECONDS, 2 * running.start())
    yield running
    running.stop()


@pytest.fixture(scope="module")
def gl(service):
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        yield client


def kill(service, role):
    """Kill a process of the service as soon as it exists."""
    return services.kill(wait_for(lambda: service.child(role), service.patience))


def is_complete(service, role, killed):
    """Whether another process replaced the killed one and all parts are ready."""
    return service.child(role) not in (0, killed) and service.get("/-/readiness") == 200


ROLES = ["web", "worker", "remote worker", "remote worker 3", "quick worker", "scheduler", "redis"]


@pytest.mark.parametrize("role", ROLES)
def test_a_killed_process_is_restarted(role, service):
    assert wait_for(lambda: service.get("/-/readiness") == 200, service.patience)

    killed = kill(service, role)

    assert wait_for(lambda: is_complete(service, role, killed), service.patience)
    assert service.get("/api/v4/projects") == 200


@pytest.fixture(scope="module", autouse=True)
def deletion(service, gl):
    """The id of a request that deletes a project without Redis: no worker is notified, the sweep finds the task."""
    project = gl.projects.create({"name": "doomed"})
    kill(service, "redis")
    return delete(gl, project)


def delete(gl, project):
    """Request the deletion of a project; return the request id."""
    wanted = f"deletion-{project.id}"
    response = gl.http_request("delete", f"/projects/{project.id}", extra_headers={"X-Request-Id": wanted})
    assert (response.status_code, response.headers["X-Request-Id"]) == (202, wanted)
    return wanted


def is_done(service, request_id):
    """Whether the job of a request has finished, by the worker's log entry with the request id."""
    return service.lines(request_id=request_id, job="core.removal.remove_project", event="job done")


def test_a_deletion_accepted_without_a_worker_is_completed_later(service, gl, project):
    killed = kill(service, "worker")

    request_id = delete(gl, project)

    assert wait_for(lambda: is_done(service, request_id), 3 * service.patience)
    assert service.child("worker") != killed


def web_processes(service, *, without=0):
    """Return both web processes as soon as they run."""
    return wait_for(
        lambda: found if len(found := set(children_of(service.child("web"))) - {without}) == 2 else None,
        service.patience,
    )


def test_a_dying_web_process_does_not_stop_the_others(service):
    one, other = web_processes(service)

    os.kill(one, signal.SIGKILL)

    assert service.get("/api/v4/projects") == 200
    assert other in web_processes(service, without=one)


def test_a_change_by_one_web_process_applies_in_the_others_at_once(service, gl, name):
    one, other = web_processes(service)
    found = []
    for stopped in (one, other):
        os.kill(stopped, signal.SIGSTOP)  # so that the other process answers
        try:
            assert wait_for(lambda stopped=stopped: state_of_process(stopped) == "T")
            with gitlab.Gitlab(service.url, private_token=TOKEN, timeout=20) as client:
                if stopped == one:
                    client.features.set(name, True)
                    client.http_put("/application/settings", post_data={"max_import_size": 77})
                known = {feature.name: feature.state for feature in client.features.list()}
                found.append((known[name], client.settings.get().max_import_size))
        finally:
            os.kill(stopped, signal.SIGCONT)

    assert found == [("on", 77)] * 2


def test_concurrent_requests_create_a_variable_once(service, project):
    def create(_):
        with gitlab.Gitlab(service.url, private_token=TOKEN, timeout=60) as client:
            try:
                return client.projects.get(project.id, lazy=True).variables.create({"key": "A", "value": "b"}).key
            except gitlab.exceptions.GitlabCreateError as error:
                return error.response_code

    with ThreadPoolExecutor(20) as crowd:
        responses = list(crowd.map(create, range(60)))

    assert sorted(responses, key=str) == [400] * 59 + ["A"]


def test_a_killed_service_leaves_no_process_and_keeps_its_data(tmp_path, capsys, name):
    service = Service(tmp_path)
    cold = service.start()
    credentials = (tmp_path / "data" / "initial_credentials").read_text()
    first_output = (tmp_path / "serve.out").read_text()
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        client.groups.create({"name": name, "path": name})
    # Redis, the web server with its processes, and the workers' parent with its four children
    processes = wait_for(lambda: found if len(found := tree_of(service.pid)) >= 8 else None, service.patience)

    service.stop(signal.SIGKILL)
    assert wait_for(lambda: not [pid for pid in processes if is_running(pid)])

    second = service.start()
    processes = tree_of(service.pid)
    assert service.get(f"/api/v4/groups/{name}") == 200
    assert "initial_credentials" in first_output
    assert "initial_credentials" not in (tmp_path / "serve.out").read_text()
    assert not [secret for secret in (TOKEN, services.PASSWORD) if secret in credentials + first_output]
    assert (tmp_path / "data" / "initial_credentials").stat().st_mode & 0o777 == 0o600

    stop = service.stop()
    assert stop < STOP_SECONDS
    assert wait_for(lambda: not [pid for pid in processes if is_running(pid)])
    with capsys.disabled():
        print(f"\ncold start {cold:.1f} s, second start {second:.1f} s, stop {stop:.1f} s")


def test_a_data_directory_is_served_once(service):
    second = Service(service.directory / "second", PROJECT_SERVICE_DATA_DIR=str(service.directory / "data"))

    with pytest.raises(RuntimeError, match=f"is served already, by process {service.pid}"):
        second.start()


def test_a_deletion_accepted_without_redis_is_completed_later(service, deletion):
    assert wait_for(lambda: is_done(service, deletion), 4 * service.patience)


@pytest.mark.nightly
@pytest.mark.parametrize("moment", [0.4, 0.6, 0.8])
def test_web_processes_that_are_killed_amid_matching_leave_all_states(moment, service, gl, group):
    project, twin = (gl.projects.create({"name": name, "namespace_id": group.id}) for name in ("one", "two"))
    before, after = scan_of(range(9_000)), scan_of(range(2_000, 11_000))
    for one in (project, twin):
        upload(gl, one, before)
    began = time.monotonic()
    right = upload(gl, twin, after)
    seconds = time.monotonic() - began

    with ThreadPoolExecutor() as pool:
        sent = pool.submit(upload, gl, project, after)
        time.sleep(moment * seconds)
        for process in web_processes(service):
            os.kill(process, signal.SIGKILL)
        assert sent.exception() is not None
    assert wait_for(lambda: service.get("/-/readiness") == 200, service.patience)

    states = f"/projects/{project.id}/tracked_findings?per_page=1&state="
    assert [gl.http_list(states + state, iterator=True).total for state in ("detected", "resolved")] == [9_000, 0]
    assert upload(gl, project, after) == right == {**right, "new": 2_000, "known": 7_000, "resolved": 2_000}


def scan_of(numbers):
    """The report of a scanner with a finding for each number."""
    results = [
        {
            "ruleId": "R",
            "message": {"text": f"Found {number}."},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": f"{number}.py"}, "region": {"startLine": 1}}}
            ],
        }
        for number in numbers
    ]
    return json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "Scan"}}, "results": results}]})


def upload(gl, project, report):
    """Upload a report; return what is counted as new, known and gone."""
    files = {"file": ("scan.sarif", report, "application/json")}
    return gl.http_post(f"/projects/{project.id}/security_reports", files=files, timeout=300)["tracking"]
