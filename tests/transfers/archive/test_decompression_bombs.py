"""Hostile archives: decompression bombs."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import tarfile

import pytest

from project_service.kit.storage import storage
from project_service.transfers.archive import extraction, legacy
from project_service.transfers.archive.contents import BadArchive
from project_service.transfers.archive.extraction import Limits
from tests.support.archives import make_archive
from tests.transfers.archive.support import BROKEN, GOOD, MIB, SECRET, error_of, good_with, member, tape

TOO_BIG = "Decompressed archive size validation failed."


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
