"""The deployment files: nginx with our configuration, systemd units, environment file."""

from __future__ import annotations

import configparser
import datetime as dt
import html
import http.client
import json
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
from contextlib import ExitStack, closing
from urllib.parse import urlencode, urlsplit

import click
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from project_service.cli import main
from project_service.runtime import supervisor
from project_service.settings import Settings
from tests.contract.service import REPOSITORY, TOKEN, Service, free_port, is_running, wait_for
from tests.contract.slow_clients import Shop, slow_bodies, slow_downloads

DEPLOY = REPOSITORY / "deploy"
HOST = "projects.example.org"
UNITS = sorted(DEPLOY.glob("*.service"))
SLOW_KINDS = ("push", "import", "download")
CSRF = re.compile(r'name="csrf_token"[^>]* value="([^"]+)"')


def nginx_program():
    program = [REPOSITORY / "scripts/foreign-programs", "nginx"]
    found = subprocess.run(program, capture_output=True, text=True, check=False)
    if found.returncode == 3:
        pytest.skip(found.stderr.strip())
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def write_certificate(directory):
    """Write a self-signed certificate for the host name."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (directory / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "privkey.pem").write_bytes(key.private_bytes(*private))


class Proxy:
    """nginx with the configuration of ``deploy``, on ports of its own."""

    host = HOST

    def __init__(self, directory, upstream):
        program, self.plain, self.secure = nginx_program(), free_port(), free_port()
        write_certificate(directory)
        site = (DEPLOY / "nginx.conf").read_text()
        for was, now in (
            ("127.0.0.1:8080", upstream),
            ("listen 80", f"listen 127.0.0.1:{self.plain}"),
            ("listen 443", f"listen 127.0.0.1:{self.secure}"),
            ("/etc/ssl/project-service", str(directory)),
        ):
            assert was in site
            site = site.replace(was, now)
        (directory / "site.conf").write_text(site)
        temporary = "".join(
            f"{kind}_temp_path {directory}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (directory / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log;\n"
            f"events {{}}\nhttp {{ access_log off; {temporary} include {directory}/site.conf; }}\n"
        )
        self.directory = directory
        command = [program, "-p", str(directory), "-e", f"{directory}/error.log", "-c", f"{directory}/nginx.conf"]
        self.process = subprocess.Popen(command)
        assert wait_for(self.is_ready, 60), (directory / "error.log").read_text()

    def is_ready(self):
        try:
            return self.get("/-/liveness")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def connect(self, host=HOST, source="127.0.0.1"):
        """Open a TLS connection to the host name."""
        context = ssl._create_unverified_context()
        raw = socket.create_connection(("127.0.0.1", self.secure), timeout=20, source_address=(source, 0))
        connection = http.client.HTTPConnection(host, self.secure, timeout=20)
        connection.sock = context.wrap_socket(raw, server_hostname=host)
        return connection

    def get(self, target, method="GET", body=None, headers=None, source="127.0.0.1", host=HOST):
        """Return status, headers and body of a request whose target is sent unchanged."""
        connection = self.connect(source=source)
        try:
            given = {"Host": host, "PRIVATE-TOKEN": TOKEN} | (headers or {})
            connection.request(method, target, body, given)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """A service that trusts its proxy, and the proxy."""
    nginx_program()
    settings = {"PROJECT_SERVICE_EXTERNAL_URL": f"https://{HOST}", "PROJECT_SERVICE_TRUSTED_PROXIES": "127.0.0.1/32"}
    service = Service(tmp_path_factory.mktemp("deployed"), is_measured=True, **settings)
    service.start()
    proxy = Proxy(tmp_path_factory.mktemp("nginx"), urlsplit(service.url).netloc)
    yield service, proxy
    proxy.stop()
    service.stop()


@pytest.fixture
def proxy(deployed):
    return deployed[1]


def test_the_proxy_keeps_encoded_slashes(proxy):
    form = {"Content-Type": "application/json"}
    proxy.get("/api/v4/groups", "POST", json.dumps({"name": "a", "path": "acme"}), form)
    group = json.loads(proxy.get("/api/v4/groups/acme")[2])
    body = json.dumps({"name": "shop", "namespace_id": group["id"]})
    made = json.loads(proxy.get("/api/v4/projects", "POST", body, form)[2])

    status, _, found = proxy.get("/api/v4/projects/acme%2Fshop")

    assert (status, json.loads(found)["id"]) == (200, made["id"])
    assert proxy.get("/api/v4/projects/acme/shop")[0] == 404
    assert json.loads(found)["_links"]["self"] == f"https://{HOST}/api/v4/projects/{made['id']}"


@pytest.fixture(scope="module")
def shop(deployed, tmp_path_factory):
    return Shop(deployed[0], tmp_path_factory.mktemp("shop"), deployed[1])


@pytest.mark.parametrize("kind", ["envelope", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in SLOW_KINDS)])
def test_slow_clients_of_the_proxy_do_not_delay_others(shop, kind):
    with ExitStack() as stack:
        if kind == "download":
            slow_downloads(shop, stack)
        else:
            stack.enter_context(slow_bodies(shop, stack, kind))

        assert shop.seconds_of_others() < 10


def test_links_use_the_public_address(proxy):
    for _ in range(2):
        proxy.get("/api/v4/users?per_page=1")
    headers = proxy.get("/api/v4/projects?per_page=1&pagination=keyset&order_by=id")[1]

    assert f"<https://{HOST}/api/v4/projects?" in headers.get("Link", f"<https://{HOST}/api/v4/projects?")


def test_the_proxy_keeps_headers_and_adds_hsts(proxy):
    status, headers, _ = proxy.get("/users/sign_in")

    assert status == 200
    assert headers["Strict-Transport-Security"] == "max-age=31536000"
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Set-Cookie"].startswith("__Host-project_service=")
    assert "Secure" in headers["Set-Cookie"]
    assert len(headers.get_all("X-Request-Id")) == 1


def test_an_upload_is_streamed_and_refused_early(proxy):
    connection = proxy.connect()
    try:
        connection.putrequest("POST", "/api/v4/projects/1/security_reports", skip_host=True)
        for name, value in {
            "Host": HOST,
            "PRIVATE-TOKEN": "wrong",
            "Content-Type": "multipart/form-data; boundary=x",
            "Content-Length": str(400 << 20),
        }.items():
            connection.putheader(name, value)
        connection.endheaders()
        began = time.monotonic()
        connection.send(b"--x\r\n" + b"a" * (1 << 20))
        response = connection.getresponse()
        assert (response.status, time.monotonic() - began < 10) == (401, True)
    finally:
        connection.close()


def test_the_proxy_does_not_buffer_a_large_upload(proxy, deployed):
    body = b"--x\r\n" + b"a" * (30 << 20)
    before = sum(path.stat().st_size for path in (proxy.directory / "client_body").rglob("*"))

    status = proxy.get(
        "/api/v4/projects/1/security_reports", "POST", body, {"Content-Type": "multipart/form-data; boundary=x"}
    )[0]

    assert 400 <= status < 500
    assert "buffered to a temporary file" not in (proxy.directory / "error.log").read_text()
    assert before == 0


def test_forged_client_addresses_are_ignored(proxy, deployed):
    service, source = deployed[0], "127.0.0.7"
    _, headers, page = proxy.get("/users/sign_in", source=source)
    cookie = headers["Set-Cookie"].partition(";")[0]
    fields = {"csrf_token": html.unescape(CSRF.search(page.decode())[1]), "login": "nobody", "password": "wrong one"}
    claimed = {"X-Forwarded-For": "10.9.9.9", "Forwarded": "for=10.9.9.9", "X-Real-IP": "10.9.9.9"}
    form = {
        "Cookie": cookie,
        "Content-Type": "application/x-www-form-urlencoded",
        "Referer": f"https://{HOST}:{proxy.secure}/",
    }

    status = proxy.get("/users/sign_in", "POST", urlencode(fields), claimed | form, source)[0]

    with sqlite3.connect(service.directory / "data" / "project-service.db") as connection:
        subjects = {row[0] for row in connection.execute("SELECT subject FROM rate_limits")}
    connection.close()
    assert status == 401
    assert [subject for subject in subjects if subject.startswith("sign_in:address:")] == [f"sign_in:address:{source}"]


def test_metrics_are_not_reachable_through_the_proxy(proxy, deployed):
    assert proxy.get("/-/metrics")[0] == 403
    assert deployed[0].get("/-/metrics") == 200


def test_http_is_redirected_to_tls_and_unknown_hosts_are_refused(proxy):
    connection = http.client.HTTPConnection("127.0.0.1", proxy.plain, timeout=10)
    connection.request("GET", "/acme/shop?a=b", headers={"Host": HOST})
    response = connection.getresponse()
    connection.close()

    assert (response.status, response.headers["Location"]) == (301, f"https://{HOST}/acme/shop?a=b")
    with pytest.raises(http.client.RemoteDisconnected):
        proxy.get("/", host="evil.example")


def test_a_stop_under_load_interrupts_no_request(tmp_path):
    """A response that has begun is complete; a request without a response changed nothing."""
    service = Service(tmp_path)
    service.start()
    address, stopped, cut, written = urlsplit(service.url).netloc, threading.Event(), [], []

    def write(number):
        with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
            write_until_stopped(connection, number)

    def write_until_stopped(connection, number):
        for count in range(100_000):
            name = f"w{number}-{count}"
            try:
                connection.request("POST", "/api/v4/groups", urlencode({"name": name, "path": name}), headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException):
                if stopped.is_set():
                    return
                connection.close()
                continue
            try:
                text = response.read()
                if response.status == 201:
                    written.append(json.loads(text)["path"])
            except (OSError, http.client.HTTPException) as error:
                cut.append((name, error))
                return

    headers = {"PRIVATE-TOKEN": TOKEN, "Content-Type": "application/x-www-form-urlencoded"}
    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    wait_for(lambda: len(written) > 20, 60)
    stopped.set()
    seconds = service.stop(signal.SIGTERM)
    for writer in writers:
        writer.join(30)

    with sqlite3.connect(tmp_path / "data" / "project-service.db") as connection:
        stored = {row[0] for row in connection.execute("SELECT path FROM namespaces")}
    connection.close()
    assert (cut, len(written) > 20, set(written) - stored) == ([], True, set())
    assert seconds < 10
    assert not is_running(service.pid)


def words_of(unit):
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str
    parsed.read(unit)
    return parsed["Service"], shlex.split(parsed["Service"]["ExecStart"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_units_run_existing_commands_and_wait_for_their_stop(unit):
    section, (program, *words) = words_of(unit)

    if program.endswith("/gunicorn"):
        assert words[:2] == ["--config", "python:project_service.runtime.web_server"]
        assert words[-1] == "project_service.runtime.wsgi:create()"
    else:
        command = main.main.get_command(click.Context(main.main), words[0])
        assert command is not None
        with click.Context(command) as context:
            command.make_parser(context).parse_args(list(words[1:]))
        assert program.endswith("/project-service")
    assert float(section["TimeoutStopSec"]) > supervisor.STOP_SECONDS + supervisor.LAST_STOP_SECONDS


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_units(unit, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("left out: systemd is not on this machine")
    text = unit.read_text().replace("/opt/project-service/.venv/bin/", "/bin/echo ").replace("@.", "@one.")
    name = unit.name.replace("@.", "@one.")
    (tmp_path / name).write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE))

    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)], capture_output=True, text=True, check=False
    )

    assert [line for line in verified.stderr.splitlines() if name in line or str(tmp_path) in line] == []


def test_the_service_accepts_the_environment_file():
    lines = [line.lstrip("#") for line in (DEPLOY / "environment").read_text().splitlines() if "=" in line]
    given = dict(line.split("=", 1) for line in lines if not line.startswith(" "))

    settings = Settings.from_environment(given)

    assert (settings.external_url, settings.storage_url) == (f"https://{HOST}", "s3://projects")
    named = set(re.findall(r"project-service\S*\.service", (REPOSITORY / "docs" / "deploy.md").read_text()))
    assert {unit.name for unit in UNITS} == {name.replace("@1.", "@.") for name in named}
