"""Forwarded headers count when a configured proxy sends them."""

from __future__ import annotations

import ipaddress

import pytest
from werkzeug.test import create_environ, run_wsgi_app

from project_service.kit.http.clients.proxies import WAS_FORWARDED, TrustedProxies

NETWORKS = (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8"))
FORWARDED = {
    "X-Forwarded-For": "1.1.1.1, 203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "projects.example",
    "X-Forwarded-Port": "443",
}


def seen(address, headers=FORWARDED):
    """What the application sees of a request from this address."""
    found = {}

    def app(environ, start_response):
        found.update(environ)
        start_response("204 No Content", [])
        return []

    environ = create_environ(base_url="http://inside:9000", headers=headers) | {"REMOTE_ADDR": address}
    run_wsgi_app(TrustedProxies(app, NETWORKS), environ)
    return found


@pytest.mark.parametrize("address", ["10.1.2.3", "fd00::1", "::ffff:10.1.2.3"])
def test_headers_of_a_trusted_proxy_are_applied(address):
    environ = seen(address)

    assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]) == ("203.0.113.9", "https")
    assert environ["HTTP_HOST"] == "projects.example:443"


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "", "unix:"])
def test_headers_of_other_clients_are_ignored(address):
    environ = seen(address)

    assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]) == (address.removeprefix("::ffff:"), "http")
    assert environ["HTTP_HOST"] == "inside:9000"
    assert not [name for name in environ if name.startswith("HTTP_X_FORWARDED_")]


@pytest.mark.parametrize(("address", "client"), [("10.1.2.3", "203.0.113.9"), ("192.0.2.1", "192.0.2.1")])
def test_the_client_address_is_taken_from_a_trusted_proxy(address, client):
    environ = create_environ(headers=FORWARDED) | {"REMOTE_ADDR": address}

    assert TrustedProxies(None, NETWORKS).client_address(environ) == client


@pytest.mark.parametrize(
    ("headers", "forwarded"), [(FORWARDED, True), ({"Forwarded": "for=1.1.1.1"}, True), ({"Accept": "*/*"}, False)]
)
def test_forwarded_requests_are_marked(headers, forwarded):
    assert seen("192.0.2.1", headers)[WAS_FORWARDED] is forwarded
