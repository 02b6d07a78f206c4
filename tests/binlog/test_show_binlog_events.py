"""The events of real logs against the server's own SHOW BINLOG EVENTS and SHOW RELAYLOG EVENTS,
column by column."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.binlog.describe import describe
from applier.binlog.reader import LogReader
from tests.captures_support import ShownEvent, shown_events, shown_files


@pytest.mark.parametrize("log", shown_files(), ids=lambda path: f"{path.parts[-2]}/{path.name}")
def test_agrees_with_the_server(log: Path) -> None:
    """An event inside a compressed transaction is shown at the end of its payload event."""
    reader, found, end = LogReader([log]), [], 0
    for event in reader:
        assert reader.format is not None
        position = event.position if event.inner_index < 0 else end
        if event.inner_index < 0:
            end = event.position + event.length
        info = describe(event, reader.format)
        found.append(ShownEvent(position, event.name, event.server_id, event.log_pos, info))
    assert found == shown_events(log)
