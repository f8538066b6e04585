"""The tables of CI/CD variables: of projects, of groups and of the instance."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.security.key_ring import Encrypted

ENV_VAR = "env_var"
FILE = "file"
ANY_SCOPE = "*"


class VariableColumns:
    """The columns that all variables have; the value is encrypted at rest."""

    key: Mapped[str]
    value: Mapped[str | None] = mapped_column(Encrypted)
    variable_type: Mapped[str] = mapped_column(default=ENV_VAR)
    protected: Mapped[bool] = mapped_column(default=False)
    masked: Mapped[bool] = mapped_column(default=False)
    raw: Mapped[bool] = mapped_column(default=False)
    description: Mapped[str | None]


class ScopedVariableColumns(VariableColumns):
    """The columns of variables that may be hidden and are for some environments only."""

    hidden: Mapped[bool] = mapped_column(default=False)
    environment_scope: Mapped[str] = mapped_column(default=ANY_SCOPE)


class Variable(ScopedVariableColumns, Model):
    """A variable for the jobs of a project's pipelines."""

    __tablename__ = "variables"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()

    __table_args__ = (
        UniqueConstraint("project_id", "key", "environment_scope"),
        Index("ix_variables_project_id", "project_id", "id"),
    )


class GroupVariable(Timestamps, ScopedVariableColumns, Model):
    """A variable for the jobs of all projects of a group and of its subgroups."""

    __tablename__ = "group_variables"

    namespace_id: Mapped[int] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Group] = relationship()

    __table_args__ = (
        UniqueConstraint("namespace_id", "key", "environment_scope"),
        Index("ix_group_variables_namespace_id", "namespace_id", "id"),
    )


class InstanceVariable(VariableColumns, Model):
    """A variable for the jobs of all projects; it has no scope and cannot be hidden."""

    __tablename__ = "instance_variables"

    hidden = False
    environment_scope = ANY_SCOPE

    __table_args__ = (UniqueConstraint("key"),)


AnyVariable = Variable | GroupVariable | InstanceVariable
VariableOwner = Project | Group | None  # None is the instance


def model_of(owner: VariableOwner) -> type[Variable] | type[GroupVariable] | type[InstanceVariable]:
    """Return the class of the variables of a project, a group or the instance."""
    if owner is None:
        return InstanceVariable
    return Variable if isinstance(owner, Project) else GroupVariable
