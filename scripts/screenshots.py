"""Take the screenshots of the documentation: start a service, fill it with a small shop, visit its pages.

``make screenshots`` writes ``docs/images/NAME-light.png`` and ``NAME-dark.png``.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import gitlab
import requests
from playwright.sync_api import Browser, sync_playwright

from tests.contract.alerting import Maintainer
from tests.contract.service import AUTHOR, PASSWORD, TOKEN, Service, git

REPOSITORY = Path(__file__).parents[1]
IMAGES = REPOSITORY / "docs" / "images"
SHOP = "acme/shop"
SIZE = {"width": 1200, "height": 720}
PAGES = {
    "home": "/",
    "project": f"/{SHOP}",
    "alerts": f"/{SHOP}/-/alert_management",
    "error": f"/{SHOP}/-/error_tracking/{{error}}/details",
    "findings": f"/{SHOP}/-/security/dashboard",
}
README = """# Shop

The shop of Acme: a basket, a till and a warehouse.

```sh
make serve
```

| Part | Contents |
|---|---|
| `shop/basket.py` | what a customer wants |
| `shop/till.py` | what a customer pays |
"""
BASKET = '''"""What a customer wants to buy."""


def total(lines, prices):
    """The sum of the lines of a basket, in cents."""
    return sum(prices[line.article] * line.count for line in lines)
'''
ALERTS = (
    {"title": "Checkout is slow", "severity": "critical", "service": "till", "monitoring_tool": "Prometheus"},
    {"title": "Disk of db1 is 92 % full", "severity": "high", "hosts": ["db1"], "service": "database"},
    {"title": "Certificate expires in 10 days", "severity": "medium", "hosts": ["shop.example.org"]},
    {"title": "Queue of orders grows", "severity": "low", "service": "warehouse"},
)
FINDINGS = (
    ("B602", "HIGH", "subprocess call with shell=True identified, security issue.", "shop/print.py", 12),
    ("B324", "HIGH", "Use of weak MD5 hash for security.", "shop/sessions.py", 40),
    ("B608", "MEDIUM", "Possible SQL injection vector through string-based query construction.", "shop/search.py", 7),
    ("B105", "LOW", "Possible hardcoded password: 'till'", "shop/till.py", 3),
)


def fill(service: Service) -> str:
    """Fill the service; return the id of an error."""
    api = gitlab.Gitlab(service.url, private_token=TOKEN)
    group = api.groups.create({"name": "Acme", "path": "acme"})
    fields = {"name": "Shop", "path": "shop", "namespace_id": group.id, "description": "Basket, till and warehouse."}
    project = api.projects.create(fields)
    _push(service)
    release = {"tag_name": "v1.0.0", "ref": "main", "description": "The shop opens."}
    project.releases.create(release)
    project.issues.create({"title": "Show the total in the basket"})
    _send_alerts(service)
    results = [
        {
            "test_id": rule,
            "issue_severity": severity,
            "issue_confidence": "HIGH",
            "issue_text": text,
            "filename": file,
            "line_number": line,
            "code": f"{line} …",
        }
        for rule, severity, text, file, line in FINDINGS
    ]
    report = json.dumps({"errors": [], "generated_at": "", "metrics": {}, "results": results})
    address = f"/projects/{project.id}/security_reports"
    api.http_post(address, post_data={"branch": "main"}, files={"file": ("bandit.json", report, "application/json")})
    return _send_errors(service, api, project)


def _push(service: Service) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        git(folder, "init", "--quiet", "--initial-branch", "main")
        (folder / "shop").mkdir()
        (folder / "README.md").write_text(README)
        (folder / "shop" / "basket.py").write_text(BASKET)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--author", "Ada <ada@example.org>", "-m", "Open the shop")
        address = service.url.replace("://", f"://root:{TOKEN}@")
        git(folder, "push", "--quiet", f"{address}/{SHOP}.git", "main")


def _send_alerts(service: Service) -> None:
    maintainer = Maintainer(service)
    receiver = maintainer.add_integration(SHOP, type="http", name="Monitoring")
    maintainer.close()
    for hours, alert in enumerate(ALERTS):
        start = dt.datetime.now(dt.UTC) - dt.timedelta(hours=hours)
        headers = {"Authorization": f"Bearer {receiver.key}"}
        for _ in range(1 + hours % 3):
            sent = alert | {"start_time": start.isoformat(), "fingerprint": alert["title"]}
            requests.post(receiver.url, json=sent, headers=headers, timeout=20).raise_for_status()


def _send_errors(service: Service, api: gitlab.Gitlab, project: Any) -> str:
    tracking = f"/projects/{project.id}/error_tracking"
    api.http_put(f"{tracking}/settings", post_data={"active": True, "integrated": True})
    key = api.http_get(f"{tracking}/client_keys")[0]["public_key"]
    address = f"{service.url}/api/v4/error_tracking/collector/api/{project.id}/store/?sentry_key={key}"
    lines = BASKET.splitlines()
    frame = {
        "filename": "shop/basket.py",
        "module": "shop.basket",
        "function": "total",
        "lineno": 6,
        "in_app": True,
        "pre_context": lines[3:5],
        "context_line": lines[5],
        "vars": {"prices": {"4711": 250}, "lines": ["<Line 4712, 2>"]},
    }
    for hours in (0, 0, 1, 2, 2, 2, 5, 9, 9, 14):
        occurred_at = dt.datetime.now(dt.UTC) - dt.timedelta(hours=hours, minutes=5)
        exception = {"type": "KeyError", "value": "4712", "stacktrace": {"frames": [frame]}}
        event = {
            "event_id": uuid.uuid4().hex,
            "timestamp": occurred_at.isoformat(),
            "platform": "python",
            "transaction": "show_basket",
            "release": "1.0.0",
            "environment": "production",
            "exception": {"values": [exception]},
            "user": {"id": hours},
            "tags": {"server": f"web{hours % 2 + 1}"},
        }
        requests.post(address, json=event, timeout=20).raise_for_status()
    return str(api.http_get(f"{tracking}/errors")[0]["id"])


def take(browser: Browser, service: Service, error: str, scheme: str) -> None:
    """Write the images of one color scheme."""
    context = browser.new_context(base_url=service.url, viewport=SIZE, color_scheme=scheme)
    page = context.new_page()
    page.goto("/users/sign_in")
    page.fill("input[name=login]", "root")
    page.fill("input[type=password]", PASSWORD)
    page.click("button.primary")
    page.wait_for_url("**/")
    for name, address in PAGES.items():
        page.goto(address.format(error=error))
        page.screenshot(path=IMAGES / f"{name}-{scheme}.png")
    context.close()


def main() -> None:
    """Start a service in a temporary directory, fill it and take the screenshots."""
    found = subprocess.run(
        [REPOSITORY / "scripts/foreign-programs", "chromium"], check=False, capture_output=True, text=True
    )
    if found.returncode:
        sys.exit(found.stderr.strip())
    os.environ.update(AUTHOR)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        service = Service(Path(folder) / "service")
        service.start()
        try:
            error = fill(service)
            browser = playwright.chromium.launch(executable_path=found.stdout.strip(), args=["--no-sandbox"])
            for scheme in ("light", "dark"):
                take(browser, service, error, scheme)
            browser.close()
        finally:
            service.stop()
    print(f"wrote {len(PAGES) * 2} images to {IMAGES.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
