"""Whatever bytes come, the readers of archives and of reports take them or refuse them in their own words."""

from __future__ import annotations

import base64
import importlib.util
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from project_service.areas.vulnerabilities.formats.documents import report_json
from project_service.transfers.importing.mapping import parsing
from tests.fuzzing.harnesses import HARNESSES, NO_REPORT, read_archive, read_report
from tests.fuzzing.mutating import MUTATORS
from tests.support.archives import make_archive, make_issue

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())
MINUTES = 10
NAMELESS = "has no message, no name and no identifiers"
REFUSED = {
    "archives/bad-json.tar.gz": "Incorrect JSON format",
    "archives/climbs.tar.gz": "The archive has a member outside of its own directory",
    "archives/cut-off.tar.gz": "The archive is damaged or incomplete",
    "archives/hard-link.tar.gz": "File shares hard link",
    "archives/no-archive": "The file is not in gzip format",
    "archives/no-tree.tar.gz": "invalid import format",
    "archives/version.tar.gz": "Import version mismatch: Required 0.2.4 but was 0.2.5",
    "reports/behind.json": NO_REPORT,
    "reports/cut-off.json": NO_REPORT,
    "reports/deep.json": NO_REPORT,
    "reports/digits.json": NO_REPORT,
    "reports/exponent.json": NO_REPORT,
    "reports/form-feed.json": NO_REPORT,
    "reports/infinite.json": NO_REPORT,
    "reports/list.json": NO_REPORT,
    "reports/nameless.json": f"sast security report parsing failed: /vulnerabilities/0 {NAMELESS}",
    "reports/no-object.json": NO_REPORT,
    "reports/only-nul.json": f"sast security report parsing failed: /vulnerabilities/0 {NAMELESS}",
    "scanners/comma.json": NO_REPORT,
    "scanners/crossed.json": NO_REPORT,
    "reports/digits-in-a-name.json": "dast security report parsing failed: /site/0 must be an object",
    "scanners/cyclonedx-old.json": "CycloneDX report parsing failed: /specVersion CycloneDX 1.3 is not supported: "
    "1.4 to 1.6 are",
    "scanners/nameless-driver.json": "SARIF report parsing failed: /runs/0/tool/driver must contain the property name",
    "scanners/npm-error.json": "npm audit report parsing failed: /error npm audit failed: ENOLOCK No lock file.",
    "scanners/page.xml": NO_REPORT,
    "scanners/sarif-old.json": "SARIF report parsing failed: /version SARIF 2.0.0 is not supported: 2.1.0 is",
    "scanners/semgrep.json": "Report format is not recognised: this is semgrep's own JSON: write SARIF "
    "(semgrep scan --sarif)",
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_stored_inputs_are_read_or_refused(path):
    assert HARNESSES[path.parent.name](path.read_bytes()) == REFUSED.get(f"{path.parent.name}/{path.name}")


def test_stored_inputs_are_small_and_complete():
    assert REFUSED.keys() <= {f"{path.parent.name}/{path.name}" for path in FILES}
    assert sum(path.stat().st_size for path in FILES) < 64 << 10


def test_a_fault_of_a_reader_is_noticed(monkeypatch):
    monkeypatch.setattr(parsing, "refuse_unstorable", lambda _: None)
    monkeypatch.setattr(report_json, "MAX_DEPTH", 1000)

    with pytest.raises(AssertionError):
        read_archive(make_archive({"issues": [make_issue(1, title="a\0b")]}))
    with pytest.raises(AssertionError, match="is not"):
        read_report((CORPUS / "reports" / "deep.json").read_bytes())


def flip(chance):
    """A way with bytes for when there is no fuzzer: one of them becomes another."""

    def change(raw):
        at = chance.randrange(len(raw) + 1)
        return raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]

    return change


def mutated(name, seed):
    chance = random.Random(seed)
    raw = chance.choice([path for path in FILES if path.parent.name == name]).read_bytes()
    return MUTATORS[name](raw, chance, flip(chance))


@pytest.mark.parametrize(
    ("name", "count", "least"), [("archives", 140, 20), ("reports", 300, 60), ("scanners", 600, 200)]
)
def test_mutations_of_stored_inputs_are_read_or_refused(name, count, least):
    said = [HARNESSES[name](mutated(name, seed)) for seed in range(count)]

    assert said.count(None) >= least
    assert len(set(said)) > 4


@pytest.mark.parametrize("name", HARNESSES)
def test_mutations_are_reproducible(name):
    assert [mutated(name, seed) for seed in range(20)] == [mutated(name, seed) for seed in range(20)]


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="the fuzzer is not made for this system")
@pytest.mark.parametrize("name", HARNESSES)
@pytest.mark.parametrize(
    ("stop", "least"),
    [
        pytest.param("-runs=200", 200, id="few"),
        pytest.param(f"-max_total_time={MINUTES * 60}", 2000, id="many", marks=pytest.mark.nightly),
    ],
)
def test_coverage_guided_inputs_find_no_fault(name, stop, least, tmp_path):
    found = tmp_path / "found"
    found.mkdir()
    options = ["-rss_limit_mb=2048", "-timeout=30", "-max_len=16384", f"-artifact_prefix={tmp_path}/", stop]
    command = [sys.executable, "-m", "tests.fuzzing", name, str(found), str(CORPUS / name), *options]

    ran = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=MINUTES * 60 + 300
    )

    inputs = [f"{path.name}: {base64.b64encode(path.read_bytes()).decode()}" for path in tmp_path.glob("*-*")]
    assert ran.returncode == 0, "\n".join(["to be kept in tests/fuzzing/corpus:", *inputs, ran.stderr[-5000:]])
    assert int(re.search(r"Done (\d+) runs", ran.stderr)[1]) >= least
    assert any(found.iterdir()), "nothing that was tried led further"
