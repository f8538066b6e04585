"""Git bundles: validate, restore and write them, and choose the branch that a clone begins with."""

from __future__ import annotations

import io
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from project_service.domain.repositories.git import BadBundle, check, git, opened

BRANCHES, TAGS = "refs/heads/", "refs/tags/"
KEEP_AROUND = "refs/keep-around/"  # as GitLab names refs to commits that nothing else points to
# refs with such a name would leave no room for those below it
NAMESPACES = frozenset(
    f"refs/{name}"
    for name in (
        "heads",
        "tags",
        "notes",
        "merge-requests",
        "environments",
        "pipelines",
        "keep-around",
        "remotes",
        "tmp",
    )
)
MASTER = "master"
COMMIT_ID = re.compile(r"[0-9a-f]{40}")
# what may be the name of a branch or a tag, by the rules of git-check-ref-format
REF = re.compile(
    r"""(?![./])                          # no part begins with a dot, and none is empty
        (?!.* (?: \.\. | // | /\. | @\{ | \.lock(?:/|\Z) ))
        [^\x00-\x20\x7f~^:?*\[\\]+
        (?<![./])""",
    re.VERBOSE | re.DOTALL,
)
SIGNATURES = (b"# v2 git bundle\n", b"# v3 git bundle\n")
PACK = b"PACK"
CHECKSUM_BYTES = 20  # at the end of a pack
OBJECT_FORMAT = b"@object-format="  # of version 3; bundles of version 2 use SHA-1
HEADER_LINE = re.compile(rb"(?:@.*|-?[0-9a-f]{40}(?: .*)?)\n")
MAX_HEADER_LINE_BYTES = 64 << 10


def unbundle(bundle: Path, target: Path) -> None:
    """Restore a bare repository with all refs from a bundle; raises ``BadBundle``. Callers lock the target."""
    check_head(bundle)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for abandoned in target.parent.glob(f".{target.name}.*"):
        if abandoned != bundle:
            remove(abandoned)  # of a process that was killed
    incomplete = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        _mirror(bundle, incomplete)
        incomplete.rename(target)
    finally:
        shutil.rmtree(incomplete, ignore_errors=True)


def remove(path: Path) -> None:
    """Remove a file, or a directory with its content."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_head(bundle: Path) -> None:
    """Raise ``BadBundle`` unless a file begins with the header of a bundle that uses SHA-1.

    Capabilities, prerequisites and refs have a line each; an empty line ends them, and the pack follows (git,
    ``gitformat-bundle``). Git reads a bundle cut off before that as an empty repository.
    """
    with bundle.open("rb") as file:
        if not list(_refs(file)) or file.read(len(PACK)) != PACK:
            raise BadBundle("Invalid bundle file")


def check_ref_names(bundle: Path) -> None:
    """Raise ``BadBundle`` if a ref of a bundle has the name of a namespace, as ``refs/tags``."""
    with bundle.open("rb") as file:
        for name, _ in _refs(file):
            if name in NAMESPACES:
                raise BadBundle(f"Invalid bundle file: funny refname {name.removeprefix('refs/')}")


def _refs(bundle: IO[bytes]) -> Iterator[tuple[str, str]]:
    """The refs of a bundle, HEAD among them, with their object ids; ``BadBundle`` for any other file."""
    if bundle.readline(64) not in SIGNATURES:
        raise BadBundle("Invalid bundle file")
    while HEADER_LINE.fullmatch(line := bundle.readline(MAX_HEADER_LINE_BYTES)):
        if line.startswith(OBJECT_FORMAT) and line.strip() != OBJECT_FORMAT + b"sha1":
            raise BadBundle("Invalid bundle file: only repositories whose objects are named by SHA-1 can be read")
        if not line.startswith((b"@", b"-")):
            object_id, _, name = line.decode(errors="surrogateescape").rstrip("\n").partition(" ")
            yield name, object_id
    if line != b"\n":
        raise BadBundle("Invalid bundle file")


def has_another_head(refs: Mapping[str, str], branch: str) -> bool:
    """Whether a bundle with these refs and their object ids has a branch, but clones of it begin with another one."""
    branches = {name.removeprefix(BRANCHES): id_ for name, id_ in refs.items() if name.startswith(BRANCHES)}
    # git takes for the branch of HEAD master, if it is at the same commit, or else the last branch that is; without a
    # HEAD it takes master as well
    candidates = [name for name, object_id in branches.items() if object_id == refs.get("HEAD", object_id)]
    if MASTER in candidates:
        return branch in branches and branch != MASTER
    head = candidates[-1] if "HEAD" in refs and candidates else _likely_default(branches)
    return branch in branches and branch != head


def is_ambiguous(refs: Mapping[str, str], branch: str) -> bool:
    """Whether git takes another branch of a bundle for the default one when this one is the default.

    It does when ``master`` is at the same commit, and it cannot tell a branch that is called HEAD from HEAD.
    """
    if f"{BRANCHES}HEAD" in refs:
        return True
    return branch != MASTER and BRANCHES + MASTER in refs and refs[BRANCHES + MASTER] == refs.get(BRANCHES + branch)


def add_branches(folder: Path, wanted: Mapping[str, str]) -> bool:
    """Add branches at commits that a repository has, as far as their names are free; return whether there are any."""
    added = _add_branches(folder, wanted)
    if not added:
        return False
    try:
        check(folder)
    except BadBundle:  # a commit that no ref pointed to may be incomplete
        for name in added:
            opened(folder).references.delete(BRANCHES + name)
        return False
    return True


def header_of(bundle: Path, pack: Path) -> bytes | None:
    """Return the bytes of a bundle before its pack; ``None`` if these and ``pack`` are not the whole bundle."""
    with bundle.open("rb") as file:
        list(_refs(file))
        length = file.tell()
        file.seek(0)
        header = file.read(length)
        if bundle.stat().st_size - length != pack.stat().st_size:
            return None
        with pack.open("rb") as other:
            for opened_file in (file, other):
                opened_file.seek(-CHECKSUM_BYTES, os.SEEK_END)
            return header if file.read() == other.read() else None


def parse_header(header: bytes) -> dict[str, str]:
    """Return the refs of a header, HEAD among them, with their object ids."""
    return dict(_refs(io.BytesIO(header)))


def write_bundle(folder: Path, bundle: Path) -> bool:
    """Write a bundle of a repository as it is; false if it has no refs."""
    if not git("for-each-ref", "--count=1", folder=folder):
        return False
    _bundle(folder, bundle, default_branch(folder))
    return True


def keep_detached_head(folder: Path) -> None:
    """Add a ref to the commit of a HEAD that is no branch: the commits that only it reaches would be lost."""
    repository = opened(folder)
    if repository.head_is_detached:
        repository.references.create(KEEP_AROUND + str(repository.head.target), repository.head.target, force=True)


def default_branch(folder: Path) -> str | None:
    """The branch of HEAD, or a likely one if there is no such branch."""
    repository = opened(folder)
    if repository.head_is_unborn or repository.head_is_detached:
        return _likely_default(repository.branches.local)
    branch: str = repository.head.shorthand
    return branch if _is_utf8(branch) else _likely_default(repository.branches.local)


def commit_by_id(repository: Any, commit_id: str) -> Any:
    """The commit with a full id; ``None`` for abbreviations, names of branches and ids of other objects."""
    commit: Any = repository.get(commit_id) if COMMIT_ID.fullmatch(commit_id) else None
    return commit if commit is not None and commit.type_str == "commit" else None


def _mirror(source: Path, target: Path) -> None:
    """Clone a bundle or a repository into a bare repository, all refs included."""
    git("clone", "--quiet", "--mirror", "--template=", str(source), str(target), reads=source)
    # "git remote remove" would delete refs with its name too
    git("config", "--remove-section", "remote.origin", folder=target)


def _bundle(folder: Path, bundle: Path, head: str | None) -> None:
    # clones take the last branch at the commit of HEAD for the branch of HEAD
    refs = ["HEAD"] if head and not opened(folder).head_is_unborn else []
    refs += [f"--exclude={BRANCHES}{head}", "--all", f"{BRANCHES}{head}"] if head else ["--all"]
    git("bundle", "create", "--quiet", str(bundle), *refs, folder=folder)


def _add_branches(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """Add branches with valid, free names at existing commits, and return their names."""
    import pygit2  # noqa: PLC0415  # as in git.opened

    repository, added = opened(folder), []
    for name, commit_id in wanted.items():
        commit = commit_by_id(repository, commit_id) if _is_unambiguous(name) else None
        if commit is not None:
            try:
                repository.references.create(BRANCHES + name, commit.id)
            except (pygit2.GitError, ValueError, OSError):
                continue  # it exists, is a prefix of another one, or is too long
            added.append(name)
    return added


def _is_unambiguous(name: str) -> bool:
    # bundles have none of the refs that such a name could also mean
    return name != "HEAD" and not name.startswith("refs/") and REF.fullmatch(name) is not None


def _likely_default(branches: Iterable[str]) -> str | None:
    """The default branch if HEAD names none, or one whose name is not text."""
    names = sorted(filter(_is_utf8, branches))
    return next((name for name in names if name in ("main", "master")), names[0] if names else None)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
