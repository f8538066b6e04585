"""A full disk with the data and temporary files: reads are answered, writes are refused with 507."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter

import pytest
import requests

from tests.contract.service import TOKEN, Service, children_of, wait_for

DISK_SIZE = "48m"
BODY_BYTES = 3 << 20
READS = {
    "/-/liveness": 200,
    "/-/readiness": 200,
    "/-/metrics": 200,
    "/api/v4/projects": 200,
    "/users/sign_in": 200,
}


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A small file system of its own."""
    directory = tmp_path_factory.mktemp("disk")
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", str(directory)]
    if os.getuid() != 0 or mount is None or subprocess.run([mount, *options], check=False).returncode != 0:
        pytest.skip("a file system can be mounted by root only")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


@pytest.fixture(scope="module")
def service(disk, tmp_path_factory):
    (disk / "tmp").mkdir()
    made = Service(
        tmp_path_factory.mktemp("service"),
        PROJECT_SERVICE_DATA_DIR=str(disk / "data"),
        TMPDIR=str(disk / "tmp"),
    )
    made.start()
    yield made
    made.stop()


def fill(path):
    """Write to a file until the disk is full."""
    with path.open("wb", buffering=0) as file:
        block = bytes(1 << 20)
        while block:
            try:
                file.write(block)
            except OSError:
                block = block[: len(block) // 2]


def post(service, path, **options):
    return requests.post(f"{service.url}{path}", headers={"PRIVATE-TOKEN": TOKEN}, timeout=30, **options)


def test_the_first_reads_work_on_a_full_disk(service, disk):
    fill(disk / "ballast")
    reads = {path: {service.get(path) for _ in range(6)} for path in READS}
    (disk / "ballast").unlink()

    assert reads == {path: {status} for path, status in READS.items()}


def test_a_full_disk_refuses_writes_and_answers_reads(service, disk):
    web = wait_for(lambda: found if len(found := children_of(service.child("web"))) == 2 else None)
    issue = {"title": "Till", "description": "d" * BODY_BYTES}
    assert post(service, "/api/v4/projects", json={"name": "shop"}).status_code == 201
    fill(disk / "ballast")

    reads = {path: {service.get(path) for _ in range(6)} for path in READS}
    writes = Counter(
        post(
            service, "/api/v4/projects/root%2Fshop/variables", json={"key": f"K{number}", "value": "v" * 9000}
        ).status_code
        for number in range(30)
    )
    large = [post(service, "/api/v4/projects/root%2Fshop/issues", json=issue).status_code for _ in range(3)]
    upload = post(
        service,
        "/api/v4/projects/import",
        data={"path": "copy"},
        files={"file": ("a.tar.gz", bytes(12 << 20), "application/gzip")},
    ).status_code

    assert reads == {path: {status} for path, status in READS.items()}
    assert (set(writes) <= {201, 507}, writes[507] > 0, large, upload) == (True, True, [507] * 3, 507)
    assert children_of(service.child("web")) == web

    (disk / "ballast").unlink()
    assert wait_for(lambda: service.get("/-/readiness") == 200, 60)
    assert post(service, "/api/v4/projects", json={"name": "later"}).status_code == 201
