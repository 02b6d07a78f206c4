"""PyMySQL's private names, of which `applier.mysql.client.driver` alone makes use."""

from __future__ import annotations

import inspect
import re
import socket
from pathlib import Path

import pytest

from applier.mysql.client.connection import NotReached, connect
from applier.mysql.client.driver import DriverConnection, pymysql
from applier.mysql.client.url import parse_url

ROOT = Path(__file__).parents[2]
SOURCE = inspect.getsource(inspect.getmodule(DriverConnection))
METHODS = {
    "_create_ssl_ctx": "(self, sslp)",
    "_execute_command": "(self, command, sql)",
    "_get_server_information": "(self)",
    "_read_packet": "(self, packet_type=<class 'pymysql.protocol.MysqlPacket'>)",
    "_request_authentication": "(self)",
}
ATTRIBUTES = ("_local_infile", "_result", "_rfile", "_sock")


@pytest.mark.parametrize(("name", "signature"), METHODS.items())
def test_the_driver_has_the_method(name: str, signature: str) -> None:
    method = getattr(pymysql.connections.Connection, name)
    assert str(inspect.signature(method)) == signature


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_the_driver_keeps_the_attribute(name: str) -> None:
    driver = inspect.getsource(pymysql.connections.Connection)
    assert re.search(rf"self\.{name} = ", driver)
    assert len(re.findall(rf"self\.{name}\b", driver)) > 1, "it is also read"


def test_an_answer_says_whether_another_one_follows() -> None:
    answer = inspect.getsource(pymysql.connections.MySQLResult)
    assert all(f"self.{name} = " in answer for name in ("has_next", "rows"))


def test_all_private_names_that_are_used_are_tested() -> None:
    used = set(re.findall(r"(?:self|super\(\))\.(_[a-z]\w*)", SOURCE))
    assert used <= {*METHODS, *ATTRIBUTES}
    assert {*METHODS, *ATTRIBUTES} <= set(re.findall(r"\b_[a-z]\w*", SOURCE))


def test_no_other_module_uses_them() -> None:
    names = "|".join(name for name in (*METHODS, *ATTRIBUTES) if name != "_result")
    private = re.compile(rf"\b(?:connection|driver|server|sock)\._|\.(?:{names})\b")
    for room in ("mysql", "receive", "forecast"):
        for path in (ROOT / "applier" / room).rglob("*.py"):
            if path.name != "driver.py":
                found = private.search(path.read_text(encoding="utf-8"))
                assert found is None, f"{path}: {found}"


def test_who_takes_the_connection_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tunnel whose server is down: not waited for without end."""
    monkeypatch.setattr("applier.mysql.client.connection.CONNECT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(NotReached, match=r"nothing came for 0\.05 s"):
            connect(parse_url(f"mysql://root@127.0.0.1:{port}"))
