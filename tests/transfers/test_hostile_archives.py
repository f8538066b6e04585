"""Hostile archives: each is refused with a reason or read without the hostile parts, and nothing is written outside."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import time
import zlib
from contextlib import suppress
from pathlib import Path

import orjson
import pygit2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from project_service.domain.projects import Project
from project_service.domain.repositories import git
from project_service.kit import clock, exact_json
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from project_service.transfers import workdir
from project_service.transfers.archive import contents, extraction, json_stream, layout, legacy, reader
from project_service.transfers.archive.contents import BadArchive
from project_service.transfers.archive.extraction import Limits
from project_service.transfers.importing import importer
from project_service.transfers.importing.mapping import map_row
from project_service.transfers.importing.mapping.context import ImportContext, ProjectState
from project_service.transfers.importing.mapping.parsing import parse_row
from project_service.transfers.importing.refusals import RowRefused
from project_service.transfers.importing.user_mapping import UserMapping
from tests.support.archives import make_archive, make_issue, make_note, send, unpack
from tests.support.git_repositories import bundle_of, make_bundle, repository_folder
from tests.support.sample_data import ADA, MAX

MIB = 1 << 20
GOOD = {"VERSION": b"0.2.4", "tree/project.json": b"{}"}
BROKEN = "The archive is damaged or incomplete"
LINKED = "File shares hard link"
CLIMBS = "The archive has a member outside of its own directory"
TOO_BIG = "Decompressed archive size validation failed."
SECRET = "a" * 32


@pytest.fixture
def empty_storage(app):
    """The files of the storage are not rows: those of the test before are still there."""
    for name in storage().names("imports") + storage().names("projects"):
        storage().delete(name)


@pytest.fixture
def bring(empty_storage, as_, run_jobs):
    """Imports an archive; returns the state of the import."""

    def run(archive, person=MAX, **fields):
        response = send(as_(person), archive, **fields)
        assert response.status_code == 201, response.text
        run_jobs()
        return as_(person).get(f"/projects/{response.json['id']}/import").json

    return run


@pytest.fixture
def take(tmp_path):
    """Extracts an archive, checks for files outside, and returns the content."""

    def run(archive, limits=None, **more):
        place, folder = tmp_path / "archive.tar.gz", tmp_path / "work" / "unpacked"
        place.write_bytes(archive)
        outside = tmp_path / "outside"
        outside.write_text("untouched")
        try:
            return extraction.unpack(place, folder, limits, **more)
        finally:
            assert {path.name for path in tmp_path.iterdir()} <= {"archive.tar.gz", "work", "outside"}
            assert outside.read_text() == "untouched"
            written = list((tmp_path / "work").rglob("*"))
            assert all(path.is_file() and not path.is_symlink() for path in written if path != folder)
            assert all(path.parent == folder for path in written if path != folder)

    return run


def member(name, kind=tarfile.REGTYPE, target="", **fields):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def tape(*parts, form=tarfile.GNU_FORMAT):
    """A tar of members, each alone or with its content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        for part in parts:
            info, content = part if isinstance(part, tuple) else (part, b"")
            info.size = len(content) or info.size
            tar.addfile(info, io.BytesIO(content))
    return made.getvalue()


def good_with(*parts):
    """An archive that would be fine without these members."""
    files = [(member(f"./{name}"), content) for name, content in GOOD.items()]
    return gzip.compress(tape(*files, *parts), 1)


def error_of(state):
    assert state["import_status"] == "failed", state
    return state["import_error"].partition(" - ")[2]


# links, devices, names


@pytest.mark.parametrize(
    "poison",
    [
        member("./uploads", tarfile.SYMTYPE, "/etc"),
        member(f"./uploads/{SECRET}/passwd", tarfile.SYMTYPE, "/etc/passwd"),
        member(f"./uploads/{SECRET}/up", tarfile.SYMTYPE, "../../../outside"),
        member("./.hidden", tarfile.SYMTYPE, "/etc/passwd"),
        member("./odd\nname", tarfile.SYMTYPE, "/etc/passwd"),
        member("./dangling", tarfile.SYMTYPE, "nowhere"),
        member("./tree/project/issues.ndjson", tarfile.SYMTYPE, "/etc/passwd"),
        member("./project.bundle", tarfile.SYMTYPE, "/etc/passwd"),
        member("./tree/project/issues.ndjson", tarfile.FIFOTYPE),
        member("./project.bundle", tarfile.CHRTYPE, devmajor=1, devminor=5),
        member("./avatar/me.png", tarfile.BLKTYPE, devmajor=8, devminor=0),
        member("./tree/project/labels.ndjson", tarfile.CONTTYPE),
        member("./tree/project/labels.ndjson", b"Z"),
        member("./tree/project/labels.ndjson", tarfile.DIRTYPE),
    ],
)
def test_links_pipes_and_devices_are_ignored(poison, take):
    found = take(good_with(poison))

    found.check()
    assert (found.bundles, found.carried) == ({}, {})
    assert all(path.read_bytes() == b"" for path in found.relations.values())


def test_a_link_is_not_written_through(take):
    content = (member(f"./uploads/{SECRET}/outside"), b"changed")

    with pytest.raises(BadArchive, match="in a directory that is a symbolic link"):
        take(good_with(member(f"./uploads/{SECRET}", tarfile.SYMTYPE, "../../.."), content))


@pytest.mark.parametrize("name", ["VERSION", "tree/project.json"])
def test_a_link_in_place_of_a_required_file_counts_as_missing(name, take):
    files = [(member(f"./{other}"), content) for other, content in GOOD.items() if other != name]

    found = take(gzip.compress(tape(*files, member(f"./{name}", tarfile.SYMTYPE, "/etc/passwd"))))

    with pytest.raises(BadArchive):
        found.check()


@pytest.mark.parametrize("target", ["./VERSION", "/etc/passwd", "../outside", "nowhere"])
def test_hard_links_refuse_the_archive(target, take):
    with pytest.raises(BadArchive, match=LINKED):
        take(good_with(member(f"./uploads/{SECRET}/link", tarfile.LNKTYPE, target)))


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "./../outside",
        f"./uploads/{SECRET}/../../../outside",
        "./tree/project/../../../outside",
        "/../outside",
        "..",
        f"uploads/../{SECRET}/x",
    ],
)
def test_members_outside_the_archive_are_refused(name, take):
    with pytest.raises(BadArchive, match=CLIMBS):
        take(good_with((member(name), b"changed")))


def test_absolute_names_become_relative(take, tmp_path):
    found = take(good_with((member("/tree/project/labels.ndjson"), b""), (member(str(tmp_path / "outside")), b"no")))

    assert list(found.relations) == ["labels"]


@pytest.mark.parametrize(
    "name",
    ["Uploads/x", "TREE/project/issues.ndjson", "tree/project/Issues.ndjson", "version", "x/VERSION", "tree/VERSION"],
)
def test_names_similar_to_known_ones_are_ignored(name, take):
    found = take(good_with((member(name), b"poison")))

    found.check()
    assert (found.relations, found.carried) == ({}, {})


def test_file_names_are_case_sensitive(take):
    names = [f"uploads/{SECRET}/a.png", f"uploads/{SECRET}/A.png", f"uploads/{SECRET}/ä.png", f"uploads/{SECRET}/Ä.png"]

    found = take(good_with(*((member(name), name.encode()) for name in names)))

    assert {path: one.place.read_bytes().decode() for path, one in found.carried.items()} == {n: n for n in names}


def test_the_last_member_with_a_name_counts(take):
    labels = [(member("./tree/project/labels.ndjson"), b'{"title":"%d"}\n' % number) for number in range(3)]
    files = [(member(f"uploads/{SECRET}/a"), b"first, and longer"), (member(f"./uploads//{SECRET}/./a"), b"second")]

    found = take(good_with(*labels, *files))

    assert found.relations["labels"].read_bytes() == b'{"title":"2"}\n'
    [carried] = found.carried.values()
    assert (carried.place.read_bytes(), carried.size) == (b"second", 6)


@pytest.mark.parametrize("mode", [0o000, 0o4777, 0o7777, 0o400])
def test_permissions_of_members_are_ignored(mode, take):
    found = take(good_with((member("./tree/project/labels.ndjson", mode=mode, uid=0, gid=0), b"{}\n")))

    assert found.relations["labels"].stat().st_mode & 0o7000 == 0
    assert found.relations["labels"].read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    "name", ["a\nb", "a\x1b[31m", "a\x7f", "a\x9b31m", "a\u2028b", "\u202egnp.exe", "\u2067gnp.exe"]
)
def test_files_with_misleading_names_are_skipped_and_reported(name, take, bring):
    archive = good_with((member(f"./uploads/{SECRET}/{name}"), b"x"))

    [failed] = bring(archive)["failed_relations"]
    shown = f"The file is left out for its name: {f'uploads/{SECRET}/{name}'!r}"
    assert (failed["relation_name"], failed["exception_message"]) == ("uploads", shown)
    assert name not in failed["exception_message"]
    assert take(archive).carried == {}


@pytest.mark.parametrize(
    "name", ["uploads/-/system/a.png", f"uploads/{SECRET}/a/b", "avatar/" + "a" * 256, "lfs-objects/A"]
)
def test_files_in_unexpected_places_are_skipped_and_reported(name, bring):
    [failed] = bring(good_with((member(f"./{name}"), b"x")))["failed_relations"]

    assert (failed["relation_name"], len(failed["exception_message"]) <= 255) == (name.partition("/")[0], True)


def test_the_report_of_skipped_files_is_limited(take):
    found = take(good_with(*((member(f"uploads/{number}"), b"x") for number in range(200))))

    assert len(found.left_out) == 100


@pytest.mark.parametrize("name", ["uploads/" + "\U0001f600" * 4089, "uploads/" + "a/" * 99 + "x"])
def test_overlong_names_are_skipped_and_reported_shortened(name, take, bring):
    archive = good_with((member(f"./{name}"), b"x"), (member("a" * 5000), b"x"))
    found = take(archive)

    [failed] = bring(archive)["failed_relations"]
    assert (failed["relation_name"], len(failed["exception_message"]) <= 255) == ("uploads", True)
    [told] = found.left_out
    assert (name.startswith(told), len(told) <= 4096) == (True, True)


@pytest.mark.parametrize("name", ["./" * 2100 + "uploads/{}/a.png", "uploads/" + "/" * 5000 + "{}/a.png"])
def test_names_are_measured_after_normalisation(name, take):
    secret = "a" * 32

    assert [*take(good_with((member(name.format(secret)), b"x"))).carried] == [f"uploads/{secret}/a.png"]


def test_members_below_a_link_are_skipped(take):
    with pytest.raises(BadArchive):
        take(good_with(member("uploads/l", tarfile.SYMTYPE, "x"), (member("uploads/l/" + "d/" * 150 + "x"), b"x")))


@pytest.mark.parametrize("deep", ["a/" * 100_000 + "x", "a" * 200_000 + "/x", "a/" * 100 + "x"])
def test_the_search_for_parent_links_takes_linear_time(deep, take):
    link = member("a/link", tarfile.SYMTYPE, "x")
    started = time.monotonic()

    found = take(good_with(link, (member(deep), b"x"), member(deep, tarfile.SYMTYPE, "x")))

    found.check()
    assert (found.links, time.monotonic() - started < 5) == ({"a/link"}, True)


def test_an_archive_of_too_many_links_is_refused(take, monkeypatch):
    links = [member(f"{number:04}", tarfile.SYMTYPE, "x") for number in range(10)]
    monkeypatch.setattr(extraction, "MAX_LINKS_LENGTH", 40)
    take(good_with(*links, *links))

    with pytest.raises(BadArchive, match="too many members"):
        take(good_with(*links, member("a", tarfile.SYMTYPE, "x")))


@pytest.mark.both_databases
def test_removing_a_project_during_extraction_stops_the_import(empty_storage, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(workdir, "CHECK_INTERVAL_SECONDS", 0)
    real, went_on = importer._check_wanted, []

    def removed_meanwhile(import_id):
        db.session.execute(update(Project).values(deleting_since=clock.now()))
        db.session.commit()
        real(import_id)

    monkeypatch.setattr(importer, "_check_wanted", removed_meanwhile)
    monkeypatch.setattr(contents.Unpacked, "check", lambda _: went_on.append(1))
    send(as_(MAX), good_with())
    run_jobs()

    assert (went_on, db.session.scalar(select(Task.error))) == ([], None)


@pytest.mark.parametrize("blank", ["\u202f", "\u00a0", "\u200b", "\u00ad", "\u3000", "\ufe0f"])
def test_names_with_unusual_blanks_are_accepted(blank, bring, as_, run_jobs):
    name = f"uploads/{SECRET.upper()}/Screen Shot 3.15{blank}PM.png"
    state = bring(good_with((member(f"./{name}"), b"x")))
    client = as_(MAX)
    client.post(f"/projects/{state['id']}/export")
    run_jobs()

    assert state["failed_relations"] == []
    assert unpack(client.get(f"/projects/{state['id']}/export/download").data)[name] == b"x"


def test_a_name_that_is_not_utf_8_is_skipped(take):
    folder = f"uploads/{SECRET}/"
    made = gzip.decompress(good_with((member(f"{folder}Q"), b"x")))

    found = take(gzip.compress(resummed(made, f"{folder}Q".encode(), folder.encode() + b"\xff")))

    found.check()
    assert found.carried == {}


def resummed(made, old, new):
    """A tar in which the name of one member is another, its checksum right."""
    start = made.index(old)
    header = bytearray(made[start : start + 512])
    header[: len(old)] = new
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return made[:start] + bytes(header) + made[start + 512 :]


def test_a_pipe_in_an_archive_does_not_block(bring):
    assert bring(good_with(member("./tree/project/issues.ndjson", tarfile.FIFOTYPE)))["import_status"] == "finished"


# bombs


def zeros(size, name=f"uploads/{SECRET}/zeros"):
    return good_with((member(f"./{name}"), bytes(size)))


def test_an_archive_with_an_excessive_compression_ratio_is_refused(take):
    bomb = zeros(8 * MIB)

    with pytest.raises(BadArchive, match=TOO_BIG):
        take(bomb, Limits(ratio=10, ratio_from=MIB))
    take(bomb, Limits(ratio=10, ratio_from=9 * MIB))


def test_an_archive_that_is_too_large_when_extracted_is_refused(take):
    content = random.Random(1).randbytes(2 * MIB)

    with pytest.raises(BadArchive, match=TOO_BIG):
        take(good_with((member(f"./uploads/{SECRET}/x"), content)), Limits(size=MIB))


def test_skipped_members_count_towards_the_size(take):
    for name in ("unknown/file", "._junk"):
        with pytest.raises(BadArchive, match=TOO_BIG):
            take(zeros(2 * MIB, name), Limits(size=MIB))


def test_data_behind_the_tar_counts_towards_the_size(take):
    bomb = gzip.compress(gzip.decompress(make_archive({})) + bytes(8 * MIB), 9)

    with pytest.raises(BadArchive, match=TOO_BIG):
        take(bomb, Limits(size=MIB))


def test_an_archive_of_too_many_members_is_refused(take):
    members = [member(f"./{number}") for number in range(50)]

    with pytest.raises(BadArchive, match="too many members"):
        take(good_with(*members), Limits(members=20))
    take(good_with(*members), Limits(members=60))


def test_an_archive_of_too_many_relations_is_refused(take, monkeypatch):
    monkeypatch.setattr(extraction, "MAX_RELATIONS", 5)

    with pytest.raises(BadArchive, match="too many members"):
        take(good_with(*(member(f"./tree/project/r{number}.ndjson") for number in range(9))))


def test_too_many_relations_in_one_object_are_refused(bring, monkeypatch):
    monkeypatch.setattr(legacy, "MAX_RELATIONS", 5)
    whole = json.dumps({f"relation_{number}": [{"a": 1}] for number in range(7)}).encode()

    state = bring(gzip.compress(tape((member("./VERSION"), b"0.2.4"), (member("./project.json"), whole))))

    assert error_of(state) == "The archive has too many members"


@pytest.mark.both_databases
def test_a_bomb_fails_its_import_with_the_reason(bring, monkeypatch):
    monkeypatch.setattr(extraction, "Limits", lambda: Limits(size=MIB))

    assert error_of(bring(zeros(2 * MIB))) == TOO_BIG
    assert storage().names("imports") == []


def raw_header(kind, size, name=b"x", content=b""):
    """A tar header with any stated size."""
    info = tarfile.TarInfo(name.decode())
    info.type = kind
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, b"X", tarfile.GNUTYPE_LONGNAME, b"K"])
@pytest.mark.parametrize("size", [2 * MIB, 8 << 30, 1 << 62])
def test_oversized_headers_are_refused(kind, size, take):
    with pytest.raises(BadArchive):
        take(gzip.compress(raw_header(kind, size) + bytes(3 * MIB)))


def test_global_headers_are_limited(take):
    record = b"%d GNU.junk%04d=" + b"x" * 100_000 + b"\n"
    headers = b""
    for number in range(30):
        text = record % (0, number)
        text = record % (len(text) + len(str(len(text) + 5)) - 1, number)
        headers += raw_header(tarfile.XGLTYPE, len(text), content=text)

    with pytest.raises(BadArchive, match=BROKEN):
        take(gzip.compress(headers + gzip.decompress(make_archive({}))))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_endlessly_nested_headers_are_refused(kind, take):
    content = b"x\0" if kind == tarfile.GNUTYPE_LONGNAME else b"9 a=bcd\n\n"[:8]

    with pytest.raises(BadArchive, match=BROKEN):
        take(gzip.compress(raw_header(kind, len(content), content=content) * 5000))


def test_an_empty_extended_header_is_refused(take):
    digits = b"1" * 1_000_000

    with pytest.raises(BadArchive, match=BROKEN):
        take(
            gzip.compress(raw_header(tarfile.XHDTYPE, len(digits), content=digits) + gzip.decompress(make_archive({})))
        )


@pytest.mark.parametrize("name", [b"unknown", b"VERSION"])
@pytest.mark.parametrize("size", [8 << 30, 1 << 62])
def test_members_with_a_huge_size_are_refused(name, size, take):
    with pytest.raises(BadArchive):
        take(gzip.compress(raw_header(tarfile.REGTYPE, size, name) + gzip.decompress(make_archive({}))))


@pytest.mark.parametrize("how", ["--format=gnu", *(f"--sparse-version={version}" for version in ("0.0", "0.1", "1.0"))])
def test_a_sparse_file_is_skipped_and_later_members_are_read(how, take, tmp_path):
    folder = tmp_path / "work" / "archive"
    folder.mkdir(parents=True)
    (folder / "a.hidden").write_bytes((b"x" * 4096 + bytes(8192)) * 200)
    (folder / "b.VERSION").write_bytes(b"0.2.4")
    words = [
        "tar",
        "--create",
        "--sparse",
        "--hole-detection=raw",
        how,
        "--transform=s,.*[.],,",
        "a.hidden",
        "b.VERSION",
    ]
    words[4:4] = [] if how == "--format=gnu" else ["--format=pax"]
    made = subprocess.run(words, cwd=folder, check=True, capture_output=True).stdout
    shutil.rmtree(folder)

    assert take(gzip.compress(made)).texts == {"VERSION": "0.2.4"}


def test_times_of_an_incremental_tar_are_not_part_of_names(take):
    parts = []
    for name, content in (("./VERSION", b"0.2.4"), ("./tree/project.json", b"{}"), ("./some/", b"")):
        info = member(name, tarfile.REGTYPE if content else tarfile.DIRTYPE, size=len(content))
        header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
        header[345:369] = b"15300651577\0" * 2  # times of access and change
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        parts.append(bytes(header) + content + bytes(-len(content) % 512))

    found = take(gzip.compress(b"".join(parts) + bytes(1024)))

    assert (found.texts, found.project is not None) == ({"VERSION": "0.2.4"}, True)


@pytest.mark.parametrize(
    "pax",
    [
        {"size": "-1"},
        {"size": "99999999999999999999"},
        {"size": "one"},
        {"mtime": "inf"},
        {"mtime": "nan"},
        {"uid": "x"},
        {"path": "\0"},
        {"path": "../outside"},
        {"path": "/etc/passwd"},
        {"linkpath": "x"},
        {"GNU.sparse.map": "a,b"},
        {"GNU.sparse.map": "0,1", "GNU.sparse.size": "x"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"},
        {"GNU.sparse.size": "99999999999", "GNU.sparse.numblocks": "1"},
        {"hdrcharset": "BINARY", "path": "ä"},
        {"hdrcharset": "nonsense"},
    ],
)
def test_inconsistent_extended_headers_are_handled(pax, take):
    lying = member("./tree/project/labels.ndjson", pax_headers=pax)
    files = [(member(f"./{name}"), content) for name, content in GOOD.items()]

    try:
        found = take(gzip.compress(tape(*files, (lying, b"{}\n"), form=tarfile.PAX_FORMAT)))
    except BadArchive:
        return
    assert set(found.relations) <= {"labels"}


def test_an_extended_header_may_be_padded(take):
    said = b"16 path=VERSION\n".ljust(tarfile.BLOCKSIZE, b"\0")
    extended = raw_header(tarfile.XHDTYPE, len(said), b"x") + said
    content = b"0.2.4".ljust(tarfile.BLOCKSIZE, b"\0")

    made = extended + raw_header(tarfile.REGTYPE, 5, b"other") + content + bytes(2 * tarfile.BLOCKSIZE)

    assert take(gzip.compress(made)).texts == {"VERSION": "0.2.4"}


@pytest.mark.parametrize("end", [b"", bytes(2 * tarfile.BLOCKSIZE)])
def test_a_global_header_may_be_the_last_member(end, take):
    content = b"0.2.4".ljust(tarfile.BLOCKSIZE, b"\0")
    last = tarfile.TarInfo.create_pax_global_header({"comment": "x"})

    made = raw_header(tarfile.REGTYPE, 5, b"VERSION") + content + last + end

    assert take(gzip.compress(made)).texts == {"VERSION": "0.2.4"}


@pytest.mark.parametrize("said", [b"garbage", b"\n", b'{"a":', b'{"%s":[1%s]}' % (b"b" * 64, b"0" * 4300)])
def test_the_index_of_lfs_objects_must_be_valid(said, bring):
    assert error_of(bring(make_archive({}, files={"lfs-objects.json": said}))) == "Incorrect JSON format"


# broken and foreign files


NO_ARCHIVES = [
    b"",
    b"\x1f",
    b"\x1f\x8b",
    b"\x1f\x8b\x08garbage that is no stream at all",
    b"PK\x03\x04 a zip",
    gzip.compress(b""),
    gzip.compress(b"not a tar" * 100),
    gzip.compress(bytes(1024)),
    gzip.compress(random.Random(2).randbytes(20_000)),
    make_archive({})[:-8],
    make_archive({})[:-4] + b"\0\0\0\0",
    make_archive({})[:-8] + b"\1\2\3\4" + make_archive({})[-4:],
    make_archive({"issues": [make_issue(1)]})[:150],
    gzip.compress(gzip.decompress(make_archive({}))[:1500]),
    gzip.compress(gzip.compress(b"x")),
    b"\0" * 1000,
]


@pytest.mark.parametrize("archive", NO_ARCHIVES, ids=range(len(NO_ARCHIVES)))
def test_an_incomplete_archive_fails_with_a_reason(archive, bring, as_):
    state = bring(archive)

    assert error_of(state)
    assert "/" not in error_of(state)
    assert storage().names("imports") + storage().names(f"projects/{state['id']}") == []


def test_every_truncation_of_an_archive_fails(take):
    whole = make_archive({"issues": [make_issue(1)]}, {"description": "x"})

    for size in range(2, len(whole), 7):
        with pytest.raises(BadArchive):
            take(whole[:size])


def start_of(tar, name):
    return tar.index(f"./{name}\0".encode())


@pytest.mark.parametrize("at", [2, 30, 120, 126, 150, 156, 259, 400])
def test_one_wrong_bit_in_a_header_fails_the_archive(at, take):
    whole = bytearray(gzip.decompress(make_archive({"issues": [make_issue(1)], "labels": []})))
    whole[start_of(whole, "tree/project/issues.ndjson") + at] ^= 4

    with pytest.raises(BadArchive, match=BROKEN):
        take(gzip.compress(bytes(whole)))


@pytest.mark.parametrize("size", [1, 200, 511])
def test_a_tar_that_ends_within_a_header_fails(size, take):
    whole = gzip.decompress(make_archive({"issues": [make_issue(1)]}))

    with pytest.raises(BadArchive, match=BROKEN):
        take(gzip.compress(whole[: start_of(whole, "tree/project/issues.ndjson") + size]))


@pytest.mark.parametrize("rest", [b"", bytes(512), bytes(512) + b"garbage", bytes(1024) + b"x" * 512])
def test_a_tar_ends_with_a_block_of_zeros_or_with_its_last_member(rest, take):
    whole = gzip.decompress(make_archive({"issues": [make_issue(1)], "labels": []}))

    found = take(gzip.compress(whole[: start_of(whole, "tree/project/labels.ndjson")] + rest))

    assert list(found.relations) == ["issues"]


def test_trailing_garbage_is_handled(take):
    with suppress(BadArchive):
        take(make_archive({}) + b"garbage")


@pytest.mark.parametrize(
    ("content", "fails"),
    [
        (b'{"title":"\xff"}\n', True),
        (b"\xff\xfe{\n", True),
        ('{"title":"a"}\n'.encode("utf-16"), True),
        (b'\xef\xbb\xbf{"title":"a"}\n', True),
        (b'{"title":"a\0b"}\n', True),
        (b'{"title":"\\ud800"}\n', True),
        (b'{"title":"a"} {"title":"b"}\n', True),
        (b'{"title":NaN}\n', True),
        (b'{"title":"a"}\r\n', False),
    ],
)
def test_invalid_json_lines_are_refused_rows(content, fails, bring):
    state = bring(make_archive({}, files={"tree/project/labels.ndjson": content}))

    assert (error_of(state) == "Incorrect JSON format") if fails else (state["import_status"] == "finished")


@pytest.mark.parametrize("depth", [101, 1023, 1024, 5_000])
def test_rows_nested_beyond_the_parser_limit_are_skipped(depth, bring):
    deep = b'{"title":"a","x":' + b"[" * depth + b'"{"' + b"]" * depth + b"}\n"

    state = bring(make_archive({}, files={"tree/project/labels.ndjson": deep + b'{"title":"b"}\n'}))

    assert state["import_status"] == "finished"
    assert [(one["relation_name"], one["line_number"]) for one in state["failed_relations"]] == [("labels", 1)]


def nested(depth):
    value = "end"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("relation", ["issues", "labels", "boards", "merge_requests", "project_members"])
def test_rows_that_are_nested_too_deeply_are_refused(relation, bring):
    row = make_issue(1, source_branch="a", target_branch="b", user=None, invite_email="a@b", odd=nested(200))

    state = bring(make_archive({relation: [row]}), person=ADA)

    assert (state["import_status"], [failed["exception_message"] for failed in state["failed_relations"]]) == (
        "finished",
        ["nested too deeply"],
    )


@pytest.mark.parametrize(
    ("relation", "changes"),
    [
        ("issues", {"title": nested(300)}),
        ("issues", {"description": nested(300)}),
        ("issues", {"notes": [make_note(nested(300))]}),
        ("issues", {"milestone": {"title": nested(300)}}),
        ("labels", {"color": nested(300)}),
        ("snippets", {"content": nested(300)}),
        ("protected_tags", {"name": nested(300)}),
    ],
)
def test_too_deep_values_are_not_converted_to_text(relation, changes, bring):
    state = bring(make_archive({relation: [make_issue(1) | changes, make_issue(2, name="v*")]}))

    assert (state["import_status"], [failed["line_number"] for failed in state["failed_relations"]]) == (
        "finished",
        [1],
    )


@pytest.mark.parametrize("relation", ["protected_tags", "project_feature", "error_tracking_setting"])
def test_too_deeply_nested_settings_are_ignored(relation, bring):
    row = {"name": "v*", "api_url": nested(300), "create_access_levels": nested(300), "odd": nested(300)}

    assert bring(make_archive({relation: [row]}))["import_status"] == "finished"


def test_a_too_deeply_nested_project_fails(bring):
    assert error_of(bring(make_archive({}, {"odd": nested(300)}))) == "Incorrect JSON format"


def test_a_too_deeply_nested_position_is_dropped(bring, as_):
    note = make_note(position='{"a":' + "[" * 300 + "]" * 300 + "}", type="DiffNote")

    state = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))

    assert state["import_status"] == "finished"
    assert len(as_(MAX).get(f"/projects/{state['id']}/issues/1/notes").json) == 1


def test_nul_characters_in_positions_are_removed(bring):
    note = make_note(position=json.dumps({"new_path": "a\0"}), type="DiffNote")

    state = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))

    assert [failed["exception_message"] for failed in state["failed_relations"]] == ["string contains null byte"]


TOO_MUCH = {
    "deep": (nested(300), "nested too deeply"),
    "deep inside": ({"a": [{"b": nested(98)}, 1]}, "nested too deeply"),
    "many lists": ([[], [{"a": []}]] * 200_000, "The line has too many values"),
    "many numbers": ({"a": [0] * 2_000_000}, "The line has too many values"),
}


@pytest.mark.parametrize(
    ("relation", "odd", "message"),
    [
        pytest.param(relation, *case, id=f"{name}-{relation}", marks=pytest.mark.nightly if is_long else ())
        for relation in ("issues", "boards", "project_feature")
        for name, case in TOO_MUCH.items()
        for is_long in ["many" in name and (relation, name) != ("issues", "many lists")]
    ],
)
def test_an_oversized_row_is_skipped_in_both_formats(relation, odd, message, bring, monkeypatch):
    rows = [make_issue(number, source_branch="a", target_branch="b") for number in (1, 2, 3)]
    rows[1]["odd"] = odd
    if relation == "project_feature":
        rows = rows[1:2]
    legacy = {relation: rows[0] if relation == "project_feature" else rows, "description": "And then"}

    old = bring(make_archive(files={"project.json": json.dumps(legacy).encode()}))
    new = bring(make_archive({relation: rows}), path="again")

    assert [
        [(one["exception_message"], one["line_number"]) for one in state["failed_relations"]] for state in (old, new)
    ] == [[(message, 2 if len(rows) > 1 else 1)]] * 2
    assert [state["import_status"] for state in (old, new)] == ["finished"] * 2


@pytest.mark.parametrize(
    "odd", [nested(300), pytest.param([[]] * 700_000, marks=pytest.mark.nightly)], ids=["deep", "many"]
)
def test_an_oversized_project_of_the_old_format_fails(odd, bring):
    for path, value in (("one", odd), ("two", {"a": odd})):
        legacy = json.dumps({"issues": [make_issue(1)], "odd": value}).encode()

        assert error_of(bring(make_archive(files={"project.json": legacy}), path=path)) == "Incorrect JSON format"


def test_the_last_of_duplicate_relations_in_the_old_format_counts(bring, as_):
    legacy = f'{{"issues":{json.dumps([nested(300)])},"issues":{json.dumps([make_issue(1)])}}}'

    state = bring(make_archive(files={"project.json": legacy.encode()}))

    assert state["failed_relations"] == []
    assert [issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json] == [1]


@pytest.mark.parametrize("between", ["", '"labels":[],', '"labels":[{"title":"a"}],"boards":{},'])
def test_attributes_of_the_old_format_are_counted_together(between, take):
    odd = json.dumps([0, *([],) * 150_000])
    members = "".join(f'{between}"odd{number}":{odd},' for number in range(8))
    found = take(make_archive(files={"project.json": f'{{{members}"a":1}}'.encode()}))

    with pytest.raises(BadArchive, match="Incorrect JSON format"):
        legacy.convert_legacy(found)


def test_the_old_format_is_refused_when_too_much_is_skipped(bring, monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_SKIPPED_EVENTS", 50_000)
    for number, path, expected in ((3, "few", "finished"), (6, "many", "failed")):
        legacy = json.dumps({"issues": [{"odd": nested(300)}] * number}).encode()

        assert bring(make_archive(files={"project.json": legacy}), path=path)["import_status"] == expected


def test_iids_of_skipped_rows_are_free(bring, as_):
    legacy = json.dumps({"issues": [make_issue(1, odd=nested(300)), make_issue(1), make_issue(2)]}).encode()

    state = bring(make_archive(files={"project.json": legacy}))

    assert [one["line_number"] for one in state["failed_relations"]] == [1]
    assert {issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json} == {1, 2}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "number", ["9" * 5000, "9" * 4301, "1e400", "-1e400", "1e99999999999999999999", f'{2**64},"far":1e400']
)
@pytest.mark.parametrize("is_legacy", [False, True])
def test_oversized_numbers_are_invalid_json(bring, number, is_legacy):
    row = b'{"title":"A","iid":1,"odd":%s}' % number.encode()
    legacy, tree = {"project.json": b'{"issues":[%s]}' % row}, {"tree/project/issues.ndjson": row}

    state = bring(make_archive(files=legacy) if is_legacy else make_archive({}, files=tree))

    assert error_of(state) == "Incorrect JSON format"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("relations", "project"),
    [
        ({"project_members": [{"access_level": 30, "user": {"id": 7, "email": "a\0@b"}}]}, {}),
        ({"protected_tags": [{"name": "v\0"}]}, {}),
        ({"error_tracking_setting": [{"api_url": "http://a\0", "project_name": "\0"}]}, {}),
        ({"project_feature": [{"odd\0": "\0"}]}, {}),
        ({"boards": [{"name": "\0"}]}, {}),
        ({"issues": [make_issue(1, notes=[make_note("a\0")])]}, {}),
    ],
)
def test_rows_with_nul_characters_are_skipped(relations, project, bring):
    state = bring(make_archive(relations, project), person=ADA)

    assert state["import_status"] == "finished"


def test_a_project_whose_description_has_a_nul_fails(bring):
    assert error_of(bring(make_archive({}, {"description": "a\0b"}))) == "string contains null byte"


ODD = [1, True, 1.5, 1e300, 2**63, 2**64 - 1, -(2**63), "text", "", [], [1], {}, {"a": 1}, [[None]], "2021-13-45", None]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "relation", ["labels", "milestones", "issues", "merge_requests", "snippets", "project_members"]
)
def test_rows_with_values_of_wrong_types_are_handled(relation, bring, as_):
    names = {
        "labels": ["title", "color", "description", "priorities", "created_at"],
        "milestones": ["title", "iid", "state", "due_date", "events", "description"],
        "issues": [
            *[
                "iid",
                "title",
                "description",
                "state",
                "author_id",
                "closed_by_id",
                "weight",
                "due_date",
                "confidential",
            ],
            *["notes", "events", "label_links", "milestone", "issue_assignees", "designs", "created_at", "closed_at"],
            *["issue_type", "discussion_locked", "assignee_id", "time_estimate"],
        ],
        "merge_requests": ["iid", "source_branch", "target_branch", "state", "source_project_id", "diff_head_sha"],
        "snippets": ["title", "content", "visibility_level", "file_name", "author_id", "notes"],
        "project_members": ["access_level", "user", "invite_email", "user_id"],
    }[relation]
    base = make_issue(1, source_branch="a", target_branch="b", access_level=30, user={"id": 1, "email": "a@b.c"})
    lines = [
        base | {"iid": 1 + at, "title": f"t{at}"} | {name: odd}
        for at, (name, odd) in enumerate(itertools.product(names, ODD))
    ]

    state = bring(make_archive({relation: lines}), person=ADA)

    assert (state["import_status"], state["import_error"]) == ("finished", None)
    assert as_(ADA).get(f"/projects/{state['id']}/issues?per_page=100").status_code == 200
    assert as_(ADA).get(f"/projects/{state['id']}/events?per_page=100").status_code == 200


@pytest.mark.both_databases
@pytest.mark.parametrize("relation", ["notes", "events"])
def test_nested_rows_with_values_of_wrong_types_are_handled(relation, bring, as_, run_jobs):
    names = [
        *["note", "author_id", "author", "created_at", "updated_at", "system", "confidential", "type", "position"],
        *["attachment", "commit_id", "events", "action", "target_type", "push_event_payload", "fingerprint", "extra"],
    ]
    base = make_note() | {"action": "created", "target_type": "Issue"}
    lines = [
        make_issue(1 + at, **{relation: [base | {name: odd}, odd]})
        for at, (name, odd) in enumerate(itertools.product(names, ODD))
    ]

    state = bring(make_archive({"issues": lines}))

    client = as_(MAX)
    assert (state["import_status"], state["import_error"]) == ("finished", None)
    assert client.get(f"/projects/{state['id']}/events?per_page=100").status_code == 200
    assert client.post(f"/projects/{state['id']}/export").status_code == 202
    run_jobs()
    assert unpack(client.get(f"/projects/{state['id']}/export/download").data)


# bundles


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


# memory


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
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
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


# generated input


KEYS = sorted(
    {
        *(*layout.ISSUE, *layout.ISSUE_NESTED, *layout.NOTE, *layout.MERGE_REQUEST, *layout.SNIPPET),
        *(*layout.MILESTONE, *layout.EVENT, "label", "user", "author", "milestone", "filename", "id"),
        *("push_event_payload", "priorities"),
    }
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["opened", "closed", "created", "2021-01-01T00:00:00Z", "DiffNote", "Note", '{"a":1}'])
)


def deeper(inner):
    names = st.sampled_from(KEYS) | st.text(max_size=5)
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)


JSON = st.recursive(LEAVES, deeper, max_leaves=15)
NEEDED = {"title": "t", "source_branch": "a", "target_branch": "b"}
ROW = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=12).map(lambda row: NEEDED | row)
TRANSLATED = st.sampled_from(["labels", "milestones", "issues", "merge_requests", "snippets", "boards"])


class Numbers:
    """Ids without a database."""

    def __init__(self):
        self.last = 0

    def take(self):
        self.last += 1
        return self.last

    __next__ = take

    def __iter__(self):
        return self


@given(rows=st.lists(ROW | JSON, min_size=1, max_size=3), relation=TRANSLATED)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_row_is_imported_or_a_failure(rows, relation):
    context = ImportContext(1, UserMapping(5, accounts={7: 8}), ProjectState(), clock.now())
    context.ids = dict.fromkeys(context.ids, Numbers())

    for line, row in enumerate(rows, start=1):
        try:
            parsed = parse_row(orjson.dumps(row))
        except TypeError:  # an integer that JSON of ours does not write
            continue
        if isinstance(parsed, RowRefused):
            context.record_failure(relation, line, parsed)
        else:
            map_row(context, relation, line, parsed)

    for stored in context.batch.rows.values():
        for row in stored:
            for value in row:
                if isinstance(value, dict | list):
                    assert orjson.dumps(value)
                if isinstance(value, int):
                    assert abs(value) < 2**63
                if isinstance(value, str):
                    assert "\0" not in value


@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_damaged_archive_is_read_or_refused(data, tmp_path_factory):
    whole = bytearray(
        gzip.decompress(
            make_archive({"issues": [make_issue(1)]}, files={f"uploads/{SECRET}/{'x' * 120}": b"x", "avatar/a": b"b"})
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 1))
        new = data.draw(st.binary(min_size=1, max_size=12))
        whole[at : at + len(new)] = new
        start = at - at % 512  # with its checksum right it gets further
        if data.draw(st.booleans()) and len(whole) >= start + 512:
            header = whole[start : start + 512]
            header[148:156] = b" " * 8
            whole[start + 148 : start + 156] = b"%06o\0 " % sum(header)
    place = tmp_path_factory.mktemp("fuzz")
    (place / "archive.tar.gz").write_bytes(gzip.compress(bytes(whole), 1))

    try:
        found = extraction.unpack(place / "archive.tar.gz", place / "unpacked")
        found.check()
        legacy.convert_legacy(found)
        reader.project_of(found)
        for relation in reader.relations_of(found):
            for _, raw in reader.rows_of(found, relation):
                parse_row(raw)
    except BadArchive:
        pass
    assert {path.name for path in place.iterdir()} <= {"archive.tar.gz", "unpacked"}


@given(content=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_in_the_old_format_is_split_or_refused(content, tmp_path_factory):
    place = tmp_path_factory.mktemp("legacy")
    found = contents.Unpacked(place, texts={"VERSION": "0.2.4"}, legacy=place / "project.json")
    found.legacy.write_bytes(content)

    try:
        legacy.convert_legacy(found)
        reader.project_of(found)
        for relation in reader.relations_of(found):
            for _, raw in reader.rows_of(found, relation):
                parse_row(raw)
    except BadArchive:
        pass


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":' + b"9" * 30 + b',"b":"' + b'\\"' * 2_000_000,
        b'{"a":' + b"9" * 30 + b',"b":[' + b"9" * 4300 + b"," + (b"9" * 4300 + b",") * 2000 + b"1]}",
        b'{"a":' + b"9" * 30 + b',"b":"' + b"x" * 60_000_000 + b'"}',
    ],
    ids=["a text without an end", "long numbers", "a long text"],
)
def test_the_search_for_oversized_numbers_takes_linear_time(text, tmp_path):
    place = tmp_path / "project.json"
    place.write_bytes(text)
    started = time.monotonic()

    json_stream._can_be_read(place)

    assert time.monotonic() - started < 5


@pytest.mark.parametrize("window", [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 50])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"1234": "1\\"4", "a": 123}', True),
        (b'{"1234": "1\\\\", "a": 1234}', False),
        (b'{"a": "1\\"234567", "b": [12, 345]}', True),
        (b'["\\"", 1234, "a"]', False),
        (b'"12\\', True),
    ],
)
def test_oversized_numbers_are_found_across_chunks(text, expected, window, tmp_path, monkeypatch):
    monkeypatch.setattr(exact_json, "MAX_DIGITS", 3)
    monkeypatch.setattr(json_stream, "WINDOW_BYTES", window)
    place = tmp_path / "project.json"
    place.write_bytes(text)

    found = json_stream._can_be_read(place)

    longest = max(map(len, re.findall(rb'"(?:[^"\\]|\\.)*"?', text)))
    assert found == expected or (longest >= window - 1 and not found)  # longer than any part is not read either
