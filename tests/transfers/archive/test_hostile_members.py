"""Hostile archives: links, devices and names of members."""

from __future__ import annotations

import gzip
import tarfile
import time

import pytest
from sqlalchemy import select, update

from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.transfers import workdir
from project_service.transfers.archive import contents, extraction
from project_service.transfers.archive.contents import BadArchive
from project_service.transfers.importing import importer
from tests.support.archives import send, unpack
from tests.support.sample_data import MAX
from tests.transfers.archive.support import GOOD, SECRET, good_with, member, tape

LINKED = "File shares hard link"


CLIMBS = "The archive has a member outside of its own directory"


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
