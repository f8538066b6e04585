"""Comments on errors: notes of the tracker, without events of activity feeds."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import joinedload

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.references import mentions
from project_service.access.rules import may_change_note
from project_service.areas.error_tracking.errors.models import TARGET, TrackedError
from project_service.domain.accounts.users import User
from project_service.domain.todos import Todo
from project_service.domain.tracker.issue_rules import check_note
from project_service.domain.tracker.notes import Note
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http import urls
from project_service.kit.http.errors import Forbidden, RecordNotFound


def comments_on(error: TrackedError) -> Select[Note]:
    """The comments on an error, oldest first."""
    mine = select(Note).where(Note.noteable_type == TARGET, Note.noteable_id == error.id)
    loaded = joinedload(Note.author), joinedload(Note.project)
    return mine.order_by(Note.created_at, Note.id).options(*loaded, NO_LAZY_LOADING)


def find_comment(error: TrackedError, note_id: int) -> Note:
    """One of these comments; raises ``RecordNotFound``."""
    return one(comments_on(error).where(Note.id == note_id), RecordNotFound())


def find_changeable(caller: Caller, error: TrackedError, note_id: int) -> Note:
    """One of these comments, if the caller may change it; raises ``Forbidden``."""
    note = find_comment(error, note_id)
    if not may_change_note(caller, note):
        raise Forbidden
    return note


def comment(author: User, error: TrackedError, body: str) -> Note:
    """Comment on an error."""
    check_note(Note(body=body))
    note = Note(
        project_id=error.project_id,
        noteable_type=TARGET,
        noteable_id=error.id,
        body=body,
        author_id=author.id,
        author=author,
        extra=None,
    )
    db.session.add(note)
    db.session.flush()
    _notify(author, error, note)
    return note


def edit(author: User, error: TrackedError, note: Note, body: str) -> Note:
    """Change the text of a comment; users whom only the new text mentions are notified."""
    check_note(Note(body=body))
    former, note.body = note.body, body
    db.session.flush()
    _notify(author, error, note, former)
    return note


def move(from_id: int, into_id: int) -> list[int]:
    """Put the comments of an error under another one; return their ids."""
    mine = update(Note).where(Note.noteable_type == TARGET, Note.noteable_id == from_id)
    return list(db.session.scalars(mine.values(noteable_id=into_id, updated_at=Note.updated_at).returning(Note.id)))


def move_back(note_ids: Collection[int], error_id: int) -> None:
    """Put comments under another error again."""
    mine = update(Note).where(Note.noteable_type == TARGET, Note.id.in_(note_ids))
    db.session.execute(mine.values(noteable_id=error_id, updated_at=Note.updated_at))


def _notify(author: User, error: TrackedError, note: Note, former: str | None = None) -> None:
    mentions.notify(
        mentions.mentioned_users(
            note.body, lambda user: allowed(user, Ability.READ_ERRORS, error.project), former=former
        ),
        author,
        error.project,
        (TARGET, error.id),
        title=error.title,
        address=urls.absolute(f"{error.path}?note={note.id}#note_{note.id}"),
        text=note.body,
        note=note,
    )


def forget(error_ids: Collection[int]) -> None:
    """Remove the comments on errors that are removed, and the to-do items about them."""
    about = delete(Todo).where(Todo.target_type == TARGET, Todo.target_id.in_(error_ids))
    db.session.execute(about.execution_options(synchronize_session=False))
    mine = delete(Note).where(Note.noteable_type == TARGET, Note.noteable_id.in_(error_ids))
    db.session.execute(mine.execution_options(synchronize_session=False))
