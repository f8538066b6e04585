"""How the list of findings behaves as a pipeline grows, and what taking in a report costs beside its floor.

``python -m benchmarks.findings [--database sqlite|postgresql] [--plans]`` makes a project with 500
findings and one with 50,000, every tenth of them dismissed, and sends whole requests through the application for every
combination of filters, in turn to the one and to the other. Then it takes a report of that size in, in turn with the
floor: parsing it with the same parser, and inserting the same rows into the same table.
"""

from __future__ import annotations

import io
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import ijson
import orjson
from flask import Flask
from sqlalchemy import event, insert, select

from benchmarks.cache import application_on, new_database
from benchmarks.figures import Effort, Figure, Target, conclude, effort_of, parser
from project_service.areas.vulnerabilities.fingerprints import fingerprint
from project_service.areas.vulnerabilities.formats.documents import report_json, splitting
from project_service.areas.vulnerabilities.ingestion import ingestion
from project_service.areas.vulnerabilities.levels import CONFIDENCES, SEVERITIES
from project_service.areas.vulnerabilities.models import DISMISSAL, Feedback, Finding
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, unit_of_work

SMALL, LARGE, QUICK_LARGE = 500, 50_000, 5_000
TOKEN = "token-of-the-reader"
KINDS = ("sast", "secret_detection", "dast")
DISMISSED_EVERY = 10
REQUESTS = 3
LIST_TARGET = Target(1.5, 1.5, at_most=True)
INGESTION_TARGET = Target(3, 3, at_most=True)
SARIF_TARGET = Target(4, 4, at_most=True)
FILTERS = {
    "report_type": ("", "sast", "sast,dast"),
    "severity": ("", "info", "high", "critical,low,unknown"),
    "confidence": ("", "ignore", "high", "confirmed,unknown"),
    "scope": ("dismissed", "all"),
    "page": ("1", "2"),
}


def main() -> None:
    """Measure as the command line says."""
    arguments = parser(__doc__)
    arguments.add_argument("--plans", action="store_true", help="show the statements of one request")
    options = arguments.parse_args()
    sys.exit(conclude(measure(options.database, effort_of(options), plans=options.plans)))


def measure(database: str, effort: Effort, *, plans: bool = False) -> list[Figure]:
    """Make the data, ask for lists, take reports in."""
    large = QUICK_LARGE if effort.quick else LARGE
    with tempfile.TemporaryDirectory() as directory:
        app = application(database, Path(directory))
        with app.app_context():
            projects = {size: make_project(size) for size in (SMALL, large)}
            analyze(database)
        if plans:
            show_statements(app, projects[large])
        lists = growth_of_lists(app, projects[SMALL], projects[large], effort.rounds)
        with app.app_context():
            reports_taken = ingestion_beside_floor(document(range(large)), "sast", parse)
            sarif_taken = ingestion_beside_floor(sarif(large // 2), None, parse_sarif)
            db.engine.dispose()
    of_all, query = max(lists)
    name = f"list of findings, {large:,} vs. {SMALL}"
    middle = statistics.median(ratio for ratio, _ in lists)
    return [
        Figure(f"{name}: what grows most of {len(lists)} filters", database, (of_all,), LIST_TARGET, query),
        Figure(f"{name}: the filter in the middle", database, (middle,), LIST_TARGET),
        Figure(f"report of {large:,} findings vs. floor", database, reports_taken, INGESTION_TARGET),
        Figure(f"SARIF of {large // 2:,} results vs. floor", database, sarif_taken, SARIF_TARGET),
    ]


def application(backend: str, directory: Path) -> Flask:
    """The application on an empty database."""
    app = application_on(directory, new_database("findings_run") if backend == "postgresql" else "")
    with app.app_context(), unit_of_work():
        Base.metadata.create_all(db.engine)
        user = User(username="reader", name="Reader", email="reader@example.org", last_activity_on=clock.today())
        db.session.add(user)
        db.session.flush()
        used = clock.now().replace(year=clock.now().year + 5)
        digest = digest_of(TOKEN)
        token = PersonalAccessToken(user_id=user.id, digest=digest, scopes=["api"], name="bench", last_used_at=used)
        db.session.add(token)
    return app


def make_project(size: int) -> int:
    """A project with so many findings of three kinds in one pipeline; its id."""
    with unit_of_work():
        group = Group(path=f"group{size}", name="Group")
        path_registry.store_namespace(group, None, AssertionError("taken"))
        project = Project(name="shop", path="shop", attributes={}, namespace=group)
        path_registry.store_project(project, AssertionError("taken"))
        db.session.add(Membership(user_id=1, project_id=project.id, access_level=Role.DEVELOPER))
        keys = [fingerprint(f"key:{number}") for number in range(0, size, DISMISSED_EVERY)]
        common = {"project_id": project.id, "author_id": 1, "feedback_type": DISMISSAL, "category": "sast"}
        db.session.execute(
            insert(Feedback), [common | {"project_fingerprint": key, "meant": key} for key in dict.fromkeys(keys)]
        )
    pipeline = None
    for position, kind in enumerate(KINDS):
        numbers = range(position, size, len(KINDS))
        told = ingestion.ingest(project, io.BytesIO(document(numbers)), kind, pipeline_id=pipeline)
        pipeline = told.pipeline_id
    return project.id


def document(numbers: range) -> bytes:
    """A report of one finding for each number, of every level; the same in every run."""
    draw = random.Random(7)
    return orjson.dumps({"version": "15.0.0", "vulnerabilities": [entry(draw, number) for number in numbers]})


def sarif(count: int) -> bytes:
    """SARIF of so many results of 1.6 kB, each with a code flow; the same in every run."""
    draw = random.Random(7)
    rules = [{"id": f"R{number}", "properties": {"tags": [f"external/cwe/cwe-{number}"]}} for number in range(200)]
    driver = {"name": "Scan", "version": "1", "rules": rules}
    run = {"tool": {"driver": driver}, "results": [sarif_result(draw, number) for number in range(count)]}
    return orjson.dumps({"version": "2.1.0", "runs": [run]})


def sarif_result(draw: random.Random, number: int) -> dict[str, Any]:
    """One result of SARIF."""
    rule, file, line = draw.randrange(200), f"src/package{draw.randrange(500)}/file.py", draw.randrange(3, 3000)

    def place(at: int, **more: Any) -> dict[str, Any]:
        region = {"startLine": at, "startColumn": 5, "endLine": at, "endColumn": 50, **more}
        artifact = {"uri": file, "uriBaseId": "%SRCROOT%"}
        return {"physicalLocation": {"artifactLocation": artifact, "region": region}}

    steps = [{"location": {"message": {"text": "the value goes on here"}, **place(line - back)}} for back in (2, 1, 0)]
    return {
        "ruleId": f"R{rule}",
        "ruleIndex": rule,
        "level": "warning",
        "message": {"text": f"The value of variable {number} comes from a visitor and reaches a statement."},
        "locations": [place(line, snippet={"text": f"    execute('select * from t where a = ' + v{number})\n"})],
        "partialFingerprints": {"primaryLocationLineHash": f"{draw.getrandbits(64):016x}:1"},
        "codeFlows": [{"threadFlows": [{"locations": steps}]}],
    }


def entry(draw: random.Random, number: int) -> dict[str, Any]:
    """One vulnerability."""
    return {
        "id": f"id-{number}",
        "name": "Use of a hard-coded cryptographic key",
        "description": "A key that stands in the source is known to everybody who reads it. " * 4,
        "cve": f"key:{number}",
        "severity": draw.choice(list(SEVERITIES)),
        "confidence": draw.choice(list(CONFIDENCES)),
        "scanner": {"id": "scanner", "name": "Scanner"},
        "location": {"file": f"src/module{number % 900}/file{number}.py", "start_line": number, "end_line": number + 2},
        "identifiers": [
            {"type": "rule", "name": f"Rule {number}", "value": f"rule-{number}", "url": "https://rules.example/1"},
            {
                "type": "cwe",
                "name": "CWE-321",
                "value": "321",
                "url": "https://cwe.mitre.org/data/definitions/321.html",
            },
        ],
    }


def analyze(backend: str) -> None:
    """Have PostgreSQL know what is there, as it would after a minute."""
    if backend == "postgresql":
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")


def growth_of_lists(app: Flask, small: int, large: int, rounds: int) -> list[tuple[float, str]]:
    """How much longer the larger project takes, for every combination of filters that fills the page of either."""
    found = []
    combinations = [dict(zip(FILTERS, values, strict=True)) for values in itertools.product(*FILTERS.values())]
    for wanted in combinations:
        query = "&".join(f"{name}={value}" for name, value in wanted.items() if value)
        send = {project: sender(app, project, query) for project in (small, large)}
        if send[small]() < send[large]():  # what a longer page costs is not what is asked
            continue
        times = take_turns(send, rounds * REQUESTS)
        found.append((times[large] / times[small], query))
    return found


def sender(app: Flask, project: int, query: str) -> Callable[[], int]:
    """Sends one request, each time another; how many findings came."""
    client = app.test_client(use_cookies=False)
    numbers = itertools.count()

    def send() -> int:
        answer = client.get(
            f"/api/v4/projects/{project}/vulnerability_findings?{query}&run={next(numbers)}",
            headers={"PRIVATE-TOKEN": TOKEN},
        )
        assert answer.status_code == 200
        return len(answer.json or ())

    return send


def take_turns(send: dict[int, Callable[[], Any]], requests: int) -> dict[int, float]:
    """The median time of each in milliseconds."""
    times: dict[int, list[float]] = {name: [] for name in send}
    for number in range(requests + 2):
        for name, act in send.items():
            started = time.perf_counter()
            act()
            if number > 1:
                times[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(found) for name, found in times.items()}


def ingestion_beside_floor(
    raw: bytes, report_type: str | None, parse: Callable[[IO[bytes]], None]
) -> tuple[float, ...]:
    """How many times its floor a report takes, in each of three rounds."""
    project = db.session.scalars(select(Project)).first()
    assert project is not None
    db.session.remove()
    rows = prepared_rows(project, raw, report_type)
    found = []
    for _ in range(3):
        began = time.perf_counter()
        ingestion.ingest(project, io.BytesIO(raw), report_type)
        taken_in = time.perf_counter()
        parse(io.BytesIO(raw))
        insert_rows(rows)
        found.append((taken_in - began) / (time.perf_counter() - taken_in))
    return tuple(found)


def parse(file: IO[bytes]) -> None:
    """What the parser alone costs, by the size of the file as the service chooses it."""
    if len(file.getbuffer()) <= report_json.MAX_PARSED_BYTES:  # type: ignore[attr-defined]  # it is a BytesIO
        orjson.loads(file.read())
    else:
        for _ in ijson.items(file, "vulnerabilities.item", buf_size=report_json.BLOCK_BYTES):
            pass


def parse_sarif(file: IO[bytes]) -> None:
    """What the parser alone costs for SARIF."""
    for _ in splitting.Document(file).top["runs"][0]["results"]:
        pass


def prepared_rows(project: Project, raw: bytes, report_type: str | None) -> list[tuple[Any, ...]]:
    """The rows that the report becomes, as the driver takes them."""
    told = ingestion.ingest(project, io.BytesIO(raw), report_type)
    columns = [column for column in Finding.__table__.columns if column.name != "id"]
    with db.engine.connect() as connection:
        found = connection.execute(select(*columns).where(Finding.pipeline_id == told.pipeline_id)).all()
    return [(*row[:-1], orjson.dumps(row[-1]).decode()) for row in found]


def insert_rows(rows: list[tuple[Any, ...]]) -> None:
    """The same rows once more, straight through the driver, in one transaction."""
    names = [column.name for column in Finding.__table__.columns if column.name != "id"]
    with unit_of_work():
        connection = db.session.connection()
        mark = "?" if connection.dialect.name == "sqlite" else "%s"
        statement = f"INSERT INTO findings ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"
        cursor = connection.connection.cursor()
        cursor.executemany(statement, rows)
        cursor.close()


def show_statements(app: Flask, project: int) -> None:
    """The statements of one request, each with its plan."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        sent.append((statement, values))

    with app.app_context():
        event.listen(db.engine, "before_cursor_execute", note)
        sender(app, project, "confidence=ignore,low,high&severity=high,low&per_page=100")()
        event.remove(db.engine, "before_cursor_execute", note)
        explain = "EXPLAIN QUERY PLAN " if db.engine.dialect.name == "sqlite" else "EXPLAIN ANALYZE "
        with db.engine.connect() as connection:
            for statement, values in sent:
                if statement.lstrip().startswith(("SELECT", "WITH")):
                    print(f"\n{' '.join(statement.split())[:400]}")
                    for row in connection.exec_driver_sql(explain + statement, values):
                        print("   ", row[-1])


if __name__ == "__main__":
    main()
