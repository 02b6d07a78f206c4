"""--ssl-mode, an authority and a client's certificate, against real servers with right, wrong and
expired certificates."""

from __future__ import annotations

import re
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from servers.server import Server

from applier.errors import InputError, UsageError
from applier.mysql.client.connection import connect
from applier.mysql.client.tls import Tls, TlsMode
from applier.mysql.client.url import Endpoint
from tests.mysql.certificates import Authority, Pair
from tests.servers.fixtures import ServerFactory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "authority")


@pytest.fixture(scope="module")
def stranger(folder: Path) -> Authority:
    return Authority(folder, "stranger")


def start(factory: ServerFactory, name: str, authority: Authority, pair: Pair) -> Server:
    return factory(
        name, options={"ssl_ca": authority.path, "ssl_cert": pair.cert, "ssl_key": pair.key}
    )


def endpoint(server: Server, tls: Tls, user: str = "root") -> Endpoint:
    return Endpoint("127.0.0.1", server.port, user, tls=tls, password=server.password)


def outcome(server: Server, tls: Tls, user: str = "root") -> str:
    """ "encrypted", "plain", or the error's words."""
    try:
        connected = connect(endpoint(server, tls, user))
    except InputError as error:
        return f"{error.message} -> {error.hint}"
    with connected.socket:
        return "encrypted" if isinstance(connected.socket, ssl.SSLSocket) else "plain"


@pytest.mark.parametrize("name", ["9.7", "5.7", "mariadb"])
def test_a_right_certificate(
    name: str, server_factory: ServerFactory, authority: Authority, stranger: Authority
) -> None:
    server = start(server_factory, name, authority, authority.pair(f"right-{name}"))
    ours, theirs = str(authority.path), str(stranger.path)
    modes = {mode: outcome(server, Tls(mode)) for mode in TlsMode if "VERIFY" not in mode}
    assert modes == {"DISABLED": "plain", "PREFERRED": "encrypted", "REQUIRED": "encrypted"}
    for mode in (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY):
        assert outcome(server, Tls(mode, ours)) == "encrypted"
        refused = outcome(server, Tls(mode, theirs))
        assert re.search(
            r"certificate verify failed.* -> name the authority .* --ssl-ca FILE", refused
        )
        assert "certificate verify failed" in outcome(server, Tls(mode))
    client = authority.pair(f"client-{name}")
    secret = server.password
    server.execute(
        (
            "CREATE USER x509 IDENTIFIED "
            f"{'WITH mysql_native_password ' if name == '5.7' else ''}BY '{secret}'"
        )
        + (" REQUIRE X509" if name != "mariadb" else "")
    )
    if name == "mariadb":
        server.execute("ALTER USER x509 REQUIRE X509")
    signed = Tls(TlsMode.VERIFY_CA, ours, str(client.cert), str(client.key))
    assert outcome(server, signed, "x509") == "encrypted"
    assert "refuses the account" in outcome(server, Tls(TlsMode.REQUIRED), "x509")


def test_a_certificate_for_another_host(
    server_factory: ServerFactory, authority: Authority
) -> None:
    server = start(server_factory, "9.7", authority, authority.pair("elsewhere", "127.0.0.9"))
    ours = str(authority.path)
    assert outcome(server, Tls(TlsMode.VERIFY_CA, ours)) == "encrypted"
    assert "names another host" in outcome(server, Tls(TlsMode.VERIFY_IDENTITY, ours))


def test_an_expired_certificate(server_factory: ServerFactory, authority: Authority) -> None:
    server = start(server_factory, "5.7", authority, authority.pair("old", is_expired=True))
    assert outcome(server, Tls(TlsMode.REQUIRED)) == "encrypted"
    assert "renew it" in outcome(server, Tls(TlsMode.VERIFY_CA, str(authority.path)))


def test_a_server_without_tls(server_factory: ServerFactory) -> None:
    server = server_factory("mariadb", options={"skip_ssl": None})
    assert outcome(server, Tls()) == "plain"
    assert "turn it on there" in outcome(server, Tls(TlsMode.REQUIRED))


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    where = Endpoint("127.0.0.1", 1, "u")
    nothing = tmp_path / "nothing.pem"
    with pytest.raises(UsageError, match=r"--ssl-ca .*nothing\.pem: No such file"):
        connect(replace(where, tls=Tls(TlsMode.VERIFY_CA, str(nothing))))
    nothing.write_text("not a certificate")
    with pytest.raises(UsageError, match=r"--ssl-ca .*nothing\.pem: no certificate in it"):
        connect(replace(where, tls=Tls(TlsMode.VERIFY_CA, str(nothing))))
    with pytest.raises(UsageError, match=r"--ssl-cert .*nothing\.pem"):
        connect(replace(where, tls=Tls(TlsMode.REQUIRED, None, str(nothing), str(nothing))))
