"""Every list, and every other address that is read, finds what it shows by an index, on both databases.

The addresses are those of the live route table; filters and orders are those of the API's own document, and on pages
those that their links and forms offer. Nobody has to register a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

import pytest
from sqlalchemy import event

from project_service.kit.db.session import db
from tests.guards.places import page_addresses, places_of, refused
from tests.support import many_rows, query_plans, sample_data
from tests.support.query_plans import READ, SORTED, WALKED
from tests.support.route_survey import offered, variations
from tests.support.sample_data import ADA, GUS, NOBODY, OLIVE

COPIES = 120  # of the whole world: some thousand rows
ORDERS = ("order_by=", "sort=")


@dataclass(frozen=True)
class Allowed:
    """What may be done to a table for want of an index, at which addresses, in which orders (all of them), and why."""

    what: str
    table: str
    rules: str
    why: str
    orders: str = ""

    def covers(self, fault, rule, order):
        """Whether this is what a plan does; the order of a list that is not told is called ``default``."""
        here = (fault.what, fault.table) == (self.what, self.table) and rule in self.rules.split()
        return here and (not self.orders or order in self.orders.split())


ALL = "the list of all there are, in the order of an index"
ADMINISTRATORS = "an order of all there are that administrators alone have"
NOTHING = "asks for nothing, and nothing is read"
OWN = "the memberships of a user are found by an index and are few; then they are sorted"
MERGED = "the first events of each project, as many as the page reaches to"
WITHIN = "found by an index, and sorted among its neighbours: an order that few ask for"
CHOICE = "the members of a project, 500 at most, by name"
FAILED = "those that failed, by an index that has no others"
LIMITED = "counts at most 10,000"
NEWEST = "the last one, by the index"
MEMBERS = (
    "/projects/<project>/members/all /groups/<group>/members/all"
    " /<path:project>/-/project_members /groups/<path:group>/-/group_members"
)
CHOICES = (
    "/<path:project>/-/issues/new /<path:project>/-/issues/<int:iid>/edit /<path:project>/-/alert_management"
    " /<path:project>/-/alert_management/<int:iid>/details"
    " /<path:project>/-/alert_management/<int:iid>/details/<any(overview,metrics,activity):part>"
    " /<path:project>/-/issues /<path:project>/-/issues/<int:iid> /<path:project>/-/error_tracking/<error_id>/details"
)
LABEL_LISTS = (
    "/<path:project>/-/issues/new /<path:project>/-/issues/<int:iid>/edit /<path:project>/-/labels"
    " /groups/<path:group>/-/labels"
)
ISSUE_PAGES = "/<path:project>/-/issues /<path:project>/-/issues/<int:iid>"
NOTIFICATIONS = (
    "/projects/<project>/notification_channels /groups/<group>/notification_channels"
    " /projects/<project>/notification_rules /groups/<group>/notification_rules"
    " /<path:project>/-/settings/notifications /groups/<path:group>/-/settings/notifications"
    " /<path:project>/-/settings/notifications/rules /groups/<path:group>/-/settings/notifications/rules"
)
OWN_AND_ABOVE = "those of a project or group and of the groups above it: each has few"
BELOW = "the messages of 30 days of some projects, found by an index of each and then sorted"
MESSAGES = (
    "/projects/<project>/notification_deliveries /groups/<group>/notification_deliveries /user/notification_deliveries"
)
SEARCHES = (
    "/search /groups/<group>/search /projects/<project>/search /groups/<group>/-/search /projects/<project>/-/search"
)
FOUND = (
    "10,000 at most by the index of texts, then sorted; else in the order of the list, the newest 20,000 of short words"
)
EXAMINATION = "/admin/health"  # looks for secrets in every table that has some
EXPORTS = "/projects/<project>/export /<path:project>/-/settings/general /<project_path:project>/download_export"
TOKENS = "personal_access_tokens"
TOKEN_PAGES = "/<path:project>/-/settings/access_tokens /groups/<path:group>/-/settings/access_tokens"
JOB_VARIABLES = "/<path:project>/-/settings/ci_cd/job_variables /<path:project>/-/settings/ci_cd/job_variables/download"
HOME, EACH = "/ /-/overview /<path:full_path>", "the first rows of each project, by an index, as many as are shown"
PANELS = (
    "memberships",
    "alerts",
    "tracked_errors",
    "tracked_findings",
    "issues",
    "issue_assignees",
    "projects",
    "anon_1",
    "anon_2",
)
ISSUES_ACROSS = "/issues /groups/<group>/issues /issues_statistics /groups/<group>/issues_statistics"
ALLOWED = (
    *(
        Allowed(what, table, SEARCHES, FOUND)
        for table in ("issues", "projects", "users", "users_search", "memberships", "namespaces")
        for what in (WALKED, SORTED, READ)
    ),
    Allowed(WALKED, "users", "/users /personal_access_tokens /admin/users /users/sign_in", ALL),
    Allowed(READ, "tasks", "/admin /admin/tasks", "counts all there are, for administrators alone"),
    Allowed(WALKED, TOKENS, "/personal_access_tokens", ALL),
    Allowed(WALKED, "projects", "/projects / /dashboard/projects /admin /admin/projects", ALL),
    Allowed(WALKED, "instance_variables", "/admin/ci/variables /admin/ci_cd", "25 at most"),
    Allowed(READ, "instance_variables", "/<path:project>/-/settings/ci_cd", "25 at most"),
    Allowed(SORTED, "namespace_ancestors", "/<path:project>/-/settings/ci_cd", WITHIN),
    Allowed(READ, "instance_variables", "/projects/<project>/variables/effective", "25 at most"),
    Allowed(READ, "instance_variables", JOB_VARIABLES, "25 at most"),
    Allowed(SORTED, "resource_bots", "/projects/<project>/access_tokens /groups/<group>/access_tokens", WITHIN, "sort"),
    Allowed(SORTED, "resource_bots", TOKEN_PAGES, WITHIN),
    Allowed(WALKED, "audit_events", "/audit_events /admin/audit_logs /admin/audit_logs.csv", ALL),
    Allowed(READ, "audit_events", "/audit_events /admin/audit_logs", LIMITED),
    Allowed(READ, "deliveries", "/admin", FAILED),
    Allowed(READ, "notification_channels", "/<path:full_path>", FAILED),
    Allowed(
        WALKED,
        "namespaces",
        "/groups /namespaces /dashboard/groups /projects/new /projects/new/import /admin /admin/groups",
        ALL,
    ),
    Allowed(WALKED, "namespaces", "/<path:project>/-/settings/general /<project_path:project>/download_export", ALL),
    Allowed(WALKED, "events", "/dashboard/projects /events", NOTHING),
    Allowed(SORTED, "anon_2", "/dashboard/projects /events", MERGED),
    Allowed(SORTED, "events", "/dashboard/projects /events", MERGED),
    Allowed(READ, "issues", "/projects/<project>/issues /projects/<project>/issues_statistics", NOTHING),
    Allowed(WALKED, "issues", "/projects/<project>/issues /issues /groups/<group>/issues", NOTHING),
    Allowed(READ, "issues", ISSUES_ACROSS, NOTHING),
    Allowed(WALKED, "issues", ISSUES_ACROSS, NEWEST),
    Allowed(READ, "projects", ISSUES_ACROSS, "the projects of administrators are all there are"),
    Allowed(WALKED, "projects", ISSUES_ACROSS, "the projects of administrators are all there are"),
    *(
        Allowed(SORTED, table, ISSUES_ACROSS, "the issues of some projects, found by an index of each and then sorted")
        for table in ("issues", "namespace_ancestors")
    ),
    Allowed(SORTED, "users", "/projects/<project>/issues/<iid>/participants", "the participants of one issue"),
    Allowed(READ, "users", "/users", ADMINISTRATORS, "name username created_at updated_at"),
    Allowed(READ, TOKENS, "/personal_access_tokens", ADMINISTRATORS),
    Allowed(SORTED, "users", "/users", ADMINISTRATORS, "name username created_at updated_at"),
    Allowed(SORTED, TOKENS, "/personal_access_tokens", ADMINISTRATORS, "sort"),
    Allowed(SORTED, "users", "/personal_access_tokens", OWN, "sort"),
    Allowed(SORTED, "projects", "/ /dashboard/projects", OWN),
    Allowed(WALKED, "users", "/admin", ALL),
    *(Allowed(READ, table, "/admin", LIMITED) for table in ("users", "projects", "namespaces")),
    *(Allowed(SORTED, table, HOME, EACH) for table in PANELS),
    *(
        Allowed(SORTED, table, "/groups/<path:group>/-/alert_statistics", "of a month and of several projects")
        for table in ("alerts", "namespace_ancestors")
    ),
    Allowed(SORTED, "namespaces", "/groups /dashboard/groups /namespaces", OWN),
    Allowed(SORTED, "namespaces", "/groups/<group>/subgroups", WITHIN, "id path similarity"),
    Allowed(SORTED, "namespaces", "/groups/<group>/descendant_groups", WITHIN),
    Allowed(SORTED, "projects", "/groups/<group>/projects /groups/<group>/projects/shared /groups/<group>", WITHIN),
    Allowed(
        SORTED, "namespaces", "/users/<user>/projects", WITHIN, "id name path similarity updated_at last_activity_at"
    ),
    Allowed(SORTED, "issues", "/projects/<project>/issues", WITHIN, "title due_date"),
    Allowed(SORTED, "notes", "/projects/<project>/issues/<iid>/notes", WITHIN, "updated_at"),
    Allowed(SORTED, "notes", "/projects/<project>/merge_requests/<iid>/notes", WITHIN, "updated_at"),
    Allowed(SORTED, "notes", "/projects/<project>/alert_management_alerts/<iid>/notes", WITHIN, "updated_at"),
    Allowed(SORTED, "notes", "/projects/<project>/error_tracking/errors/<error_id>/notes", WITHIN, "updated_at"),
    Allowed(
        SORTED,
        "alerts",
        "/<path:project>/-/alert_management /projects/<project>/alert_management_alerts",
        WITHIN,
        "updated_at ended_at",
    ),
    *(
        Allowed(SORTED, table, MEMBERS, "everybody counts once, by the highest role, which is known only then")
        for table in ("memberships", "namespace_ancestors")
    ),
    *(Allowed(SORTED, table, CHOICES, CHOICE) for table in ("memberships", "users", "namespace_ancestors")),
    Allowed(SORTED, "labels", LABEL_LISTS, OWN_AND_ABOVE),
    Allowed(SORTED, "namespace_ancestors", "/<path:project>/-/labels /groups/<path:group>/-/labels", OWN_AND_ABOVE),
    Allowed(SORTED, "issues", "/groups/<path:group>/-/milestones/<int:iid>", "those of one milestone, by its index"),
    Allowed(SORTED, "milestones", ISSUE_PAGES, OWN_AND_ABOVE),
    Allowed(SORTED, "labels", ISSUE_PAGES, "the labels of a project and of the groups above it, by title"),
    Allowed(SORTED, "error_release_deploys", "/<path:project>/-/error_tracking/releases", "of the releases of a page"),
    Allowed(
        SORTED, "tracked_error_merges", "/<path:project>/-/error_tracking/<error_id>/details", "those of one error"
    ),
    Allowed(SORTED, "security_components", "/<path:project>/-/security/dependencies", "the licenses of some reports"),
    Allowed(SORTED, "silences", "/groups/<path:group>/-/silences", OWN_AND_ABOVE),
    Allowed(SORTED, "milestones", "/<path:project>/-/milestones /groups/<path:group>/-/milestones", OWN_AND_ABOVE),
    *(
        Allowed(SORTED, table, NOTIFICATIONS, OWN_AND_ABOVE)
        for table in ("notification_channels", "notification_rules")
    ),
    Allowed(SORTED, "notification_deliveries", "/groups/<path:group>/-/settings/notifications/deliveries", BELOW),
    Allowed(READ, "notification_items", MESSAGES, "those of 30 days, where the messages about one alert are asked for"),
    Allowed(SORTED, "project_exports", EXPORTS, "a project has two at a time, one of which is the next"),
)


@pytest.fixture
def sent(app):
    """What is read while something is answered: statements, each with its first parameters."""
    found = {}

    def note(_connection, _cursor, statement, parameters, *_rest):
        if statement.lstrip().startswith(("SELECT", "WITH")):
            found.setdefault(statement, parameters)

    event.listen(db.engine, "before_cursor_execute", note)
    yield found
    event.remove(db.engine, "before_cursor_execute", note)


@pytest.fixture
def look(sent):
    """Asks for something, and judges the plans of what is then sent, each once; ``look.found`` has what is wrong."""
    judged, found = {}, {}

    def ask(get, rule, address, query=""):
        sent.clear()
        # an answer that did not change is not sent again
        response = get(f"{address}?{query}&run={len(judged)}")
        for statement, parameters in list(sent.items()):
            if statement not in judged:
                judged[statement] = query_plans.faults(statement, parameters)
            for fault in judged[statement]:
                # an index gives the order of a list; what a filter leaves of it may be sorted
                if fault.what is not SORTED or not query or query.startswith(ORDERS):
                    found.setdefault((fault, rule, order_of(query)), (query, statement))
        return response

    ask.judged, ask.found = judged, found
    return ask


@pytest.mark.both_databases
def test_every_read_uses_an_index(app, filled, project, group, people, as_, visit, look):
    document = app.test_client().get("/api/v4/openapi.json").json
    sample_data.fill_lists(project, group, people, filled, mark="x")
    many_rows.fill(filled, project, people, 2)
    many_rows.scatter(project.id)
    places, pages = places_of(app, filled, project, group), page_addresses(app, project, people)
    del pages[EXAMINATION]
    many_rows.multiply(COPIES)
    clients = {name: as_(name) for name in (ADA, OLIVE, GUS, NOBODY)}
    visitors = {name: visit(name) for name in (ADA, OLIVE, GUS)}
    known = dict.fromkeys(("user_id", "author_id", "assignee_id"), people[OLIVE].id)
    unseen = []

    for path, address in places.items():
        for query in variations(document, path, known):
            for name, client in clients.items():
                # filters add their conditions to those of the caller; over all there is both kinds matter
                if not query or name is OLIVE or (name is ADA and "<" not in path):
                    # of two rows one is shown, so that they are counted too
                    response = look(client.get, path, address, f"{query}&per_page=1".lstrip("&"))
                    unseen += refused(response, path, query) if name is ADA else ()
    for path, address in pages.items():
        for name, visitor in visitors.items():
            response = look(visitor.get, path, address)
            unseen += refused(response, path, "") if name is ADA else ()
            is_read = name is OLIVE and response.mimetype == "text/html"
            for query in filter(None, offered(address, response.text) if is_read else ()):
                look(visitor.get, path, address, query)

    wrong = {
        f"{fault.table} is {fault.what} for {rule}?{query}: {statement}"
        for (fault, rule, order), (query, statement) in look.found.items()
        if not any(allowed.covers(fault, rule, order) for allowed in ALLOWED)
    }
    assert wrong == set()
    assert (unseen, len(look.judged) > 300) == ([], True)


def order_of(query):
    """The order that is asked for, by its name; ``sort`` where it has none."""
    asked = dict(parse_qsl(query))
    return asked.get("order_by") or ("sort" if "sort" in asked else "default")


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT id FROM issues WHERE project_id = 1 ORDER BY created_at DESC, id DESC LIMIT 20", set()),
        ("SELECT id FROM issues AS one WHERE one.title = 'a'", {("issues", READ)}),
        ("SELECT count(*) FROM issues", {("issues", READ)}),
        ("SELECT id FROM issues WHERE project_id = 1 ORDER BY weight LIMIT 20", {("issues", SORTED)}),
        ("SELECT title FROM issues WHERE weight = 1 ORDER BY id LIMIT 20", {("issues", WALKED)}),
        ("SELECT id FROM issues WHERE weight IN (SELECT iid FROM alerts) AND project_id = 1", {("alerts", READ)}),
        (
            "SELECT issues.id FROM issues JOIN alerts ON alerts.title = issues.title WHERE issues.id = 1",
            {("alerts", READ)},
        ),
        ("SELECT id FROM key_proofs ORDER BY proof LIMIT 20", set()),
    ],
)
def test_the_guard_detects_missing_indexes(app, statement, expected):
    assert {(fault.table, fault.what) for fault in query_plans.faults(statement, ())} == expected
