"""What the migrations make is what the models say, and old code can go on beside it (docs/upgrading.md)."""

from __future__ import annotations

import ast
import re
import warnings

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from project_service.kit.db.base import MIGRATIONS, Base
from project_service.kit.db.revisions import newest_revision
from project_service.kit.db.session import db

FIRST = "0001_first_tables.py"
TAKES_AWAY = {"drop_column", "drop_table", "rename_table"}
CHANGES = re.compile(r"\b(DROP|RENAME|ALTER|NOT NULL|UNIQUE)\b", re.IGNORECASE)
DEMANDS = {"create_unique_constraint", "create_check_constraint", "create_foreign_key"}


@pytest.mark.both_databases
def test_the_migrations_match_the_models(app):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLite cannot tell its expression indexes; the next test looks for them
        with db.engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_newest_revision_is_that_of_alembic():
    assert newest_revision() == ScriptDirectory(str(MIGRATIONS)).get_current_head()


@pytest.mark.both_databases
def test_every_index_of_the_models_is_in_the_database(app):
    for table in Base.metadata.sorted_tables:
        statement = f"SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table.name}'"
        with db.engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                found = set(connection.exec_driver_sql(statement).scalars())
            else:
                found = {index["name"] for index in inspect(connection).get_indexes(table.name)}
        assert {index.name for index in table.indexes} <= found


def value_of(call, name):
    """What a call says for a keyword; ``None`` when it does not say it."""
    return next((ast.unparse(each.value) for each in call.keywords if each.arg == name), None)


def narrowings(source):
    """What a migration does that code of the release before could stumble over."""
    upgrade = next(node for node in ast.parse(source).body if getattr(node, "name", "") == "upgrade")
    batches = {
        inner: ast.unparse(node.items[0].context_expr.args[0])
        for node in ast.walk(upgrade)
        if isinstance(node, ast.With) and node.items[0].context_expr.args
        for inner in ast.walk(node)
    }
    calls = [node for node in ast.walk(upgrade) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    new = {ast.unparse(call.args[0]) for call in calls if call.func.attr == "create_table"}
    named = {
        node.targets[0].id: node.value
        for node in ast.walk(upgrade)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    added = {
        ast.unparse(call.args[-1].args[0])
        for call in calls
        if call.func.attr == "add_column" and call.args[-1:]
        if isinstance(call.args[-1], ast.Call)
    }
    # old code leaves these columns empty, and empty values are never equal
    empty = {
        ast.unparse(call.args[-1].args[0])
        for call in calls
        if call.func.attr == "add_column" and isinstance(call.args[-1], ast.Call)
        if value_of(call.args[-1], "server_default") is None
    }
    for call in calls:
        words = [ast.unparse(each) for each in call.args]
        # a key on a column that is new is nothing that old code could break
        if call.func.attr == "create_foreign_key" and all(ast.unparse(each) in added for each in call.args[2].elts):
            continue
        if call.func.attr == "create_index" and empty & columns_of(call):
            continue
        if batches.get(call) in new or new & set(words):
            continue
        if narrows(call, words, named):
            yield ast.unparse(call)


def columns_of(call):
    """The columns of an index, as they are written."""
    return {ast.unparse(each) for argument in call.args if isinstance(argument, ast.List) for each in argument.elts}


def narrows(call, words, named):
    """Whether a call takes away what is there, or demands of old code what it does not know."""
    name = call.func.attr
    if name in TAKES_AWAY | DEMANDS:
        return True
    if name == "alter_column":
        return value_of(call, "nullable") == "False" or bool(
            value_of(call, "new_column_name") or value_of(call, "type_")
        )
    if name == "create_index":
        return value_of(call, "unique") == "True"
    if name == "add_column":
        column = named.get(words[-1], call.args[-1])
        return value_of(column, "nullable") == "False" and value_of(column, "server_default") is None
    return name == "execute" and CHANGES.search(" ".join(words)) is not None


LATER = [path for path in sorted((MIGRATIONS / "versions").glob("*.py")) if path.name != FIRST]


@pytest.mark.parametrize("path", LATER, ids=lambda path: path.stem)
def test_migrations_are_compatible_with_the_previous_release(path):
    source = path.read_text()

    assert list(narrowings(source)) == [] or re.search(r'^CONTRACTS = "[0-9.]+: .+"$', source, re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "stumbles"),
    [
        ("op.add_column('labels', sa.Column('colour', sa.Text(), nullable=True))", False),
        ("op.add_column('labels', sa.Column('colour', sa.Text(), nullable=False, server_default='red'))", False),
        ("op.add_column('labels', sa.Column('colour', sa.Text(), nullable=False))", True),
        ("op.drop_column('labels', 'colour')", True),
        ("op.drop_table('labels')", True),
        ("op.alter_column('labels', 'colour', nullable=False)", True),
        ("op.alter_column('labels', 'colour', nullable=True)", False),
        ("op.alter_column('labels', 'colour', new_column_name='color')", True),
        ("op.create_index('i', 'labels', ['colour'])", False),
        ("op.create_index('i', 'labels', ['colour'], unique=True)", True),
        (
            (
                "op.add_column('labels', sa.Column('a', sa.Text(), nullable=True))\n"
                "    op.create_index('i', 'labels', ['colour', 'a'], unique=True)"
            ),
            False,
        ),
        (
            (
                "op.add_column('labels', sa.Column('a', sa.Text(), nullable=True, server_default='x'))\n"
                "    op.create_index('i', 'labels', ['colour', 'a'], unique=True)"
            ),
            True,
        ),
        ("op.create_table('labels')\n    op.create_index('i', 'labels', ['colour'], unique=True)", False),
        ("op.execute('ALTER TABLE labels DROP COLUMN colour')", True),
        ("with op.batch_alter_table('labels') as batch:\n        batch.drop_column('colour')", True),
        (
            "with op.batch_alter_table('labels') as batch:\n        batch.create_index('i', ['colour'], unique=True)",
            True,
        ),
        ("it = sa.Column('colour', sa.Text(), nullable=False)\n    op.add_column('labels', it)", True),
    ],
)
def test_the_guard_detects_incompatible_migrations(change, stumbles):
    assert bool(list(narrowings(f"def upgrade():\n    {change}\n"))) is stumbles
