"""Changes of refs: names, and compare-and-swap in the transaction of the caller."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select

from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES, REF, TAGS
from project_service.domain.repositories.models import CODE, Repository, RepositoryRef
from project_service.domain.repositories.restoring import new_version
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, insert

ZERO = "0" * 40  # the object id of a ref that does not exist
BATCH = 500
MAX_NAME_BYTES = 1024
SHA = re.compile(r"[0-9a-f]{40}", re.IGNORECASE)
FAILED = "failed to update ref"
FUNNY = "funny refname"  # as git says it


@dataclass(frozen=True, slots=True)
class RefChange:
    """A ref as it is expected to be, and as it is to be; ``ZERO`` for one that does not exist."""

    name: str
    old: str
    new: str

    @property
    def is_branch(self) -> bool:
        """Whether it is a branch."""
        return self.name.startswith(BRANCHES)

    @property
    def is_tag(self) -> bool:
        """Whether it is a tag."""
        return self.name.startswith(TAGS)

    @property
    def short_name(self) -> str:
        """The name of the branch or tag."""
        return self.name.removeprefix(BRANCHES).removeprefix(TAGS)

    @property
    def creates(self) -> bool:
        """Whether the ref is new."""
        return self.old == ZERO and self.new != ZERO

    @property
    def deletes(self) -> bool:
        """Whether the ref is deleted."""
        return self.new == ZERO


def is_valid_name(short_name: str) -> bool:
    """Whether a branch or a tag may have a name (git check-ref-format; repositories reference, section 2.3)."""
    if short_name in ("", "HEAD", "@") or short_name.startswith(("-", BRANCHES, "refs/remotes/")):
        return False
    return len(short_name.encode()) <= MAX_NAME_BYTES and REF.fullmatch(short_name) is not None


def is_namespace(name: str) -> bool:
    """Whether a full name has only one part after ``refs/``.

    As in git no such ref is created: ``refs/tags`` would leave no room for any tag.
    """
    return name.count("/") < 2


def is_like_sha(short_name: str) -> bool:
    """Whether a name begins like the id of an object."""
    return SHA.match(short_name) is not None


def locked_repository(project: Project, kind: str = CODE) -> Repository:
    """Return the repository of a project, created if necessary, and lock it until the unit of work ends."""
    row = insert(Repository).values(project_id=project.id, kind=kind, version=new_version(), size=0)
    db.session.execute(row.on_conflict_do_nothing(index_elements=["project_id", "kind"]))
    of_kind = Repository.project_id == project.id, Repository.kind == kind
    repository = db.session.scalars(select(Repository).where(*of_kind)).one()
    lock_row(repository, "version", "size", "head")
    return repository


def compare_and_swap(
    repository: Repository, changes: Sequence[RefChange], peeled: Mapping[str, str], *, atomic: bool
) -> dict[str, str]:
    """Change the refs whose old value is still the expected one; return the failures by name.

    ``peeled`` has the objects that annotated tags lead to, by the id of the tag. With ``atomic`` one failure leaves all
    refs as they are. Callers hold the lock of ``locked_repository``.
    """
    current = _current(repository, [change.name for change in changes])
    failures = {change.name: FAILED for change in changes if current.get(change.name, ZERO) != change.old}
    failures |= _name_conflicts(repository, [change for change in changes if change.name not in failures])
    if failures and atomic:
        return {change.name: failures.get(change.name, "atomic push failure") for change in changes}
    wanted = [change for change in changes if change.name not in failures and change.old != change.new]
    _delete(repository, [change.name for change in wanted])
    rows = [
        {"repository_id": repository.id, "name": change.name, "target": change.new, "peeled": peeled.get(change.new)}
        for change in wanted
        if not change.deletes
    ]
    if rows:
        db.session.execute(insert(RepositoryRef), rows)
    if wanted:
        repository.version, repository.bundle_header = new_version(), None
    return failures


def has_branches(repository: Repository) -> bool:
    """Whether a repository has a branch."""
    return bool(_names_between(repository, BRANCHES, BRANCHES[:-1] + "0", limit=1))


def target_of(repository: Repository, name: str) -> str | None:
    """The object that a ref points to."""
    return _current(repository, [name]).get(name)


def _current(repository: Repository, names: Sequence[str]) -> dict[str, str]:
    targets: dict[str, str] = {}
    for start in range(0, len(names), BATCH):
        some = RepositoryRef.repository_id == repository.id, RepositoryRef.name.in_(names[start : start + BATCH])
        targets |= dict(db.session.execute(select(RepositoryRef.name, RepositoryRef.target).where(*some)).all())
    return targets


def _delete(repository: Repository, names: Sequence[str]) -> None:
    for start in range(0, len(names), BATCH):
        some = RepositoryRef.repository_id == repository.id, RepositoryRef.name.in_(names[start : start + BATCH])
        db.session.execute(delete(RepositoryRef).where(*some))


def _name_conflicts(repository: Repository, changes: Iterable[RefChange]) -> dict[str, str]:
    """Failures of new refs above or below another ref: ``a`` and ``a/b`` cannot both exist."""
    changes = list(changes)
    created = [change.name for change in changes if change.creates]
    if not created:
        return {}
    deleted = {change.name for change in changes if change.deletes}
    if len(created) > BATCH:
        existing = set(_names_between(repository, "", "\U0010ffff")) - deleted
    else:
        existing = {name for created_name in created for name in _related(repository, created_name, deleted)} - deleted
    failures: dict[str, str] = {}
    above = {parent for name in existing for parent in _parents(name)}
    for name in created:
        if name in above or not existing.isdisjoint(_parents(name)):
            failures[name] = FAILED
        else:
            existing.add(name)
            above.update(_parents(name))
    return failures


def _related(repository: Repository, name: str, deleted: Collection[str]) -> list[str]:
    """The refs above a name, and refs below it: so many that one stays when ``deleted`` are gone."""
    # "0" follows "/"
    below = _names_between(repository, f"{name}/", f"{name}0", limit=len(deleted) + 1)
    return [*_current(repository, _parents(name)), *below]


def _names_between(repository: Repository, first: str, end: str, limit: int | None = None) -> list[str]:
    between = RepositoryRef.name >= first, RepositoryRef.name < end
    statement = select(RepositoryRef.name).where(RepositoryRef.repository_id == repository.id, *between)
    return list(db.session.scalars(statement.limit(limit)))


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]
