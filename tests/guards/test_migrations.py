"""What the migrations make is what the models say, and old code can go on beside it (docs/upgrading.md)."""

from __future__ import annotations

import ast
import re

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import NullPool, create_engine, inspect

from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db import migrations, text_search
from project_service.kit.db.base import MIGRATIONS, Base
from project_service.kit.db.revisions import VERSION_TABLE, newest_revision
from project_service.kit.db.session import db
from tests.conftest import make_app
from tests.support.databases import create_database
from tests.support.sample_data import make_project

FIRST = "0001_first_tables.py"
SEARCH_TABLES = tuple(index.name for index in text_search.INDEXES)  # of SQLite; no model has them
TAKES_AWAY = {"drop_column", "drop_table", "rename_table"}
CHANGES = re.compile(r"\b(DROP|RENAME|ALTER|NOT NULL|UNIQUE)\b", re.IGNORECASE)
DEMANDS = {"create_unique_constraint", "create_check_constraint", "create_foreign_key"}


# every property of columns, constraints and indexes, as PostgreSQL writes it
POSTGRESQL_SCHEMA = """
    SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull::text, attidentity::text,
           attcollation::regcollation::text, pg_get_expr(adbin, adrelid)
    FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid AND relkind = 'r' AND relnamespace = 'public'::regnamespace
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attnum > 0 AND NOT attisdropped
    UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL, NULL
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT tablename, indexname, indexdef, NULL, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'public'
"""


def schema_of(connection):
    """Every column, constraint and index of a database, by table."""
    if connection.dialect.name == "postgresql":
        return {tuple(row) for row in connection.exec_driver_sql(POSTGRESQL_SCHEMA) if row[0] != VERSION_TABLE}
    rows = connection.exec_driver_sql("SELECT tbl_name, type, sql FROM sqlite_master WHERE type IN ('table', 'index')")
    return {
        (table, kind, part)
        for table, kind, statement in rows
        if statement and table not in (VERSION_TABLE, "sqlite_sequence") and not table.startswith(SEARCH_TABLES)
        for part in (definitions_of(statement) if kind == "table" else [plain(statement)])
    }


def definitions_of(statement):
    """The columns and constraints of a CREATE TABLE statement."""
    depth, parts = 0, [""]
    for character in statement[statement.index("(") + 1 : statement.rindex(")")]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [plain(part) for part in parts]


def plain(statement):
    """An SQL text without needless spaces."""
    return " ".join(statement.split()).replace("( ", "(").replace(" )", ")")


@pytest.mark.both_databases
def test_the_migrations_create_what_the_models_declare(app, backend, tmp_path):
    url = create_database("models") if backend == "postgresql" else f"sqlite:///{tmp_path / 'models.db'}"
    models = create_engine(url, poolclass=NullPool)
    Base.metadata.create_all(models)

    with db.engine.connect() as migrated, models.connect() as created:
        found, declared = schema_of(migrated), schema_of(created)

    assert (found - declared, declared - found) == (set(), set())
    assert len(declared) > 700


@pytest.mark.both_databases
def test_audit_events_have_a_trigger_that_refuses_updates(app, backend):
    catalog, kind = ("pg_trigger", "tgname") if backend == "postgresql" else ("sqlite_master", "name")
    with db.engine.connect() as connection:
        names = connection.exec_driver_sql(f"SELECT {kind} FROM {catalog}").scalars().all()

    assert "audit_events_append_only" in names


@pytest.mark.both_databases
def test_a_downgrade_leaves_no_table(backend, tmp_path):
    app = make_app(backend, tmp_path)
    with app.app_context():
        migrations.downgrade("base")
        with db.engine.connect() as connection:
            assert inspect(connection).get_table_names() == [VERSION_TABLE]
        migrations.upgrade()
        db.engine.dispose()


def test_the_newest_revision_is_that_of_alembic():
    assert newest_revision() == ScriptDirectory(str(MIGRATIONS)).get_current_head()


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


def test_changes_of_a_table_keep_what_refers_to_its_rows(tmp_path):
    app = make_app("sqlite", tmp_path)
    with app.app_context():
        project = make_project("kept")
        milestone = Milestone(project_id=project.id, iid=1, title="Opening day")
        db.session.add(Issue(project_id=project.id, iid=1, title="Oil the till", milestone=milestone))
        db.session.commit()
        db.session.close()

        migrations.downgrade("0040")
        migrations.upgrade()

        with db.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT milestone_id FROM issues").scalars().all() == [1]
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        db.engine.dispose()
