"""What is between the source and the receiver: the compressed protocol, TLS, accounts of every
kind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.server import Server

from applier.errors import BinlagError
from applier.mysql.client.compression import Compression
from applier.mysql.client.connection import connect
from applier.mysql.client.tls import Tls, TlsMode
from applier.receive.receive import LiveReceiver
from applier.receive.receive_folder import Folder, Start
from applier.receive.received import ReceiveOptions
from tests.mysql.certificates import Authority
from tests.receive.receiving import relay_events, source_events
from tests.receive.sources import TO_END, endpoint, here, receive, wait
from tests.servers.fixtures import ServerFactory

ZLIB, ZSTD = Compression(("zlib",)), Compression(("zstd",), 19)
EITHER, OR_NOT = Compression(("zstd", "zlib")), Compression(("zstd", "uncompressed"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "authority")


@pytest.fixture(scope="module", params=["9.7", "5.7", "mariadb"])
def source(
    request: pytest.FixtureRequest, server_factory: ServerFactory, authority: Authority
) -> Iterator[Server]:
    """With a certificate, and a log of small events, of some that compress and some that do not."""
    pair = authority.pair(f"wire-{request.param}")
    tls = {"ssl_ca": authority.path, "ssl_cert": pair.cert, "ssl_key": pair.key}
    server = server_factory(request.param, options={"max_allowed_packet": 64 << 20, **tls})
    server.execute(
        "CREATE DATABASE r",
        "CREATE TABLE r.t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)",
        *["INSERT INTO r.t (b) VALUES ('one'), ('two')"] * 20,
        f"INSERT INTO r.t (b) VALUES (REPEAT('x', {17 << 20}))",
        *["INSERT INTO r.t (b) SELECT RANDOM_BYTES(1024) FROM r.t LIMIT 20"] * 20,
        "FLUSH BINARY LOGS",
        "INSERT INTO r.t (b) VALUES ('behind')",
    )
    yield server
    server.close()


def name(server: Server) -> str:
    return str(server.installed.recipe.name)


def refused(server: Server, folder: Path, **changes: Any) -> str:
    with pytest.raises(BinlagError) as caught:
        receive(server, folder, None, TO_END, **changes)
    assert caught.value.hint is not None
    return f"{caught.value.message} -> {caught.value.hint}"


@pytest.mark.parametrize(
    "tls", [Tls(TlsMode.DISABLED), Tls(TlsMode.REQUIRED)], ids=lambda tls: tls.mode
)
@pytest.mark.parametrize(
    "compression", [ZLIB, ZSTD, EITHER, OR_NOT], ids=lambda one: "-".join(one.algorithms)
)
def test_compressed_is_byte_for_byte_the_same(
    source: Server, compression: Compression, tls: Tls, tmp_path: Path
) -> None:
    knows_zstd = name(source) == "9.7"
    changes: Any = {"compression": compression, "tls": tls}
    if compression is ZSTD and not knows_zstd:
        said = refused(source, tmp_path, **changes)
        assert "does not know zstd compression -> it knows zlib, uncompressed" in said
        return
    receive(source, tmp_path, None, TO_END, **changes)
    assert relay_events(tmp_path) == source_events(source.binlog_files())
    with_status = connect(endpoint(source, **changes))
    rows = with_status.texts("SHOW SESSION STATUS LIKE 'Compression%'")
    with_status.close()
    said_by_server = dict(rows)
    used = "zstd" if knows_zstd and compression is not ZLIB else "zlib"
    is_compressed = knows_zstd or compression is not OR_NOT
    assert said_by_server["Compression"] == ("ON" if is_compressed else "OFF")
    if knows_zstd:
        assert said_by_server["Compression_algorithm"] == used
    if compression is ZSTD:
        assert said_by_server["Compression_level"] == "19"


def test_heartbeats_and_the_end_of_a_compressed_dump(source: Server, tmp_path: Path) -> None:
    options = ReceiveOptions(heartbeat_seconds=0.2)
    receiver = LiveReceiver(
        endpoint(source, compression=ZLIB),
        Folder(tmp_path, here(source)),
        options,  # type: ignore[arg-type]
    )
    thread = threading.Thread(target=receiver.run)
    thread.start()
    wait(lambda: receiver.received.heartbeats >= 3)
    receiver.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert receiver.received.connections == 1


def test_an_account_that_needs_a_certificate(
    source: Server, authority: Authority, tmp_path: Path
) -> None:
    native = "WITH mysql_native_password " if name(source) == "5.7" else ""
    source.execute(
        f"CREATE USER x509 IDENTIFIED {native}BY '{source.password}'",
        "GRANT REPLICATION SLAVE ON *.* TO x509",
        "ALTER USER x509 REQUIRE X509",
    )
    client, ours = authority.pair("client"), str(authority.path)
    signed = Tls(TlsMode.VERIFY_IDENTITY, ours, str(client.cert), str(client.key))
    receive(source, tmp_path, None, TO_END, user="x509", tls=signed)  # type: ignore[arg-type]
    assert relay_events(tmp_path) == source_events(source.binlog_files())
    said = refused(source, tmp_path, user="x509", tls=Tls(TlsMode.REQUIRED))
    assert "refuses the account: Access denied" in said
    assert "--ssl-cert" in said


def test_an_expired_password(source: Server, tmp_path: Path) -> None:
    native = "WITH mysql_native_password " if name(source) == "5.7" else ""
    source.execute(
        f"CREATE USER old IDENTIFIED {native}BY '{source.password}'",
        "GRANT REPLICATION SLAVE ON *.* TO old",
        "ALTER USER old PASSWORD EXPIRE",
    )
    said = refused(source, tmp_path, user="old")
    assert "refuses the account" in said
    assert "the password has expired: ALTER USER" in said


def test_expired_and_foreign_certificates(
    server_factory: ServerFactory, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.pair("old-wire", is_expired=True)
    tls = {"ssl_ca": authority.path, "ssl_cert": pair.cert, "ssl_key": pair.key}
    server = server_factory("9.7", options=tls)
    server.execute("CREATE DATABASE r")
    said = refused(server, tmp_path, tls=Tls(TlsMode.VERIFY_CA, str(authority.path)))
    assert "certificate has expired" in said
    foreign = Authority(tmp_path, "stranger")
    said = refused(server, tmp_path, tls=Tls(TlsMode.VERIFY_CA, str(foreign.path)))
    assert "certificate verify failed" in said
    receive(server, tmp_path / "r", Start(), TO_END, tls=Tls(TlsMode.REQUIRED))  # type: ignore[arg-type]
    assert relay_events(tmp_path / "r") == source_events(server.binlog_files())
    server.close()
