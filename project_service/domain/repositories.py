"""Git repositories of projects: a bundle in the storage, and a bare repository on the machine that needs one.

The bundle is what counts. The bare repository below the data directory is made from it under a lock, carries the
version of the bundle in its name, appears whole or not at all, and may be deleted at any time.
"""

from __future__ import annotations

import fcntl
import functools
import io
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from flask import current_app
from sqlalchemy import ForeignKey, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.session import db
from project_service.kit.storage import storage

if TYPE_CHECKING:
    import pygit2

CODE, WIKI, DESIGN = "project", "project.wiki", "project.design"
KINDS = (CODE, WIKI, DESIGN)
BRANCHES, TAGS = "refs/heads/", "refs/tags/"
COMMIT = re.compile(r"[0-9a-f]{40}")
MOST_PARTS = 50  # of a path that a revision is looked for in
MOST_SHOWN, MOST_LINES = 1 << 20, 10_000  # bytes, and lines, each of which is a part of the page
TEMPLATES = ".gitlab/issue_templates"
MOST_TEMPLATES, LARGEST_TEMPLATE = 200, 64 << 10  # files, bytes
# what may be the name of a branch or a tag, by the rules of git-check-ref-format
REF = re.compile(
    r"""(?![./])                          # no part begins with a dot, and none is empty
        (?!.* (?: \.\. | // | /\. | @\{ | \.lock(?:/|\Z) ))
        [^\x00-\x20\x7f~^:?*\[\\]+
        (?<![./])""",
    re.VERBOSE | re.DOTALL,
)
MASTER = "master"
KEPT = "refs/keep-around/"  # as the real product names what nothing else leads to
SIGNATURES = (b"# v2 git bundle\n", b"# v3 git bundle\n")
PACK = b"PACK"
OBJECT_FORMAT = b"@object-format="  # of bundles of the third version; those of the second have SHA-1
HEAD_LINE = re.compile(rb"(?:@.*|-?[0-9a-f]{40}(?: .*)?)\n")
LONGEST_HEAD_LINE = 64 << 10
# bits of the exit status of git fsck: refs or what they lead to are missing, unreadable or of another kind, or it died
BROKEN = 0b1000_1110
# a delta of some bytes becomes an object of any size, which git holds whole: memory of its own is limited (RLIMIT_DATA,
# which counts neither packs that are mapped nor the program); where that cannot be done git runs all the same
MOST_MEMORY = 1 << 30
# a shell beside git ends it, with all that it has forked, when nobody holds the other end of the pipe any more: whoever
# ran it was killed. The rows of the same transfer go first
LIMITED = """
ulimit -d "$0" 2>/dev/null
command -v nice >/dev/null && set -- nice -n 10 "$@"
exec 3<&0 </dev/null
(read -r _; kill -KILL 0) <&3 >/dev/null 2>&1 &
exec 3<&-
"$@"
status=$?
{ kill -KILL $!; wait $!; } >/dev/null 2>&1
exit $status
"""
LONGEST_SECONDS = 12 * 3600
ABANDONED_SECONDS = 2 * 86400  # no import takes longer than a day
# what a repository from elsewhere could set off, and memory that grows with it, are switched off
CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "gc.auto=0",
    "pack.threads=1",
    "pack.windowMemory=64m",
    "core.bigFileThreshold=16m",
)


class Repository(Timestamps, Model):
    """The bundle of one repository of a project; ``version`` changes with its content."""

    __tablename__ = "repositories"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    version: Mapped[str]
    storage_name: Mapped[str]
    size: Mapped[int]


@dataclass(frozen=True, slots=True)
class Source:
    """A file as a revision has it; ``text`` is missing where it is none, or too much to be shown."""

    revision: str
    path: str
    size: int  # bytes
    text: str | None

    @property
    def lines(self) -> list[str]:
        """The lines as editors and scanners number them."""
        return [line.removesuffix("\r") for line in (self.text or "").removesuffix("\n").split("\n")]


class BadBundle(Exception):
    """A file that is no bundle, or one whose objects are missing or unreadable."""


def repository_of(project: Project, kind: str = CODE) -> Repository | None:
    """The repository of a project, if it has one."""
    return db.session.scalar(
        select(Repository).where(Repository.project_id == project.content_id, Repository.kind == kind)
    )


def repositories_of(project: Project) -> Sequence[Repository]:
    """All repositories of a project."""
    return db.session.scalars(
        select(Repository).where(Repository.project_id == project.content_id).order_by(Repository.kind)
    ).all()


def root() -> Path:
    """Where this machine keeps its bare repositories."""
    data_dir: Path = current_app.config["SETTINGS"].data_dir
    return data_dir / "repositories"


def bare(repository: Repository) -> Path:
    """A bare repository with everything the bundle has, made when this machine has none yet."""
    wanted = root() / f"{repository.project_id}-{repository.kind}-{repository.version}.git"
    if wanted.exists():
        return wanted
    with _locked(f"{repository.project_id}-{repository.kind}"):
        if not wanted.exists():
            bundle = root() / f".{wanted.name}.{secrets.token_hex(4)}.bundle"
            try:
                storage().provide_file(repository.storage_name, bundle)
                unbundle(bundle, wanted)
            finally:
                bundle.unlink(missing_ok=True)
    return wanted


def unbundle(bundle: Path, target: Path) -> None:
    """Make a bare repository of a bundle, all its refs included; raises ``BadBundle``. One at a time makes a target."""
    check_head(bundle)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left in target.parent.glob(f".{target.name}.*"):
        if left != bundle:
            _remove(left)  # of whoever was killed
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        _mirror(bundle, fresh)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def check_head(bundle: Path) -> None:
    """Raise ``BadBundle`` unless a file begins as a bundle does, and names its objects as all that reads them here.

    Capabilities, commits that are needed and refs have a line each; an empty one ends them, and objects follow (git,
    ``gitformat-bundle``). What is cut before that git takes for an empty repository.
    """
    with bundle.open("rb") as file:
        if not list(_refs(file)) or file.read(len(PACK)) != PACK:
            raise BadBundle("Invalid bundle file")


def _refs(bundle: IO[bytes]) -> Iterator[tuple[str, str]]:
    """The refs that a bundle names, HEAD among them, and the objects they are at; ``BadBundle`` where it is none."""
    if bundle.readline(64) not in SIGNATURES:
        raise BadBundle("Invalid bundle file")
    while HEAD_LINE.fullmatch(line := bundle.readline(LONGEST_HEAD_LINE)):
        if line.startswith(OBJECT_FORMAT) and line.strip() != OBJECT_FORMAT + b"sha1":
            raise BadBundle("Invalid bundle file: only repositories whose objects are named by SHA-1 can be read")
        if not line.startswith((b"@", b"-")):
            number, _, name = line.decode(errors="surrogateescape").rstrip("\n").partition(" ")
            yield name, number
    if line != b"\n":
        raise BadBundle("Invalid bundle file")


def has_another_head(storage_name: str, branch: str) -> bool:
    """Whether a bundle has a branch that is not the one that whoever clones it begins with."""
    refs = _refs_of(storage_name)
    branches = {name.removeprefix(BRANCHES): number for name, number in refs.items() if name.startswith(BRANCHES)}
    # for the one that HEAD names git takes this one, if it is at the same commit, or else the last that is; and where
    # there is no HEAD it takes this one, too
    named = [name for name, number in branches.items() if number == refs.get("HEAD", number)]
    if MASTER in named:
        return branch in branches and branch != MASTER
    return branch in branches and branch != (named[-1] if "HEAD" in refs and named else _chosen(branches))


def check(folder: Path) -> None:
    """Raise ``BadBundle`` when objects of a repository are missing, or refs lead to none.

    What objects hold was compared with their names when git cloned the bundle, and is not read once more. Objects that
    are merely odd, as old programs made some, are no reason to refuse a repository.
    """
    done = _run("fsck", "--connectivity-only", "--no-dangling", "--no-progress", folder=folder)
    if done.returncode & BROKEN or done.returncode < 0:
        raise BadBundle("Invalid bundle file: objects are missing or cannot be read")


def with_branches(folder: Path, wanted: Mapping[str, str], place: Path) -> Path | None:
    """A bundle of a repository with further branches at commits that it has; nothing when none can be added.

    The repository itself stays as it is: it is named after the bundle that it was made of. What comes of it lies at
    ``place``.
    """
    fresh, bundle = place / "branches.git", place / "branches.bundle"
    _mirror(folder, fresh)
    if not _add_branches(fresh, wanted):
        return None
    try:
        check(fresh)
    except BadBundle:  # a commit that nothing led to need not be whole
        return None
    _bundle(fresh, bundle, default_branch(folder))
    return bundle


def with_head(folder: Path, branch: str, place: Path) -> Path:
    """A bundle of a repository whose HEAD names another branch that it has; the repository itself stays as it is."""
    fresh, bundle = place / "head.git", place / "head.bundle"
    _mirror(folder, fresh)
    opened = _opened(fresh)
    if opened.head_is_detached:  # what only it leads to would be lost
        opened.references.create(KEPT + str(opened.head.target), opened.head.target, force=True)
    git("symbolic-ref", "HEAD", BRANCHES + branch, folder=fresh)
    _bundle(fresh, bundle, branch)
    shutil.rmtree(fresh)
    return bundle


def _mirror(source: Path, target: Path) -> None:
    """Make a bare repository of a bundle or of another repository, all refs included."""
    git("clone", "--quiet", "--mirror", "--template=", str(source), str(target), reads=source)
    # to remove the remote instead would take refs of its name along
    git("config", "--remove-section", "remote.origin", folder=target)


def _bundle(folder: Path, bundle: Path, head: str | None) -> None:
    # whoever clones a bundle takes the last branch at the commit of HEAD for the one it names
    refs = ["HEAD"] if head and not _opened(folder).head_is_unborn else []
    refs += [f"--exclude={BRANCHES}{head}", "--all", f"{BRANCHES}{head}"] if head else ["--all"]
    git("bundle", "create", "--quiet", str(bundle), *refs, folder=folder)


def _add_branches(folder: Path, wanted: Mapping[str, str]) -> int:
    """Add branches whose names may be and are free, at commits that are there; how many."""
    import pygit2  # noqa: PLC0415  # as in _opened

    opened, added = _opened(folder), 0
    for name, number in wanted.items():
        commit = _commit_numbered(opened, number) if _is_plain(name) else None
        if commit is not None:
            try:
                opened.references.create(BRANCHES + name, commit.id)
            except (pygit2.GitError, ValueError, OSError):
                continue  # it is taken, another has the first part of the name, or it is too long
            added += 1
    return added


def _is_plain(name: str) -> bool:
    # a bundle has none of the refs that such a name could mean as well
    return name != "HEAD" and not name.startswith("refs/") and REF.fullmatch(name) is not None


def git(*words: str, folder: Path | None = None, reads: Path | None = None) -> bytes:
    """Run git where nothing of the repository, the machine or a user can interfere; what it wrote.

    The more there is in the repository, or in what it reads instead, the more memory it may take.
    """
    done = _run(*words, folder=folder, reads=reads)
    if done.returncode:
        raise BadBundle("Invalid bundle file")
    return done.stdout


def default_branch(folder: Path) -> str | None:
    """The branch that HEAD names, if there is such a branch."""
    opened = _opened(folder)
    if opened.head_is_unborn or opened.head_is_detached:
        return _chosen(opened.branches.local)
    found: str = opened.head.shorthand
    return found if _is_utf8(found) else _chosen(opened.branches.local)


def _chosen(branches: Iterable[str]) -> str | None:
    """The branch that counts where HEAD names none, or one whose name is no text."""
    names = sorted(filter(_is_utf8, branches))
    return next((name for name in names if name in ("main", "master")), names[0] if names else None)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def has_a_twin(storage_name: str, branch: str) -> bool:
    """Whether git takes another branch of a bundle for the default one when this is it.

    So it does when both are at one commit; and with a branch that is called so it cannot tell which is meant.
    """
    refs = _refs_of(storage_name)
    if f"{BRANCHES}HEAD" in refs:
        return True
    return branch != MASTER and BRANCHES + MASTER in refs and refs[BRANCHES + MASTER] == refs.get(BRANCHES + branch)


def may_be_default(project: Project, branch: str) -> bool:
    """Whether a project has a branch, or no repository yet."""
    of_code = Repository.project_id == project.id, Repository.kind == CODE
    storage_name = db.session.scalar(select(Repository.storage_name).where(*of_code))
    # of a branch that is called so git would not know which of both is meant
    return storage_name is None or (branch != "HEAD" and BRANCHES + branch in _refs_of(storage_name))


def _refs_of(storage_name: str) -> dict[str, str]:
    # what storages open need not have lines
    with storage().open(storage_name) as file, io.BufferedReader(cast("Any", file)) as lines:
        return dict(_refs(lines))


def tag_names(project: Project) -> list[str]:
    """The names of the tags of a project, in order; none while it has no repository."""
    opened = _code_of(project)
    if opened is None:
        return []
    return sorted(name.removeprefix(TAGS) for name in opened.references if name.startswith(TAGS))


def commit_titles(project: Project, ids: Iterable[str]) -> dict[str, str]:
    """The first lines of the messages of commits; without those that the repository of the project has not."""
    opened = _code_of(project)
    if opened is None:
        return {}
    titles: dict[str, str] = {}
    for number in ids:
        commit = _commit_numbered(opened, number)
        if commit is not None:
            titles[number] = commit.message.strip().partition("\n")[0].rstrip()
    return titles


def source_at(project: Project, place: str) -> Source | None:
    """The file that ``REVISION/PATH`` names, if there is one; the name of a branch or a tag may have slashes itself."""
    opened = _code_of(project)
    if opened is None:
        return None
    parts = place.split("/")
    for count in range(1, min(len(parts), MOST_PARTS)):
        revision, path = "/".join(parts[:count]), "/".join(parts[count:])
        commit = _commit(opened, revision)
        if commit is not None:
            return _file_of(opened, commit, revision, path)
    return None


def issue_templates(project: Project) -> list[str]:
    """The names of what new issues may begin with: the Markdown files that the default branch has for it."""
    return list(_templates(project))


def issue_template(project: Project, name: str) -> str | None:
    """What new issues may begin with under a name, if there is such a template."""
    found = _templates(project).get(name)
    return None if found is None else found.data.decode(errors="replace").replace("\0", "")


def _templates(project: Project) -> dict[str, Any]:
    # what a file has is only read when it is asked for
    opened = _code_of(project)
    if opened is None or project.default_branch is None:
        return {}
    commit = _commit(opened, project.default_branch)
    try:
        files = list(commit.tree[TEMPLATES]) if commit is not None else []
    except (KeyError, TypeError):
        return {}
    found = [one for one in files if one.type_str == "blob" and one.name.endswith(".md")]
    some = sorted(found, key=lambda one: str(one.name))[:MOST_TEMPLATES]
    return {one.name.removesuffix(".md"): one for one in some if _size_of(opened, one.id) <= LARGEST_TEMPLATE}


def _commit_numbered(opened: pygit2.Repository, number: str) -> Any:
    # what is called a commit may be anything, also part of an id or the name of a branch
    found: Any = opened.get(number) if COMMIT.fullmatch(number) else None
    return found if found is not None and found.type_str == "commit" else None


def _commit(opened: pygit2.Repository, revision: str) -> Any:
    if COMMIT.fullmatch(revision):
        return _commit_numbered(opened, revision)
    if not REF.fullmatch(revision):
        return None
    named = (opened.references.get(kind + revision) for kind in (BRANCHES, TAGS))
    peeled: Any = next((one.peel() for one in named if one is not None), None)
    return peeled if peeled is not None and peeled.type_str == "commit" else None


def _file_of(opened: pygit2.Repository, commit: Any, revision: str, path: str) -> Source | None:
    try:
        found = commit.tree[path]
    except (KeyError, ValueError):
        return None
    if found.type_str != "blob":
        return None
    size = _size_of(opened, found.id)
    if size > MOST_SHOWN or found.is_binary or found.data.count(b"\n") > MOST_LINES:
        return Source(revision, path, size, None)
    return Source(revision, path, size, found.data.decode(errors="replace"))


def _size_of(opened: pygit2.Repository, blob: Any) -> int:
    # a blob that is asked for its size is in memory with all it has
    return opened.odb.read_header(blob)[1]


def _code_of(project: Project) -> pygit2.Repository | None:
    repository = repository_of(project)
    return None if repository is None else _opened(bare(repository))


def _opened(folder: Path) -> pygit2.Repository:
    import pygit2  # noqa: PLC0415  # it takes 9 MB, which a process that opens no repository has no use for

    return pygit2.Repository(str(folder))


def forget_old() -> int:
    """Remove the bare repositories of this machine that no bundle stands behind any more; how many.

    An import has them before the bundles are known: those of a project that is being loaded are left alone. What
    whoever made one left unfinished goes when nobody can be at it any more.
    """
    # looked for first: an import that begins later has none of them
    found = list(root().glob("[0-9]*.git"))
    loading = {str(number) for number in db.session.scalars(select(Project.id).where(Project.loading))}
    known = {
        f"{project_id}-{kind}-{version}.git"
        for project_id, kind, version in db.session.execute(
            select(Repository.project_id, Repository.kind, Repository.version)
        )
    }
    db.session.commit()
    old = [path for path in found if path.name not in known and path.name.partition("-")[0] not in loading]
    old += [path for path in root().glob(".[0-9]*.git.*") if _is_abandoned(path)]
    for path in old:
        _remove(path)
    return len(old)


def forget(project_id: int) -> None:
    """Remove the bare repositories that this machine has of a project: of one that has none any more."""
    for path in (*root().glob(f"{project_id}-*.git"), *root().glob(f".{project_id}-*.git.*")):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_abandoned(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > ABANDONED_SECONDS
    except FileNotFoundError:  # it is ready
        return False


def _run(*words: str, folder: Path | None, reads: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    config = [part for setting in CONFIG for part in ("-c", setting)]
    place = ["--git-dir", str(folder)] if folder else []
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    room = (MOST_MEMORY + _size_on_disk(reads or folder) // 4) >> 10
    command = ["/bin/sh", "-c", LIMITED, str(room), _program(), *config, *place, *words]
    pipe = subprocess.PIPE
    with (
        _lifeline() as line,
        subprocess.Popen(command, env=environment, stdin=line, stdout=pipe, stderr=pipe, process_group=0) as process,
    ):
        try:
            out, err = process.communicate(timeout=LONGEST_SECONDS)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # git has children, which do the work
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            out, err = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe whose other end is ours, and is closed at the end, also when that is a violent one."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(theirs)
        os.close(ours)


def _size_on_disk(place: Path | None) -> int:
    """Bytes of a bundle, or of the packs of a repository."""
    if place is None or place.is_file():
        return place.stat().st_size if place else 0
    return sum(path.stat().st_size for path in place.glob("objects/pack/*"))


@functools.cache
def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise FileNotFoundError("git is needed for repositories, and is not on the path")
    return found


@contextmanager
def _locked(name: str) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True, mode=0o700)
    with (root() / f".{name}.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
