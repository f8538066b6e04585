"""An integration of the running service, configured on its pages as a maintainer would: there is no API for that."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

import requests

from tests.contract.service import PASSWORD, Service

ROOT = "root"
CSRF = re.compile(r'name="csrf_token"[^>]* value="([^"]+)"')
READ_ONLY = re.compile(r'<input id="(webhook-url|authorization-key)" value="([^"]*)"')
NUMBER = re.compile(r"/integrations/(\d+)/edit")
TAB = re.compile(r"(\w+) <span class=\"badge\">(\d+)</span>")


@dataclass(frozen=True, slots=True)
class Credentials:
    """URL and authorization key that a monitoring tool sends with."""

    number: int
    url: str
    key: str


class Maintainer:
    """The administrator's browser session, without JavaScript."""

    def __init__(self, service: Service) -> None:
        self.url = service.url
        self.session = requests.Session()
        self.send("/users/sign_in", "/users/sign_in", login=ROOT, password=PASSWORD)

    def get(self, path: str) -> str:
        """Return the HTML of a page."""
        response = self.session.get(f"{self.url}{path}", timeout=30)
        response.raise_for_status()
        return response.text

    def send(self, page: str, path: str, **fields: str) -> str:
        """Submit a form of ``page``; return the HTML of the page it redirects to."""
        token = CSRF.search(self.get(page))
        assert token is not None, f"{page} has no form"
        fields["csrf_token"] = html.unescape(token[1])
        response = self.session.post(f"{self.url}{path}", data=fields, timeout=30)
        response.raise_for_status()
        return response.text

    def add_integration(self, project: str, **fields: str) -> Credentials:
        """Add an active integration; return its URL and key as the page shows them."""
        new = f"/{project}/-/settings/operations/integrations/new"
        page = self.send(new, new, active="y", **fields)
        number = NUMBER.search(page)
        assert number is not None, page
        shown = dict(READ_ONLY.findall(page))
        return Credentials(int(number[1]), html.unescape(shown["webhook-url"]), shown["authorization-key"])

    def save_incident_settings(self, project: str, **fields: str) -> None:
        """Save the incident settings; options that are not named are switched off."""
        self.send(f"/{project}/-/settings/operations", f"/{project}/-/settings/operations/alerts", **fields)

    def counts(self, project: str) -> dict[str, int]:
        """Return the count that each tab of the list shows."""
        return {name: int(count) for name, count in TAB.findall(self.get(f"/{project}/-/alert_management"))}

    def close(self) -> None:
        """Close the session."""
        self.session.close()
