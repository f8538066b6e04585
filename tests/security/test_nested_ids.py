"""Things of one project under the address of another: an owner of the one reaches nothing of the other.

Ids of the other project begin far above those of ours, at the same number in every table: one number stands for a row
of each. These numbers, and names of the first and the last row of each table, are tried in each place of each address.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from sqlalchemy import Integer, String, func, select, text

from project_service.access.guards import FINDERS
from project_service.domain.access_levels import Role
from project_service.domain.tracker.counters import Counter
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, snapshot, unit_of_work
from project_service.runtime.backups import tables
from tests.support import sample_data
from tests.support.route_survey import PART, api_rules, body_of, sent
from tests.support.sample_data import OLIVE
from tests.support.visitors import page_rules

pytestmark = pytest.mark.sqlite_only

FAR = 100_000  # how far above every id there is
# written by every request
RESTLESS = {"users", "personal_access_tokens", "browser_sessions", "feature_gates", "application_settings"}

OWN_NAMES = re.compile("/(url_variables|custom_headers)/")  # any name may be set at a hook of one's own


@pytest.fixture
def far(filled):
    """The number above which ids are those of the other project: all ids of what is there already are well below it."""
    numbered = [table for table in Base.metadata.sorted_tables if "id" in table.columns]
    numbered = [table for table in numbered if isinstance(table.columns["id"].type, Integer)]
    with unit_of_work():
        far = FAR + max(db.session.scalar(select(func.max(table.columns["id"]))) or 0 for table in numbered)
        for table in numbered:
            db.session.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
            counted = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
            db.session.execute(counted, {"name": table.name, "last": far})
    return far


@pytest.fixture
def theirs(far, filled, people, project):
    """A project of other people, with something in every list, and ids far above ours."""
    group = sample_data.make_group("others")
    made = sample_data.make_project("theirs", group)
    with unit_of_work():
        for kind in db.session.scalars(select(Counter.kind).where(Counter.project_id == project.id)):
            db.session.add(Counter(project_id=made.id, kind=kind, last=far))
    sample_data.fill_lists(made, group, people, filled, mark="theirs")
    return made


def own_values(far):
    """The ids of the rows of the other project, and the names of the first and the last row of each table."""
    values = set()
    with snapshot() as connection:
        for table in Base.metadata.sorted_tables:
            if "id" not in table.columns:
                continue
            rows = connection.execute(select(table).where(table.columns["id"] > far).order_by("id")).mappings().all()
            values |= {
                row[column.name] for row in rows for column in table.columns if is_id(column, row[column.name], far)
            }
            ends = rows[:1] + rows[1:][-1:]
            values |= {
                row[column.name] for row in ends for column in table.columns if is_name(column, row[column.name])
            }
    return values


def is_id(column, value, far):
    """Whether a column has a number of the other project: an id, or one that counts within the project."""
    return isinstance(column.type, Integer) and (value or 0) > far


def is_name(column, value):
    """Whether a column has a name that is used in the other project only."""
    return isinstance(column.type, String) and "theirs" in str(value) and len(value) < 60


def state():
    """All rows that were there, but those that change with every request."""
    with snapshot() as connection:
        return {
            table.name: sorted(line for _, chunk in tables.dump(connection, table) for line in chunk.splitlines()[1:])
            for table in tables.tables(connection)
            if table.name not in RESTLESS
        }


def nested(path):
    """The parts of a path behind its subject."""
    parts = PART.findall(path)
    return parts[1:] if parts and parts[0] in FINDERS else []


@pytest.fixture
def mine(project, group, people):
    """Everything is olive's: she owns the group, and the project through it."""
    assert sample_data.ROLES[OLIVE] == Role.OWNER
    return {"project": project.id, "group": group.id, "namespace": group.id}


def test_nested_ids_of_other_projects_are_refused_by_the_api(app, far, theirs, mine, document, as_):
    client, values, reached, tried = as_(OLIVE), own_values(far), {}, 0
    before = state()

    for method, path, _rule in api_rules(app):
        for part in nested(path):
            if part == "key" and OWN_NAMES.search(path):
                continue
            for value in values:
                address = filled(path, mine, part, value)
                body = body_of(document, method, path)
                response = client.open(method, address, **(sent(body) if body else {}))
                tried += 1
                if response.status_code < 400 and response.json not in ([], None):
                    reached[method, path, value] = response.text[:200]

    assert reached == {}
    assert {name for name, rows in state().items() if rows != before[name]} == set()
    assert (len(values) > 20, tried > 500) == (True, True)


def filled(path, mine, part, value):
    """The address with ours in front and theirs in one place; every other place has a 1."""
    subject = PART.findall(path)[0]
    path = path.replace(f"<{subject}>", str(mine[subject]), 1)
    path = re.sub(rf"<(?:\w+:)?{part}>", lambda _: quote(str(value), safe=""), path)
    return PART.sub("1", path)


def test_nested_ids_of_other_projects_are_refused_on_pages(app, far, theirs, project, group, people, visit):
    visitor, reached, tried = visit(OLIVE), {}, 0
    values = [value for value in own_values(far) if isinstance(value, int)]
    mine = {"project": "acme/shop", "group": "acme"}
    before, token = state(), visitor.csrf_token()

    for method in ("GET", "POST"):
        for rule in page_rules(app, method):
            for part in nested(rule.rule):
                for value in values:
                    address = filled(rule.rule, mine, part, value)
                    response = visitor.open(method, address, data={"csrf_token": token} if method == "POST" else None)
                    tried += 1
                    if response.status_code < 400:
                        reached[method, rule.rule, value] = response.status_code

    assert reached == {}
    assert {name for name, rows in state().items() if rows != before[name]} == set()
    assert tried > 200


def test_ids_of_other_projects_in_parameters_are_refused(app, far, theirs, mine, document, as_):
    """The same for what bodies name: a milestone, a pipeline, an issue of another project."""
    client, tried = as_(OLIVE), 0
    ids = [value for value in own_values(far) if isinstance(value, int)]

    for method, path, _rule in api_rules(app, "POST", "PUT", "PATCH"):
        if not PART.findall(path) or PART.findall(path)[0] not in FINDERS:
            continue
        for name in id_names(document, method, path):
            for value in ids:
                body = body_of(document, method, path) | {name: [value] if name.endswith("_ids") else value}
                assert client.open(method, filled(path, mine, "", ""), **sent(body)).status_code < 500
                tried += 1

    assert (across(mine["project"], theirs.id), tried > 50) == ([], True)


def across(ours, theirs):
    """Rows of one project that refer to rows of the other, by the foreign keys of all tables."""
    found = []
    with snapshot() as connection:
        for table in Base.metadata.sorted_tables:
            for key in table.foreign_keys if "project_id" in table.columns else ():
                other = key.column.table
                if "project_id" in other.columns and key.parent.name != "project_id":
                    target = other.alias()
                    joined = select(key.parent).join(target, target.columns[key.column.name] == key.parent)
                    between = joined.where(table.columns.project_id == ours, target.columns.project_id == theirs)
                    found += [(table.name, key.parent.name, value) for value in connection.scalars(between)]
    return found


def id_names(document, method, path):
    """The names of ids in a body, but those of people and groups, who may be anybody."""
    operation = document["paths"]["/api/v4" + PART.sub(r"{\1}", path)][method.lower()]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        anybody = ("user_id", "group_id", "owner_id", "creator_id", "namespace_id", "parent_id")
        return [
            name
            for name in schema["properties"]
            if re.search(r"_ids?$", name) and name not in (*anybody, "assignee_ids")
        ]
    return []
