"""Full paths of users, groups and projects: reserve, move and release them.

The table of routes makes a path unique, regardless of case; the checks before it only give better messages.
"""

from __future__ import annotations

from sqlalchemy import delete, func, select, update

from project_service.domain import instance_settings
from project_service.domain.access_levels import Visibility
from project_service.domain.memberships import Share
from project_service.domain.namespaces import (
    GROUP,
    Namespace,
    NamespaceAncestor,
    descendants_of,
    link_ancestors,
    namespace_by,
    namespaces,
)
from project_service.domain.projects import Project, RedirectRoute, Route, project_by, projects, projects_below
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, insert, unique
from project_service.kit.http.errors import Invalid, NotFound

MAX_PATH_LENGTH = 2048


def path_taken(full_path: str, *, besides: Namespace | Project | None = None) -> bool:
    """Whether a path is used by another namespace or project."""
    route = db.session.scalar(select(Route).where(Route.path == full_path.lower()))
    if route is None:
        return False
    if isinstance(besides, Project):
        return route.project_id != besides.id
    return besides is None or route.namespace_id != besides.id


def store_namespace(namespace: Namespace, parent: Namespace | None, violation: Exception) -> None:
    """Store a new namespace below its parent; ``violation`` is raised if its path is in use."""
    namespace.parent_id = parent.id if parent else None
    if parent is not None:
        lock_tree(parent)
    _name_namespace(namespace, parent)
    if path_taken(namespace.full_path):
        raise violation
    with unique(violation):
        db.session.add(namespace)
        db.session.flush()
        db.session.add(Route(path=namespace.full_path.lower(), namespace_id=namespace.id))
        _forget_former(namespace.full_path)
    link_ancestors(namespace)


def store_project(project: Project, violation: Exception) -> None:
    """Store a new project in its namespace."""
    lock_tree(project.namespace)
    project.full_path = _fitting(f"{project.namespace.full_path}/{project.path}")
    with unique(violation):
        db.session.add(project)
        db.session.flush()
        db.session.add(Route(path=project.full_path.lower(), project_id=project.id))
        _forget_former(project.full_path)


def move_project(project: Project, violation: Exception) -> None:
    """Follow a changed path of a project."""
    lock_tree(project.namespace)
    _lock_project(project)
    full_path = _fitting(f"{project.namespace.full_path}/{project.path}")
    with unique(violation):
        _rename_project(project, full_path)


def move_namespace(namespace: Namespace, violation: Exception) -> None:
    """Follow a changed path or name of a namespace, with all that is below it."""
    parent = db.session.get(Namespace, namespace.parent_id) if namespace.parent_id else None
    lock_tree(namespace, moving=True)
    if parent is not None:
        db.session.refresh(parent, ["full_path", "full_name"])
    before = namespace.full_path
    below = list(
        db.session.scalars(
            select(Namespace)
            .where(Namespace.id.in_(descendants_of(namespace)), Namespace.id != namespace.id)
            .order_by(func.length(Namespace.full_path))
            .execution_options(populate_existing=True)
        )
    )
    with unique(violation):
        _name_namespace(namespace, parent)
        by_id = {namespace.id: namespace}
        for child in below:
            by_id[child.id] = child
            _name_namespace(child, by_id[child.parent_id or 0])
        if namespace.full_path == before:
            return
        for renamed in by_id.values():
            _move_route(renamed)
        for project in db.session.scalars(select(Project).where(Project.id.in_(projects_below(namespace)))):
            _rename_project(project, _fitting(f"{by_id[project.namespace_id].full_path}/{project.path}"))


def start_deleting_project(project: Project) -> None:
    """Hide a project and release its path; a job removes the rest."""
    _lock_project(project)
    project.deleting_since = clock.now()
    db.session.execute(delete(Route).where(Route.project_id == project.id))
    db.session.flush()


def start_deleting_namespace(namespace: Namespace) -> None:
    """Hide a namespace and all that is below it, release the paths and remove the shares with these groups."""
    now = clock.now()
    lock_tree(namespace, moving=True)
    spaces, inside = descendants_of(namespace), projects_below(namespace)
    db.session.execute(delete(Share).where(Share.group_id.in_(spaces)))
    db.session.execute(delete(Route).where(Route.project_id.in_(inside)))
    db.session.execute(delete(Route).where(Route.namespace_id.in_(spaces)))
    db.session.execute(update(Project).where(Project.id.in_(inside)).values(deleting_since=now))
    db.session.execute(update(Namespace).where(Namespace.id.in_(spaces)).values(deleting_since=now))


def is_too_deep(parent: Namespace, deepest: int) -> bool:
    """Whether a child of ``parent`` would be nested more deeply than allowed."""
    depth = db.session.scalar(
        select(func.count()).select_from(NamespaceAncestor).where(NamespaceAncestor.namespace_id == parent.id)
    )
    return (depth or 0) >= deepest


def visibility_problem(visibility: int, parent: Namespace | None, kind: str) -> str | None:
    """The message if a group or project would be more visible than the group above it."""
    if parent is None or parent.kind == "user" or visibility <= parent.visibility:
        return None
    text, above = Visibility(visibility).text, Visibility(parent.visibility).text
    if kind == "group":
        return f"{text} is not allowed since the parent group has a {above} visibility."
    return f"{text} is not allowed in a {above} group."


def restriction_problem(visibility: int, by_admin: bool) -> str | None:
    """The message if the visibility is reserved to administrators."""
    text = Visibility(visibility).text
    if by_admin or text not in instance_settings.setting("restricted_visibility_levels"):
        return None
    return f"{text} has been restricted by your GitLab administrator"


def visibility_problem_below(namespace: Namespace) -> str | None:
    """The message if a subgroup or project is more visible than its group."""
    text = Visibility(namespace.visibility).text
    subgroups = namespaces().where(Namespace.parent_id == namespace.id, Namespace.visibility > namespace.visibility)
    if db.session.scalar(subgroups.limit(1)) is not None:
        return f"{text} is not allowed since there are sub-groups with higher visibility."
    inside = projects().where(Project.namespace_id == namespace.id, Project.visibility > namespace.visibility)
    if db.session.scalar(inside.limit(1)) is not None:
        return f"{text} is not allowed since this group contains projects with higher visibility."
    return None


def lock_tree(namespace: Namespace, *, moving: bool = False) -> None:
    """Lock the root above a namespace until the unit of work ends: shared, or exclusively for ``moving``.

    Otherwise, on PostgreSQL, a project that is created below a group while the group moves would keep the old path. Any
    number of requests may create something below a group at the same time. SQLite has one writer and no such locks.

    Raises:
        NotFound: the namespace has been deleted.

    """
    root = (
        select(Namespace.id)
        .join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Namespace.id)
        .where(NamespaceAncestor.namespace_id == namespace.id, Namespace.parent_id.is_(None))
        .with_for_update(of=Namespace, read=not moving, key_share=moving)
    )
    with db.session.no_autoflush:
        db.session.execute(root)
        db.session.refresh(namespace, ["full_path", "full_name", "deleting_since"])
    if namespace.deleting_since is not None:
        raise NotFound("Group" if namespace.kind == GROUP else "Namespace")


def _rename_project(project: Project, full_path: str) -> None:
    """Move the route of a project, and remember its former path for clients of git and senders of alerts."""
    former, path = project.full_path.lower(), full_path.lower()
    project.full_path = full_path
    db.session.execute(update(Route).where(Route.project_id == project.id).values(path=path))
    if former != path:
        redirect = insert(RedirectRoute).values(path=former, project_id=project.id)
        change = redirect.on_conflict_do_update(index_elements=["path"], set_={"project_id": project.id})
        db.session.execute(change)
        _forget_former(path)


def path_now_of(full_path: str) -> str | None:
    """Return the path, in lower case, of the project that had a path before, unless something else has taken it."""
    moved = select(func.lower(Project.full_path)).join(RedirectRoute, RedirectRoute.project_id == Project.id)
    is_taken = select(Route.path).where(Route.path == full_path.lower()).exists()
    return db.session.scalar(moved.where(RedirectRoute.path == full_path.lower(), ~is_taken))


def _forget_former(full_path: str) -> None:
    db.session.execute(delete(RedirectRoute).where(RedirectRoute.path == full_path.lower()))


def _lock_project(project: Project) -> None:
    """Lock a project; ``NotFound`` if it has been deleted."""
    with db.session.no_autoflush:
        lock_row(project, "deleting_since")
    if project.deleting_since is not None:
        raise NotFound("Project")


def _name_namespace(namespace: Namespace, parent: Namespace | None) -> None:
    namespace.full_path = _fitting(f"{parent.full_path}/{namespace.path}" if parent else namespace.path)
    namespace.full_name = f"{parent.full_name} / {namespace.name}" if parent else namespace.name


def _fitting(full_path: str) -> str:
    """Return the path, perhaps of something below a moved group; ``Invalid`` if it is too long for an index."""
    if len(full_path) > MAX_PATH_LENGTH:
        raise Invalid(path=f"is too long together with the groups above (maximum is {MAX_PATH_LENGTH} characters)")
    return full_path


def _move_route(namespace: Namespace) -> None:
    statement = update(Route).where(Route.namespace_id == namespace.id)
    db.session.execute(statement.values(path=namespace.full_path.lower()))


def find_by_path(full_path: str) -> Project | Namespace | None:
    """The project or namespace at a full path, in any case."""
    route = db.session.scalar(select(Route).where(Route.path == full_path.lower()))
    if route is None:
        return None
    if route.project_id is not None:
        return project_by(route.project_id)
    return namespace_by(route.namespace_id or 0)
