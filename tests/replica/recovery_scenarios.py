"""The scenarios of the recovery captures as steps, and the source's binary logs put together again
from the replica's relay logs.

A transcript says after each step what SHOW SLAVE STATUS, the info tables, the relay logs and their
index were; beside it lie the info files and, around the kill, the relay logs themselves. The
source's events stand in the relay logs as they were; what it wrote later is stood in for by
transactions of the same number and size that change nothing.
"""

from __future__ import annotations

import gzip
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.binlog.event_bytes import make_event, rotate_target
from applier.binlog.header import MAGIC, EventFlag, EventType
from applier.replica.configuration import ReplicaConfiguration
from applier.replica.source import BinlogFiles
from applier.tables.catalog import Tables
from applier.tables.definitions.schema import parse_create_table
from applier.tables.definitions.table_draft import SchemaRules
from checkpoints.gtid import GtidSet
from tests.checkpoints.recovery_captures import TABLES, row_of, scenarios, text_of, version

SCHEMA = (
    "CREATE TABLE {0}.t (id INT PRIMARY KEY, v INT, w VARCHAR(40)) ENGINE=InnoDB;CREATE TABLE "
    "{0}.n (id INT, v INT) ENGINE=InnoDB"
)
_BEGIN = struct.pack("<IIBHH", 1, 0, 2, 0, 0) + b"d1\0BEGIN"


@dataclass
class Step:
    """What was there after one step."""

    number: int
    title: str
    status: dict[str, str]
    rows: dict[str, list[dict[str, Any]]]
    sizes: dict[str, int]
    index: str
    files: dict[str, bytes] = field(default_factory=dict)
    """The info files, and relay logs where they were kept."""
    text: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """Rows of the replica's tables."""
        found = re.search(r"^rows on the replica: (\{.*\})", self.text, re.M)
        return dict(eval(found[1])) if found else {}

    @property
    def start_error(self) -> int:
        """What START SLAVE failed with; 0 when it did not."""
        found = re.search(r"^START SLAVE failed: \((\d+),", self.text, re.M)
        return int(found[1]) if found else 0


@dataclass
class Scenario:
    folder: Path
    steps: list[Step]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def server(self) -> str:
        return version(self.folder)

    @property
    def tables(self) -> bool:
        return "_table_" in self.name

    @property
    def parallel(self) -> bool:
        return "_mts4" in self.name

    @property
    def gtid(self) -> bool:
        return "_gtid_" in self.name

    @property
    def auto_position(self) -> bool:
        return "_ap1_" in self.name

    @property
    def recovery(self) -> bool:
        return self.name.endswith("_rec1")

    def step(self, title: str) -> Step:
        """The step whose title contains this."""
        return next(step for step in self.steps if title in step.title)

    @property
    def killed(self) -> Step:
        return self.step("after kill -9")

    @property
    def before_kill(self) -> Step:
        """The last step that shows the info tables before the kill."""
        return self.steps[self.steps.index(self.killed) - 1] if self.parallel else self.restarted

    @property
    def restarted(self) -> Step:
        return self.step("after restart with")

    @property
    def caught_up(self) -> Step:
        return self.step("catching up")

    def configuration(self) -> ReplicaConfiguration:
        repository = "TABLE" if self.tables else "FILE"
        return ReplicaConfiguration(
            self.server,
            relay_log_info_repository=repository,
            master_info_repository=repository,
            relay_log_recovery=self.recovery,
            gtid_mode=self.gtid,
            auto_position=self.auto_position,
            workers=4 if self.parallel else 0,
            parallel_type="LOGICAL_CLOCK" if "mts4lc" in self.name else "DATABASE",
        )


def all_scenarios() -> list[Scenario]:
    return [Scenario(folder, _steps(folder)) for folder in scenarios()]


def _steps(folder: Path) -> list[Step]:
    found = []
    for part in re.split(r"^## ", text_of(folder), flags=re.M)[1:]:
        number, title = part.split("\n", 1)[0].split(". ", 1)
        block = re.search(r"^SHOW SLAVE STATUS.*?\n```\n(.*?)\n```", part, re.M | re.S)
        status = (
            dict(line.split(": ", 1) for line in block[1].splitlines() if ": " in line)
            if block
            else {}
        )
        logs = re.search(r"^relay logs: (.*)$", part, re.M)
        index = re.search(r"^index: '(.*)'$", part, re.M)
        sizes = (
            {name: int(size) for name, size in (pair.split(" ") for pair in logs[1].split(", "))}
            if logs
            else {}
        )
        found.append(
            Step(
                int(number),
                title,
                status,
                _rows(part, version(folder)),
                sizes,
                index[1].replace("\\n", "\n") if index else "",
                _files(folder, number),
                part,
            )
        )
    return found


def _rows(part: str, server: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for table, text in re.findall(r"^mysql\.(slave_\w+)\n```\n(.*?)\n?```", part, re.M | re.S):
        assert table in TABLES
        found[table] = [
            row_of(row, server)
            for row in re.split(r"\n(?=-- row)", text)
            if row.startswith("-- row")
        ]
    return found


def _files(folder: Path, number: str) -> dict[str, bytes]:
    found = {}
    for path in (folder / "raw").glob(f"{number}.*"):
        name, content = path.name.split(".", 1)[1], path.read_bytes()
        found[name.removesuffix(".gz")] = (
            gzip.decompress(content) if name.endswith(".gz") else content
        )
    return found


def events_of(relay_log: bytes) -> list[bytes]:
    """The events of a file; all of them have a checksum."""
    found, at = [], len(MAGIC)
    while at < len(relay_log):
        length = int.from_bytes(relay_log[at + 9 : at + 13], "little")
        found.append(relay_log[at : at + length])
        at += length
    return found


def empty_tables() -> Tables:
    """The tables of all scenarios."""
    tables = Tables()
    for database in ("d1", "d2", "d3", "d4"):
        for statement in SCHEMA.format(database).split(";"):
            tables.create(parse_create_table(statement, database, SchemaRules(charset="latin1")))
    return tables


def source_of(scenario: Scenario, upto: Step | None = None) -> BinlogFiles:
    """The source's logs as far as they stand in the relay logs of the kill, or longer, as far as
    the replica has read them at a step."""
    logs: dict[str, bytearray] = {}
    file = ""
    uuid = next(
        (step.status["Master_UUID"] for step in scenario.steps if "Master_UUID" in step.status), ""
    )
    server_id, description = 0, b""
    for name in sorted(name for name in scenario.killed.files if name.startswith("relay.0")):
        for data in events_of(scenario.killed.files[name]):
            kind, own = data[4], int.from_bytes(data[5:9], "little") == 9
            flags, end = (
                int.from_bytes(data[17:19], "little"),
                int.from_bytes(data[13:17], "little"),
            )
            if kind == EventType.ROTATE and not flags & EventFlag.RELAY_LOG:
                real = not flags & EventFlag.ARTIFICIAL and int.from_bytes(data[5:9], "little") != 0
                target = rotate_target(data, 4)[0]
                if real:
                    _put(logs.setdefault(file or _before(target), bytearray(MAGIC)), data, end)
                file = target
                logs.setdefault(file, bytearray(MAGIC))
            elif not own and end and kind != EventType.PREVIOUS_GTIDS:
                server_id = int.from_bytes(data[5:9], "little")
                _put(logs[file], data, end)
            elif not own and kind == EventType.FORMAT_DESCRIPTION:
                _put(logs[file], data, len(MAGIC) + len(data))
            if not own and kind == EventType.FORMAT_DESCRIPTION and end:
                description = data
    whole = {name: log for name, log in logs.items() if len(log) > len(MAGIC)}
    for name, log in whole.items():
        if not any(log[4:23]):
            _put(log, description, len(MAGIC) + len(description))
        _fill_head(
            log, GtidSet(f"{uuid}:1-20") if scenario.gtid and name != "binlog.000001" else GtidSet()
        )
    last, target = (
        ("", 0)
        if upto is None
        else (upto.status.get("Master_Log_File", ""), int(upto.status["Read_Master_Log_Pos"]))
    )
    if upto is not None and last in whole and len(whole[last]) < target:
        _pad(scenario, whole[last], target, uuid, server_id, upto)
    return BinlogFiles(
        {name: bytes(log) for name, log in whole.items()}, uuid=uuid, server_id=server_id
    )


def _before(name: str) -> str:
    """The name of the log before this one."""
    base, _, number = name.rpartition(".")
    return f"{base}.{int(number) - 1:06d}"


def _put(log: bytearray, data: bytes, end: int) -> None:
    if len(log) < end:
        log.extend(bytes(end - len(log)))
    log[end - len(data) : end] = data


def _fill_head(log: bytearray, previous: GtidSet) -> None:
    """The source's set of previous GTIDs, which no relay log has, in the gap behind the format
    description."""
    start, server_id = (
        len(MAGIC) + int.from_bytes(log[13:17], "little"),
        int.from_bytes(log[9:13], "little"),
    )
    known = len(log) > start and log[start : start + 19] != bytes(19)
    if not known and (_always_has_previous_gtids(log) or previous or log[start : start + 19]):
        body = previous.encode()
        end = start + 19 + len(body) + 4
        log[start:end] = make_event(
            EventType.PREVIOUS_GTIDS,
            body,
            timestamp=0,
            server_id=server_id,
            flags=0x80,
            log_pos=end,
        )


def _always_has_previous_gtids(log: bytearray) -> bool:
    return log[25:28] == b"5.7"


def _pad(
    scenario: Scenario, log: bytearray, target: int, uuid: str, server_id: int, upto: Step
) -> None:
    """Transactions that change nothing up to a position: as many as GTIDs were executed, the last
    one as long as need be."""
    have = _finish(log, server_id)
    last = max(
        (end - 1 for _, (_, end) in GtidSet(upto.status.get("Executed_Gtid_Set", ""))), default=0
    )
    numbers = list(range(max(have, default=20) + 1, last + 1)) if scenario.gtid else [0]
    if len(log) == target:
        return
    assert numbers, scenario.name
    for number in numbers:
        pad = target if number == numbers[-1] else 0
        _append_transaction(log, scenario, uuid, server_id, number, pad)
    assert len(log) == target, (scenario.name, len(log), target)


def _append_transaction(
    log: bytearray, scenario: Scenario, uuid: str, server_id: int, number: int, target: int
) -> None:
    if scenario.gtid or scenario.server != "5.6":
        clock = b"" if scenario.server == "5.6" else struct.pack("<Bqq", 2, 0, 0)
        gtid = struct.pack(
            "<B16sq",
            1,
            bytes.fromhex(uuid.replace("-", "")) if scenario.gtid else bytes(16),
            number,
        )
        _add(
            log,
            server_id,
            EventType.GTID if scenario.gtid else EventType.ANONYMOUS_GTID,
            gtid + clock,
        )
    _add(log, server_id, EventType.QUERY, _BEGIN)
    if target:
        left = target - len(log) - 31
        _add(log, server_id, EventType.ROWS_QUERY, bytes(left - 23))
    _add(log, server_id, EventType.XID, struct.pack("<Q", number))


def _finish(log: bytearray, server_id: int) -> list[int]:
    """Completes the transaction in which the relay logs end. Returns the numbers of the GTIDs in
    the log."""
    found, open_transaction = [], False
    for data in events_of(bytes(log)):
        if data[4] == EventType.GTID:
            found.append(struct.unpack_from("<q", data, 19 + 17)[0])
        open_transaction = data[4] in (
            EventType.GTID,
            EventType.ANONYMOUS_GTID,
            EventType.QUERY,
            EventType.TABLE_MAP,
        ) or (data[4] in (EventType.WRITE_ROWS, EventType.UPDATE_ROWS))
    if open_transaction:
        last = events_of(bytes(log))[-1][4]
        if last in (EventType.GTID, EventType.ANONYMOUS_GTID):
            _add(log, server_id, EventType.QUERY, _BEGIN)
        _add(log, server_id, EventType.XID, struct.pack("<Q", 0))
    return found


def _add(log: bytearray, server_id: int, kind: EventType, body: bytes) -> None:
    size = 19 + len(body) + 4
    log.extend(make_event(kind, body, timestamp=1, server_id=server_id, log_pos=len(log) + size))
