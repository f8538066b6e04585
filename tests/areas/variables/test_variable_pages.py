"""Pages of variables of projects, groups and the instance."""

from __future__ import annotations

import html
import re

import pytest

from project_service.areas.variables.forms import broken_mask_rules
from project_service.areas.variables.models import GroupVariable, InstanceVariable, Variable
from project_service.domain.audit.models import AuditEvent
from project_service.domain.tracker.environments import Environment
from project_service.kit.db.session import db
from tests.support.sample_data import ADA, MAX, OLIVE, reload
from tests.support.visitors import store

PROJECT, GROUP, INSTANCE = "/acme/shop/-/settings/ci_cd", "/groups/acme/-/settings/ci_cd", "/admin/ci_cd"
JOB = f"{PROJECT}/job_variables"
FIELDS = {"key": "A", "value": "a\r\nlong-value", "variable_type": "env_var", "environment_scope": "prod/*"}
EACH_LEVEL = pytest.mark.parametrize(
    ("page", "model"), [(PROJECT, Variable), (GROUP, GroupVariable), (INSTANCE, InstanceVariable)]
)


@pytest.fixture
def admin(visit):
    return visit(ADA)


@EACH_LEVEL
def test_a_variable_is_added_changed_and_deleted(page, model, admin, project, group):
    assert admin.send(f"{page}/variables", **FIELDS, protected="y", description="Why").location == page
    variable = db.session.query(model).one()
    assert (variable.value, variable.protected, variable.description) == ("a\nlong-value", True, "Why")
    assert variable.environment_scope == ("*" if model is InstanceVariable else "prod/*")
    one = f"{page}/variables/{variable.id}"
    assert "a\nlong-value" in admin.get(f"{one}/edit").text

    assert admin.send(f"{one}/edit", **FIELDS | {"value": "other-value"}, masked="y").location == page
    changed = reload(variable)
    assert (changed.value, changed.masked, changed.protected) == ("other-value", True, False)

    assert "Delete the variable A" in admin.get(f"{one}/delete").text
    assert admin.send(f"{one}/delete").location == page
    assert "There are no variables yet." in admin.get(page).text


@EACH_LEVEL
def test_a_refused_form_is_shown_again(page, model, admin, project, group):
    response = admin.send(f"{page}/variables", **FIELDS | {"key": "no key"})

    assert (response.status_code, db.session.query(model).count()) == (422, 0)
    assert "can contain only letters, digits and &#39;_&#39;." in response.text
    assert "long-value" in response.text


@pytest.mark.parametrize(("page", "model"), [(PROJECT, Variable), (GROUP, GroupVariable)])
def test_a_hidden_value_is_set_once_and_never_shown(page, model, admin, project, group):
    admin.send(f"{page}/variables", **FIELDS | {"value": "secret-value"}, masked_and_hidden="y")
    variable = db.session.query(model).one()
    edit = f"{page}/variables/{variable.id}/edit"
    assert (variable.masked, variable.hidden) == (True, True)

    texts = [admin.get(address).text for address in (page, f"{page}?reveal=1", edit)]
    assert admin.send(edit, **FIELDS | {"value": ""}, raw="y").status_code == 302

    assert not any("secret-value" in text for text in texts)
    assert all(label not in texts[2] for label in ("Mask variable", "Mask and hide variable"))
    changed = reload(variable)
    assert (changed.value, changed.raw, changed.masked, changed.hidden) == ("secret-value", True, True, True)


def test_instance_variables_have_no_scopes_or_hidden_values(admin, group):
    text = admin.get(INSTANCE).text

    assert not re.search("Environment scope|hide variable", text)


@EACH_LEVEL
def test_showing_masked_values_is_audited(page, model, admin, project, group):
    owner = {Variable: {"project_id": project.id}, GroupVariable: {"namespace_id": group.id}, InstanceVariable: {}}
    scopes = {} if model is InstanceVariable else {"hidden": False}
    variable = store(model(key="A", value="secret-value", masked=True, **owner[model], **scopes))
    store(model(key="B", value="plain", **owner[model]))

    for address in (page, f"{page}?reveal=1", f"{page}/variables/{variable.id}/edit"):
        admin.get(address)

    events = db.session.query(AuditEvent).filter_by(event_name="variable_viewed_page").all()
    assert [event.details["variables"] for event in events] == ["A", "A"]


def test_settings_pages_of_a_group_link_to_each_other(admin, group):
    text = admin.get(GROUP).text

    assert f'<a href="{GROUP}" aria-current="page">CI/CD</a>' in text
    assert '<a href="/groups/acme/-/edit">General</a>' in text
    assert '<a href="/groups/acme/-/edit" aria-current="page">Settings</a>' in text


@pytest.fixture
def levels(admin, project, group):
    """The key A at three levels, and keys of one level each."""
    store(InstanceVariable(key="A", value="of-instance"))
    store(InstanceVariable(key="I", value="instance-only"))
    store(GroupVariable(namespace_id=group.id, key="A", value="of-the-group"))
    store(GroupVariable(namespace_id=group.id, key="G", value="group-secret", masked=True))
    store(Variable(project_id=project.id, key="A", value="of-project", environment_scope="prod*"))
    store(Variable(project_id=project.id, key="P", value="for-protected", protected=True))
    store(Variable(project_id=project.id, key="H", value="never-shown", masked=True, hidden=True))


def keys(text):
    return re.findall(r'<td class="long"><code>(\w+)</code>', text)


def test_the_page_shows_job_variables_and_overridden_ones(maintainer, levels):
    text = maintainer.get(f"{JOB}?environment=production&reveal=1").text

    assert keys(text) == ["A", "G", "H", "I"]
    row = re.sub(r"<[^>]+>|\s+", " ", text[text.index("<code>A</code>") : text.index("<code>G</code>")])
    assert re.sub(r"\s+", " ", row).split(" Expanded ")[1].split(" G")[0].strip() == (
        "of-project this project prod* from acme * from the instance"
    )
    assert not re.search("of-the-group|of-instance", text)
    assert "never-shown" not in text
    assert keys(maintainer.get(f"{JOB}?environment=production&protected=true").text) == ["A", "G", "H", "I", "P"]
    assert "of-project" not in maintainer.get(f"{JOB}?reveal=1").text


def test_overridden_group_values_are_shown_to_their_managers(visit, admin, levels):
    address = f"{JOB}?environment=production&reveal=1"
    shown = [set(re.findall("of-[-a-z]+", visitor.get(address).text)) for visitor in (visit(MAX), visit(OLIVE), admin)]

    assert shown == [{"of-project"}, {"of-project", "of-the-group"}, {"of-project", "of-the-group", "of-instance"}]


def test_job_values_are_concealed_and_revealing_them_is_audited(maintainer, levels):
    assert "group-secret" not in maintainer.get(JOB).text
    assert "group-secret" in maintainer.get(f"{JOB}?reveal=1").text

    events = db.session.query(AuditEvent).filter_by(event_name="variable_viewed_page").all()
    assert [event.details["variables"] for event in events] == ["G"]


@pytest.mark.parametrize(
    ("form", "name", "line"),
    [
        ("json", "variables.json", '"key":"G"'),
        ("dotenv", ".env", "G=group-secret\n"),
        ("docker", "docker.env", "G=group-secret\n"),
        ("shell", "variables.sh", "export G='group-secret'\n"),
        ("systemd", "systemd.env", "G=group-secret\n"),
    ],
)
def test_job_variables_are_downloaded(form, name, line, maintainer, levels):
    response = maintainer.get(f"{JOB}/download?environment=production&format={form}")

    assert response.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert response.headers["Cache-Control"] == "no-store"
    assert (line in response.text, "never-shown" in response.text) == (True, False)
    assert db.session.query(AuditEvent).filter_by(event_name="variable_viewed_page").count() == 1


def test_only_known_formats_are_downloaded(maintainer, levels):
    assert maintainer.get(f"{JOB}/download?format=xml").status_code == 404


def test_the_page_suggests_environments_and_commands(maintainer, project):
    store(Environment(project_id=project.id, name="review/a b", slug="review"))

    text = html.unescape(maintainer.get(f"{JOB}?environment=review/a+b&protected=true").text)

    assert '<option value="review/a b">' in text
    assert f"/projects/{project.id}/variables/effective?environment=review%2Fa+b&protected=true&format=dotenv'" in text
    assert "project-service variables export acme/shop --environment 'review/a b' --protected" in text
    assert "A job gets no variables here." in text


def test_settings_show_inherited_variables_without_values(visit, admin, levels):
    maintainer_page, admin_page = visit(MAX).get(f"{PROJECT}?reveal=1").text, admin.get(f"{PROJECT}?reveal=1").text

    assert "<code>G</code>" in maintainer_page
    assert "group-secret" not in maintainer_page
    assert ("<code>I</code>" in maintainer_page, "<code>I</code>" in admin_page) == (False, True)
    assert (f'href="{GROUP}"' in maintainer_page, f'href="{GROUP}"' in admin_page) == (False, True)


def test_inherited_variables_that_the_project_overrides_are_struck_through(admin, levels, project):
    store(Variable(project_id=project.id, key="G", value="own"))

    text = admin.get(PROJECT).text

    assert "<s><code>G</code></s>" in text
    assert "<s><code>A</code></s>" not in text  # the project has it for some environments only


@pytest.mark.parametrize(
    ("value", "raw", "expected"),
    [
        ("short one", False, "the space is not allowed in a masked value"),
        ("a b", True, "must be at least 8 characters to be masked; the space is not allowed in a masked value"),
        ("<a>;{b}-longer", False, "“<”, “>”, “;” and others are not allowed in a masked value"),
        ("fine-enough", False, ""),
    ],
    ids=["space", "short", "many", "fine"],
)
def test_a_refused_mask_names_the_rules(value, raw, expected):
    assert broken_mask_rules(value, raw=raw) == expected
