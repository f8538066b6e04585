"""Hostile archives: bundles of repositories, and the memory that archives take."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pygit2
import pytest
from sqlalchemy import func, select

from project_service.domain.projects import Project
from project_service.domain.repositories import git
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from tests.support.archives import make_archive, make_issue
from tests.support.git_repositories import bundle_of, make_bundle, repository_folder
from tests.support.sample_data import MAX
from tests.transfers.archive.support import MIB, error_of


@pytest.mark.parametrize("kind", ["project", "project.wiki", "project.design"])
@pytest.mark.parametrize(
    "bundle",
    [
        b"",
        b"#!/bin/sh\ntouch /tmp/owned\n",
        b"# v2 git bundle\n" + b"0" * 40 + b" refs/heads/main\n\nPACK" + bytes(100),
        b"# v2 git bundle\n-" + b"1" * 40 + b" missing\n" + b"2" * 40 + b" refs/heads/main\n\n",
        b"# v9 git bundle\n\n",
        b"ext::sh -c whoami",
    ],
)
def test_broken_bundles_fail_the_import(kind, bundle, bring, app):
    state = bring(make_archive({}, files={f"{kind}.bundle": bundle}))

    assert error_of(state).startswith("Invalid bundle file")
    assert storage().names(f"projects/{state['id']}") == []
    left = (app.config["SETTINGS"].data_dir / "repositories").glob(f"*{state['id']}-*")
    assert [path.name for path in left if path.is_dir()] == []


HEAD = b"# v2 git bundle\n" + b"1" * 40 + b" HEAD\n"


@pytest.mark.parametrize(
    "bundle",
    [
        *(HEAD[:size] for size in (15, 16, 20, 36, 56, 57, 60, len(HEAD) - 1, len(HEAD))),
        HEAD + b"\n",
        HEAD + b"\nPAC",
        HEAD + b"xx",
        b"# v2 git bundle\nxx",
        b"# v2 git bundle\n\nPACK",
        b"# v2 git bundle\n-" + b"1" * 40 + b" missing\n\nPACK",
    ],
)
def test_a_bundle_without_header_is_refused(bundle, bring):
    kinds = ["project", "project.wiki", "project.design"]
    told = [
        error_of(bring(make_archive({}, files={f"{kind}.bundle": bundle}), path=f"p{at}"))
        for at, kind in enumerate(kinds)
    ]

    assert told == ["Invalid bundle file"] * 3
    assert "Invalid repository bundle for snippet" in error_of(bring(snippet_with(bundle), path="snippet"))


def test_a_bundle_whose_objects_are_damaged_fails_the_import(bring, tmp_path):
    bundle = bytearray(make_bundle(tmp_path / "git", "v1"))
    bundle[-30] ^= 0xFF

    assert error_of(bring(make_archive({}, files={"project.bundle": bytes(bundle)}))).startswith("Invalid bundle file")


@pytest.mark.parametrize("damage", ["an object is missing", "a branch is a file"])
def test_an_incomplete_bundle_fails_the_import(damage, bring, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder, files={"readme.md": b"Read me"})
    blob = pygit2.Repository(folder).revparse_single("main:readme.md").id
    if damage == "a branch is a file":
        (folder / "refs/heads/readme").write_text(str(blob))
    bundle = bundle_of(folder, without=str(blob) if damage == "an object is missing" else "")

    assert error_of(bring(make_archive({}, files={"project.bundle": bundle}))).startswith("Invalid bundle file")


def test_a_ref_with_the_name_of_a_namespace_fails_the_import(bring, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder)
    (folder / "refs/tags").rmdir()
    (folder / "refs/tags").write_bytes((folder / "refs/heads/main").read_bytes())

    state = bring(make_archive({}, files={"project.bundle": bundle_of(folder)}))

    assert error_of(state) == "Invalid bundle file: funny refname tags"


def packed(kind, size, content, before=b""):
    """An object in the format of packs."""
    head, size = [(kind << 4) | (size & 15)], size >> 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + before + zlib.compress(content)


def number_of(size):
    """A number in the format of deltas."""
    return bytes(((size >> shift) & 127) | (128 if size >> (shift + 7) else 0) for shift in (0, 7, 14, 21))


def bundle_that_grows(copies):
    """A bundle with a tag of a file of several copies of 12 MB, as a delta of a few bytes."""
    base = bytes(12_000_000)
    numbers = [hashlib.sha1(b"blob %d\0" % (len(base) * count) + base * count) for count in (1, copies)]
    delta = number_of(len(base)) + number_of(len(base) * copies) + (b"\xf0" + len(base).to_bytes(3, "little")) * copies
    objects = packed(3, len(base), base) + packed(7, len(delta), delta, numbers[0].digest())
    pack = b"PACK" + (2).to_bytes(4, "big") + (2).to_bytes(4, "big") + objects
    refs = f"{numbers[1].hexdigest()} refs/tags/big\n\n".encode()
    return b"# v2 git bundle\n" + refs + pack + hashlib.sha1(pack).digest()


@pytest.mark.parametrize(("memory", "fails"), [(git.MAX_MEMORY_BYTES, False), (64 * MIB, True)])
def test_a_bundle_that_needs_too_much_memory_fails_the_import(memory, fails, bring, monkeypatch):
    monkeypatch.setattr(git, "MAX_MEMORY_BYTES", memory)

    state = bring(make_archive({}, files={"project.bundle": bundle_that_grows(8)}))

    assert (error_of(state) == "Invalid bundle file") if fails else (state["import_status"] == "finished")


def test_git_that_runs_too_long_fails_the_import(bring, monkeypatch, tmp_path):
    monkeypatch.setattr(git, "MAX_SECONDS", 0)

    assert error_of(bring(make_archive({}, files={"project.bundle": make_bundle(tmp_path / "git")})))


def snippet_with(bundle, **fields):
    """An archive with a snippet and its repository."""
    row = {"title": "S", "content": "c", "created_at": "2019-11-25T19:43:39.123Z", "updated_at": "2020-01-02T03:04:05Z"}
    said = f"S{fields.get('description') or ''}2019-11-25 19:43:39 UTC2020-01-02 03:04:05 UTC"
    name = f"snippets/{hashlib.sha256(said.encode()).hexdigest()}.bundle"
    return make_archive({"snippets": [row | fields]}, files={name: bundle})


@pytest.mark.parametrize("description", [None, "Tells"])
def test_an_invalid_snippet_repository_fails_the_import(description, bring):
    told = error_of(bring(snippet_with(b"rubbish", description=description)))

    assert re.fullmatch(r"Invalid repository bundle for snippet with id \d+", told)


def test_snippets_keep_their_repositories_and_orphans_are_passed_through(bring, tmp_path):
    whole = bring(snippet_with(make_bundle(tmp_path / "git")))
    nobodys = bring(make_archive({}, files={f"snippets/{'c' * 64}.bundle": b"rubbish"}), path="other")

    assert [whole["import_status"], nobodys["import_status"]] == ["finished", "finished"]


@pytest.mark.parametrize("kind", ["project", "project.wiki"])
def test_a_repository_with_sha_256_objects_fails_the_import(kind, bring, tmp_path):
    bundle = make_bundle(tmp_path / "git", object_format="sha256")

    told = error_of(bring(make_archive({}, files={f"{kind}.bundle": bundle})))

    assert told == "Invalid bundle file: only repositories whose objects are named by SHA-1 can be read"
    assert db.session.scalar(select(func.count()).select_from(Task)) == 0


def test_a_bundle_of_version_3_is_read(bring, tmp_path):
    make_bundle(tmp_path / "git")
    words = ["bundle", "create", "--quiet", "--version=3", "third.bundle", "--all"]
    subprocess.run(["git", *words], cwd=tmp_path / "git", check=True)
    bundle = (tmp_path / "git" / "third.bundle").read_bytes()

    assert b"@object-format=sha1\n" in bundle
    assert bring(make_archive({}, files={"project.bundle": bundle}))["import_status"] == "finished"


def test_unusual_but_valid_objects_are_kept(bring, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder, files={"readme.md": b"Read me"})
    opened = pygit2.Repository(folder)
    # no blank before the address and no date, as old programs wrote them: git fsck calls that an error
    people = "author Ada<ada@example.org>\ncommitter Ada <ada@example.org> 1 +0000\n"
    tree = opened.revparse_single("main^{tree}").id
    odd = opened.odb.write(pygit2.enums.ObjectType.COMMIT, f"tree {tree}\n{people}\nodd\n".encode())
    (folder / "refs/heads/main").write_text(str(odd))

    state = bring(make_archive({}, files={"project.bundle": bundle_of(folder)}))

    with repository_folder(db.session.get(Project, state["id"])) as restored:
        main = pygit2.Repository(restored).revparse_single("main").id
    assert (state["import_status"], main) == ("finished", odd)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param("row(b'{\"title\":\"' + b'x' * (100 << 20) + b'\"}\\n')", marks=pytest.mark.nightly),
        pytest.param("row(b'{}\\n' * 1_000_000)", marks=pytest.mark.nightly),
        pytest.param(
            "legacy(b'{\"issues\":[' + b','.join([b'{\"title\":\"' + b'x' * 1000 + b'\"}'] * 100_000) + b']}')",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            "legacy(b'{' + b','.join(b'\"a%d\":[]' % n for n in range(300_000)) + b'}')", marks=pytest.mark.nightly
        ),
        "members(60_000)",
        "globals_(100)",
        pytest.param("row(b'{\"odd\":[' + b'[],' * 5_000_000 + b'[]]}')", marks=pytest.mark.nightly),
        pytest.param(
            "row(b'{\"odd\":[' + b','.join(b'{\"a%d\":%d}' % (n, n) for n in range(1_000_000)) + b']}')",
            marks=pytest.mark.nightly,
        ),
        pytest.param("legacy(b'{\"issues\":[{\"odd\":[' + b'[],' * 5_000_000 + b'[]]}]}')", marks=pytest.mark.nightly),
        pytest.param("legacy(b'{\"odd\":{\"odd\":[' + b'[],' * 5_000_000 + b'[]]}}')", marks=pytest.mark.nightly),
        "project(b'{\"odd\":[' + b'[],' * 5_000_000 + b'[]]}')",
        "lfs(500_000)",
        "piled(150)",
        "sparse(b'2000000\\n' + b'1000\\n' * 4_000_000)",
        "sections(150_000)",
        "links(45_000, 4_000)",
        "links(200, 1_000_000)",
        "left_out(60)",
        pytest.param("row(b'[' * (100 << 20))", marks=pytest.mark.nightly),
        pytest.param("row(b'{}\\n' * 5_000_000)", marks=pytest.mark.nightly),
        pytest.param(
            "legacy(b'{\"issues\":[{\"title\":\"' + b'x' * (100 << 20) + b'\"}]}')", marks=pytest.mark.nightly
        ),
        pytest.param("legacy(b'{\"description\":\"' + b'x' * (100 << 20) + b'\"}')", marks=pytest.mark.nightly),
        pytest.param(
            "legacy(b'{' + b','.join(b'\"a%d\":\"%s\"' % (n, b'x' * 100) for n in range(800_000)) + b'}')",
            marks=pytest.mark.nightly,
        ),
        pytest.param("members(300_000)", marks=pytest.mark.nightly),
    ],
)
def test_memory_stays_flat_for_any_archive(make, memory_of, tmp_path):
    """The growth of a process that unpacks and reads an archive, over one that has only imported the modules."""
    archive = tmp_path / "archive.tar.gz"
    memory_of("make", archive, make)

    assert memory_of("read", archive, tmp_path / "unpacked") < 130 << 10


@pytest.fixture(scope="module")
def memory_of(tmp_path_factory):
    """Runs an action of ``READER`` in a fork of a process that has imported the modules; its growth at most, in KiB."""
    script = tmp_path_factory.mktemp("memory") / "read.py"
    script.write_text(textwrap.dedent(READER))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script], env=environment, stdin=pipe, stdout=pipe, text=True) as reader:

        def run(*words):
            print(json.dumps([str(word) for word in words]), file=reader.stdin, flush=True)
            return int(reader.stdout.readline())

        yield run
        reader.stdin.close()


READER = """
    import gzip, io, json, os, sys, tarfile
    from pathlib import Path

    from project_service.transfers.archive import contents, extraction, reader
    from project_service.transfers.archive.legacy import convert_legacy
    from project_service.transfers.importing import importer
    from project_service.transfers.importing.mapping.parsing import parse_row

    def add(tar, name, content=b"", **fields):
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for field, value in fields.items():
            setattr(member, field, value)
        tar.addfile(member, io.BytesIO(content))

    def row(content):
        yield "tree/project.json", b"{}", {}
        yield "tree/project/issues.ndjson", content, {}

    def project(content):
        yield "tree/project.json", content, {}

    def legacy(content):
        yield "project.json", content, {}

    def lfs(count):
        yield "tree/project.json", b"{}", {}
        yield "lfs-objects.json", b"{" + b",".join(b'"%064x":[%d]' % (n, n) for n in range(count)) + b"}", {}

    def members(count):
        for number in range(count):
            yield f"some/{number}", b"", {}

    def globals_(count):
        for number in range(count):
            pax = {f"key{number}": "x" * 1_000_000}
            buffer = tarfile.TarInfo.create_pax_global_header(pax)
            yield None, buffer, {}

    def piled(count):
        header = tarfile.TarInfo._create_pax_generic_header({"path": "x" * 1_000_000}, b"x", "utf-8")
        for _ in range(count):
            yield None, header, {}
        yield "some/member", b"", {}

    def sparse(content):
        yield "some/member", content, {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}}

    def sections(count):
        member = tarfile.TarInfo("some/member")
        member.type = b"S"
        header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
        header[482:483] = b"1"
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\\0 " % sum(header)
        block = b"00000012345 " * 42
        yield None, bytes(header), {}
        for number in range(count):
            yield None, block + (b"1" if number < count - 1 else b"").ljust(8, b"\\0"), {}

    def links(count, length):
        for number in range(count):
            yield f"{number:06}" + "a" * length, b"", {"type": tarfile.SYMTYPE, "linkname": "x"}

    def left_out(count):
        for number in range(count):
            yield f"uploads/\U0001f600{number:06}" + "a" * 1_000_000, b"", {}

    def make(place, what):
        with gzip.open(place, "wb", 1) as file, tarfile.open(fileobj=file, mode="w|") as tar:
            add(tar, "VERSION", b"0.2.4")
            for name, content, fields in eval(what):
                if name is None:
                    tar.fileobj.write(content)
                else:
                    add(tar, name, content, **fields)

    def read(place, folder):
        try:
            found = extraction.unpack(Path(place), Path(folder))
            found.check()
            convert_legacy(found)
            reader.project_of(found)
            reader.count_rows(found)
            for relation in reader.relations_of(found):
                for _, raw in reader.rows_of(found, relation):
                    parse_row(raw)
            reader.lfs_types_of(found)
        except contents.BadArchive:
            pass

    def peak():
        # getrusage starts with the memory of the parent process
        return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

    for line in sys.stdin:
        action, *words = json.loads(line)
        pid = os.fork()
        if not pid:
            before = peak()
            {"make": make, "read": read}[action](*words)
            print(peak() - before, flush=True)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            print(1 << 40, flush=True)  # a fork that failed has printed nothing
"""


def test_a_line_of_a_hundred_megabytes_is_one_refused_row(bring, as_):
    content = json.dumps(make_issue(1)).encode() + b'\n{"title":"' + b"x" * (100 * MIB) + b'"}\n'
    content += json.dumps(make_issue(2)).encode() + b"\n"

    state = bring(make_archive({}, files={"tree/project/issues.ndjson": content}))

    [failed] = state["failed_relations"]
    assert (state["import_status"], failed["line_number"]) == ("finished", 2)
    assert failed["exception_message"] == "The line is longer than 50 MB"
    assert {issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json} == {1, 2}


def test_a_line_with_too_many_values_is_one_refused_row(bring, as_):
    content = json.dumps(make_issue(1)).encode() + b'\n{"odd":[' + b"[]," * 1_000_000 + b"[]]}\n"
    content += json.dumps(make_issue(2)).encode() + b"\n"

    state = bring(make_archive({}, files={"tree/project/issues.ndjson": content}))

    assert [(one["exception_message"], one["line_number"]) for one in state["failed_relations"]] == [
        ("The line has too many values", 2)
    ]
    assert {issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json} == {1, 2}


def test_a_long_text_full_of_brackets_is_accepted(bring, as_):
    text = "[{,}]" * 180_000 + '\\"[,]'

    state = bring(make_archive({"issues": [make_issue(1, odd=[text, text, text])]}))

    assert (state["import_status"], state["failed_relations"]) == ("finished", [])


def test_a_project_with_too_many_values_fails(bring):
    files = {"tree/project.json": b'{"odd":[' + b"[]," * 1_000_000 + b"[]]}"}

    assert error_of(bring(make_archive({}, files=files))) == "Incorrect JSON format"


@pytest.mark.nightly  # its parser is given smaller ones in every run
def test_a_row_of_a_hundred_megabytes_in_the_old_format_fails(bring):
    content = b'{"issues":[{"title":"' + b"x" * (100 * MIB) + b'"}]}'

    assert error_of(bring(make_archive(files={"project.json": content}))) == "Incorrect JSON format"
