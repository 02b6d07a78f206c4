"""How statements are put into texts, without a server."""

from __future__ import annotations

from typing import Any, cast

import pytest

from applier.errors import ReplicationError
from applier.mysql.client.connection import Server
from applier.mysql.client.pipeline import HEADER_BYTES, SEPARATOR, Pipeline, PipelineStatement


class Taking:
    """Stands for a server: remembers the texts, and says that each statement matched one row."""

    def __init__(self, packet_bytes: int) -> None:
        self.packet_bytes = packet_bytes
        self.texts: list[bytes] = []
        self.waiting = False

    def send(self, sql: bytes) -> None:
        assert not self.waiting, "one text at a time"
        self.texts.append(sql)
        self.waiting = True

    def receive(self, statements: int) -> list[int]:
        self.waiting = False
        return [1] * statements


def pipeline(packet_bytes: int) -> tuple[Pipeline, Taking]:
    server = Taking(packet_bytes)
    return Pipeline(cast(Server, server)), server


def test_statements_go_in_one_text_while_they_fit() -> None:
    pipe, server = pipeline(HEADER_BYTES + 100)
    pipe.send([PipelineStatement(b"x" * 40), PipelineStatement(b"y" * 40)])
    assert server.texts == [SEPARATOR.join([b"x" * 40, b"y" * 40])]
    assert server.waiting


def test_more_than_a_packet_goes_in_several_texts_and_each_is_answered() -> None:
    pipe, server = pipeline(HEADER_BYTES + 100)
    counted: list[Any] = []
    pipe.send(
        [
            PipelineStatement(bytes([65 + at]) * 40, check=lambda count, at=at: counted.append(at))
            for at in range(5)
        ]
    )  # type: ignore[misc]
    assert [text.count(SEPARATOR) + 1 for text in server.texts] == [2, 2, 1]
    assert counted == [0, 1, 2, 3]
    pipe.settle()
    assert counted == [0, 1, 2, 3, 4]


def test_one_statement_over_the_limit_is_refused_before_it_is_sent() -> None:
    pipe, server = pipeline(HEADER_BYTES + 100)
    with pytest.raises(ReplicationError, match="max_allowed_packet is 1,124") as raised:
        pipe.send([PipelineStatement(b"x" * 200)])
    assert raised.value.number == 1153
    assert (
        raised.value.hint == "SET GLOBAL max_allowed_packet = 2048 on the target, then start again"
    )
    assert server.texts == []


def test_nothing_to_send_waits_for_what_is_under_way() -> None:
    pipe, server = pipeline(4096)
    pipe.send([PipelineStatement(b"x")])
    pipe.send([])
    assert not server.waiting
    assert server.texts == [b"x"]
