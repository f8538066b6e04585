"""Links between related issues: the table, and how links are made and removed."""

from __future__ import annotations

from sqlalchemy import ForeignKey, UniqueConstraint, func, or_, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, Unprocessable

RELATES_TO = "relates_to"
MAX_LINKS = 100


class IssueLink(Timestamps, Model):
    """Two related issues, in either order once; both issues show it."""

    __tablename__ = "issue_links"
    __table_args__ = (UniqueConstraint("source_id", "target_id"),)

    source_id: Mapped[int] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"))
    source: Mapped[Issue] = relationship(foreign_keys=[source_id])
    target_id: Mapped[int] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"), index=True)
    target: Mapped[Issue] = relationship(foreign_keys=[target_id])

    def other(self, issue_id: int) -> int:
        """The id of the issue that one of the two is linked to."""
        return self.target_id if self.source_id == issue_id else self.source_id


def links_of(issue: Issue) -> list[IssueLink]:
    """The links of an issue, the oldest first."""
    either = or_(IssueLink.source_id == issue.id, IssueLink.target_id == issue.id)
    ordered = select(IssueLink).where(either).order_by(IssueLink.created_at, IssueLink.id)
    return list(db.session.scalars(ordered))


def link_issues(author: User, source: Issue, target: Issue) -> IssueLink:
    """Link two issues, with a system note on each.

    Raises:
        Conflict: they are linked already.
        Unprocessable: it is the same issue, or one has ``MAX_LINKS`` links.

    """
    reference = _reference(target, source)
    if source.id == target.id:
        raise Unprocessable(f"{reference} cannot be added: cannot be related to itself")
    for issue in sorted((source, target), key=lambda each: each.id):
        lock_row(issue, "confidential")
    conflict = Conflict("Issue(s) already assigned")
    linked_ids = [link.other(source.id) for link in links_of(source)]
    if target.id in linked_ids:
        raise conflict
    either = or_(IssueLink.source_id == target.id, IssueLink.target_id == target.id)
    count = db.session.scalar(select(func.count()).select_from(IssueLink).where(either)) or 0
    if max(len(linked_ids), count) >= MAX_LINKS:
        limit = f"This issue would exceed the maximum number of linked issues ({MAX_LINKS})."
        raise Unprocessable(f"{reference} cannot be added: {limit}")
    new = IssueLink(source_id=source.id, source=source, target_id=target.id, target=target)
    link = add_unique(new, conflict)
    _note_change(author, source, target, "marked this issue as related to {}")
    return link


def remove_link(author: User, link: IssueLink) -> None:
    """Remove a link, with a system note on both issues."""
    delete_locked(link)
    _note_change(author, link.source, link.target, "removed the relation with {}")


def _note_change(author: User, source: Issue, target: Issue, text: str) -> None:
    """Add system notes; they are internal if readers of one issue may not see the other."""
    for issue, other in ((source, target), (target, source)):
        note = issue_rules.add_system_note(author, issue, text.format(_reference(other, issue)))
        note.confidential = other.confidential or other.project_id != issue.project_id
        issue.updated_at = clock.now()
    db.session.flush()


def _reference(issue: Issue, seen_from: Issue) -> str:
    own = f"#{issue.iid}"
    return own if issue.project_id == seen_from.project_id else f"{issue.project.full_path}{own}"
