"""That benchmarks judge, tell and keep things as they should; they themselves are run by hand."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks import cache, peers, rate
from benchmarks.figures import GOAL, MISSED, MUST, Figure, Target, conclude, number, table
from tests.support.remote_servers import reply

MORE = Target(must=0.3, goal=0.45)
LESS = Target(must=3.0, goal=1.5, unit="s", at_most=True)


@pytest.mark.parametrize(
    ("target", "value", "reached"),
    [
        (MORE, 0.29, MISSED),
        (MORE, 0.30, MUST),
        (MORE, 0.44, MUST),
        (MORE, 0.45, GOAL),
        (LESS, 3.01, MISSED),
        (LESS, 3.0, MUST),
        (LESS, 1.51, MUST),
        (LESS, 1.5, GOAL),
    ],
)
def test_a_target_rates_a_value(target, value, reached):
    assert target.reached(value) == reached


def test_a_figure_is_the_median_of_its_rounds():
    figure = Figure("list", "sqlite", (0.1, 0.9, 0.31), MORE)

    assert (figure.value, figure.reached) == (0.31, MUST)


def test_the_table_shows_value_spread_and_both_bounds():
    figures = [
        Figure("hello", "sqlite", (5500.0,), unit="requests/s"),
        Figure("list of 20", "postgresql", (0.1, 0.9, 0.31), MORE, "by work 0.40"),
        Figure("cold start", "sqlite", (3.2,), LESS),
    ]

    head, rule, *rows = table(figures).splitlines()

    assert [cell.strip() for cell in rows[0].split("|")[1:-1]] == (
        ["hello", "sqlite", "5,500 requests/s", "", "", "", "", ""]
    )
    assert [cell.strip() for cell in rows[1].split("|")[1:-1]] == (
        ["list of 20", "postgresql", "0.31", "0.10 to 0.90", "≥ 0.30", "≥ 0.45", MUST, "by work 0.40"]
    )
    assert [cell.strip() for cell in rows[2].split("|")[1:-1]] == (
        ["cold start", "sqlite", "3.20 s", "", "≤ 3.00", "≤ 1.50", MISSED, ""]
    )
    assert len({len(line) for line in (head, rule, *rows)}) == 1


@pytest.mark.parametrize(
    ("values", "status"),
    [((0.5, 0.4), 0), ((0.5, 0.2), 1), ((), 1)],
    ids=["all musts are met", "one is missed", "nothing was measured"],
)
def test_the_exit_status_is_one_when_a_must_is_missed(values, status, capsys):
    told = Figure("hello", "sqlite", (5500.0,), unit="requests/s")

    assert conclude([told, *(Figure("list", "sqlite", (value,), MORE) for value in values)]) == status
    assert f"{len(values)} figures: " in capsys.readouterr().out


def test_a_value_without_a_target_misses_none():
    assert Figure("hello", "sqlite", (1.0,)).reached == ""


@pytest.mark.parametrize(
    ("value", "text"), [(0.3049, "0.30"), (9.99, "9.99"), (12.34, "12.3"), (147.4, "147"), (5500.1, "5,500")]
)
def test_numbers_have_significant_digits(value, text):
    assert number(value) == text


def test_data_is_built_once_and_again_when_its_sources_change(tmp_path):
    made = []

    for key in ("a", "a", "b"):
        cache.once(tmp_path / "data", key, lambda key=key: made.append(key))

    assert made == ["a", "b"]


def test_data_that_failed_is_built_the_next_time(tmp_path):
    made = []

    with pytest.raises(ZeroDivisionError):
        cache.once(tmp_path / "data", "a", lambda: 1 // 0)
    cache.once(tmp_path / "data", "a", lambda: made.append("a"))

    assert made == ["a"]


def test_a_key_changes_with_texts_and_functions():
    keys = {cache.key_of("x"), cache.key_of("y"), cache.key_of("x", number), cache.key_of("x", table)}

    assert len(keys) == 4
    assert cache.key_of("x", number) in keys


def test_the_schema_of_benchmark_data_has_tables_and_indexes():
    assert "CREATE TABLE events" in cache.schema()
    assert "uq_alerts_open_fingerprint" in cache.schema()


def percentiles(*arguments):
    """In a thread of its own: a browser that was used before leaves a running event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(rate.percentiles, *arguments).result()


def test_a_steady_rate_alternates_its_requests(remote):
    addresses = [remote.url("/a"), remote.url("/b")]

    found = percentiles(addresses, {"PRIVATE-TOKEN": "t"}, (90, 99), 0.1)

    lines = [received.line for received in remote.received]
    assert len(lines) == len(set(lines)) == round(rate.RATE * 0.1)
    assert sum(line.startswith("GET /a?") for line in lines) == len(lines) / 2
    assert {received.headers["PRIVATE-TOKEN"] for received in remote.received} == {"t"}
    assert 0 < found[90] <= found[99]


def test_a_steady_rate_includes_waiting_time(remote, monkeypatch):
    def slowly(handler):
        time.sleep(0.05)
        reply(handler)

    monkeypatch.setattr(rate, "CONNECTIONS", 1)
    remote.responses["/a"] = slowly

    found = percentiles([remote.url("/a")], {}, (90,), 0.1)

    assert found[90] > 500


def test_a_steady_rate_stops_at_a_failed_response(remote):
    remote.responses["/a"] = lambda handler: reply(handler, 404)

    with pytest.raises(SystemExit, match="404"):
        percentiles([remote.url("/a")], {}, (90,), 0.05)


LOADED = """
import sys
before = set(sys.modules)  # what environments load by themselves
import project_service.runtime.web_server
found = {name.partition(".")[0]: sys.modules[name] for name in sys.modules.keys() - before}
print(*(name for name, one in found.items() if "site-packages" in (getattr(one, "__file__", None) or "")))
"""


def test_the_web_server_requirements_are_installed_for_alerta():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    wanted = {line.partition("==")[0].lower() for line in peers.REQUIREMENTS.read_text().splitlines()}
    # Flask brings what it runs on, and gunicorn is installed beside it
    brought = {"markupsafe", "gunicorn", "project_service"}
    assert {"gunicorn", "werkzeug"} <= set(done.stdout.split())
    assert set(done.stdout.split()) - brought <= wanted
