"""Bad input of every kind, through the command line: exit code, code, place, next step, one line. And --verbose, which tells no secret."""

from __future__ import annotations

import pickle
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import applier.replay_loop
from applier.cli import failures
from applier.cli.main import COMMANDS as EVERY_COMMAND
from applier.cli.main import main
from applier.error_codes import BY_CODE, Code
from applier.errors import BinlagError, InputError, ReplicationError, UsageError
from applier.masking import mask
from checkpoints.errors import CheckpointError
from checkpoints.gtid import GtidError
from tests.applier.logs import BEGIN, INT_TABLE, inner, insert, ints, transaction
from tests.binlog.build import MAGIC, event, format_description, gtid, log, payload, query, rows, table_map, write, xid

Said = Callable[..., tuple[int, list[str]]]
GOOD = log(*insert(1, 5))
FIRST = len(log())
"""Position of the first event behind the format description."""
SECRET = "hunter-22-zulu"


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    """Runs a command line in a folder of its own: (exit code, lines on standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, list[str]]:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        assert isinstance(caught.value.code, int)
        return caught.value.code, capsys.readouterr().err.splitlines()

    return run


def damaged(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def with_event(kind: int, body: bytes) -> bytes:
    return log((kind, body))


LOGS: dict[str, tuple[bytes, str, tuple[str, ...]]] = {
    "cut off": (GOOD[:-3], "BL104", ("position",)),
    "cut off in a header": (GOOD[: FIRST + 7], "BL104", (f"position {FIRST}",)),
    "empty": (b"", "BL102", ()),
    "a text": (b"-- SQL", "BL102", ("position 0",)),
    "encrypted": (b"\xfdbin" + bytes(600), "BL103", ()),
    "a byte that changed": (damaged(GOOD, FIRST + 25), "BL105", (f"position {FIRST}",)),
    "an event type that is none": (with_event(250, b""), "BL106", (f"position {FIRST}",)),
    "a length that is none": (log() + struct.pack("<IBIIIH", 0, 2, 1, 5, 0, 0), "BL106", (f"position {FIRST}",)),
    "a format that is cut": (MAGIC + event(15, b"\x04\0" + bytes(20), at=4), "BL107", ("position 4",)),
    "a log of version 9": (MAGIC + event(15, b"\x09\0" + format_description()[21:-4], at=4), "BL108", ("position 4",)),
    "more columns than mapped": (log(*transaction(1, table_map(), rows(30, ints(5), width=3))), "BL111", ("position", "table d.t")),
    "an image that is cut": (log(*transaction(1, table_map(), rows(30, b"\0\1"))), "BL111", ("position", "table d.t")),
    "a payload that lies": (log(gtid(1), payload(inner(BEGIN, xid()), size=7)), "BL113", ("position",)),
    "rows of nobody": (log(gtid(1), BEGIN, rows(30, ints(5), table_id=7), xid()), "BL114", ("position",)),
    "a file that was not loaded": (
        log(gtid(1), BEGIN, (18, query(b"LOAD DATA")[1][:11] + b"\0\0" + struct.pack("<IIIB", 9, 0, 0, 0) + b"d\0LOAD DATA"), xid()),
        "BL118",
        ("position",),
    ),
}
"""Name -> log, code, further words of the line."""


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_cannot_be_read(name: str, said: Said, tmp_path: Path) -> None:
    content, code, words = LOGS[name]
    schema = tmp_path / "schema.sql"
    schema.write_text(INT_TABLE)
    exit_code, errors = said("replay", write(tmp_path, content), "--schema", schema)
    assert exit_code == 2
    check(errors, code, ("binlog.000001", *words))


def check(errors: list[str], code: str, words: tuple[str, ...] = ()) -> None:
    """One line, with its code, the words (at its end, where they end in $), and a next step."""
    assert len(errors) == 1, errors
    (line,) = errors
    assert re.match(rf"binlag: (?:[\w ]+: )?error {code}: ", line), line
    assert all(line.endswith(word[:-1]) if word.endswith("$") else word in line for word in words), line
    assert re.search(r"\. Next: \S.+$", line), line
    assert "Traceback" not in line


STOPS: dict[str, tuple[bytes, str, int, tuple[str, ...]]] = {
    "a row that is missing": (log(*transaction(1, table_map(), rows(32, ints(9)))), INT_TABLE, 1032, ("position", "table d.t")),
    "a row that is there": (log(*insert(1, 5), *insert(2, 5)), INT_TABLE, 1062, ("position", "table d.t")),
    "a table that is missing": (GOOD, "CREATE DATABASE d;", 1146, ("position", "table d.t")),
    "a type that does not fit": (GOOD, "CREATE TABLE d.t (a DATE);", 1677, ("position", "table d.t")),
    "a statement that is none": (log(gtid(1), query(b"CREATE TABLE x (")), INT_TABLE, 1064, ("position",)),
    "an expression that is not known": (log(gtid(1), BEGIN, query(b"INSERT INTO t SELECT 1"), xid()), INT_TABLE, 1235, ("position",)),
    "a database that is there": (log(gtid(1), query(b"CREATE DATABASE d")), INT_TABLE, 1007, ("position",)),
    "an incident": (with_event(26, struct.pack("<HB", 1, 4) + b"gone"), INT_TABLE, 1590, (f"position {FIRST}",)),
}
"""Name -> log, schema, number, further words of the line."""


@pytest.mark.parametrize("name", STOPS)
def test_the_applier_stops(name: str, said: Said, tmp_path: Path) -> None:
    content, sql, number, words = STOPS[name]
    schema = tmp_path / "schema.sql"
    schema.write_text(sql)
    exit_code, errors = said("replay", write(tmp_path, content), "--schema", schema)
    assert exit_code == 1
    check(errors, str(number), ("file binlog.000001", *words))


FILES = {
    "good.000001": GOOD,
    "nothing.000001": log(),
    "gtid.000001": log((33, b"\x01"), BEGIN, xid()),
    "decimal.000001": log(*transaction(1, table_map(types=b"\xf6", metadata=b"\xc8\3"), rows(30, ints(5)))),
    "good.sql": INT_TABLE.encode(),
    "bad.sql": b"CREATE TABLE d.t (a INT);\nCREATE TABLE d.u (b NONSENSE);\n",
    "rows.sql": b"CREATE TABLE d.t (a INT);\nINSERT INTO d.other VALUES (1);\n",
    "bad.sql.gz": b"no gzip",
    "other.sql": b"CREATE TABLE e.t (a INT);",
    "empty.sql": b"",
    "other.json": b'{"a": 1}',
    "bad.yaml": b"tables: 7\n",
    "list.yaml": b"tables: [{name: x}]\n",
    "traffic.yaml": b"traffic: 7\n",
    "binary": b"\x89PNG",
    "good.yaml": b"sources: [{name: a, logs: good.000001, schema: good.sql}]\n",
    "bad.json": b"[1",
    "bad.parquet": b"PAR1",
    "folder/empty": b"",
    "gone/binlog.000001": GOOD,
    "gone/binlog.index": b"./binlog.000001\n./binlog.000002\n",
    "garbage/binlog.index": b"\xff\xfe\0garbage",
    "relay/relay.000001": GOOD,
    "relay/relay.index": b"./relay.000001\n",
    "hello.txt": b"hello world\n",
}
ONE = "--repository table --sync 1 --recovery 1 --position file --workers 0 --engine innodb"
"""One configuration."""
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "replay": ("BL301", ("FILE",)),
    "reply good.000001": ("BL301", ("reply",)),
    "replay good.000001 --nonsense": ("BL301", ("--nonsense",)),
    "replay good.000001 --start-position x": ("BL301", ("--start-position",)),
    "replay missing.000001": ("BL101", ("missing.000001",)),
    "replay good.000001 --schema missing.sql": ("BL101", ("missing.sql",)),
    "replay good.000001 --schema bad.sql": ("BL201", ("bad.sql", "line 2")),
    "replay good.000001 --schema bad.sql.gz": ("BL201", ("bad.sql.gz",)),
    "replay good.000001 --schema rows.sql": ("BL202", ("rows.sql", "line 2")),
    "replay good.000001 --include-gtids 1-2-3-4-5": ("BL305", ("--include-gtids",)),
    "replay good.000001 --start-datetime yesterday": ("BL306", ("yesterday",)),
    "replay good.000001 --table t": ("BL307", ("--table",)),
    "replay good.000001 --server nonsense": ("BL308", ("--server", "nonsense")),
    "replay good.000001 --server 9.7 --row-search TABLE_SCAN": ("BL309", ("9.7",)),
    "replay good.000001 --skip-errors some": ("BL302", ("--skip-errors",)),
    "replay good.000001 --rewrite-db a": ("BL302", ("--rewrite-db",)),
    "replay good.000001 --workers 4": ("BL303", ("--workers",)),
    "replay good.000001 --start-position 99999": ("BL116", ("good.000001",)),
    "replay good.000001 --schema good.sql --dump good.sql/x": ("BL206", ("good.sql",)),
    "replay gtid.000001 --dump good.sql/x/y": ("BL206", ("--dump: cannot write good.sql/x/y",)),
    "replay good.000001 --schema good.sql --stats missing/x": ("BL206", ("missing/x",)),
    "replay good.000001 --into postgres://h": ("BL310", ("postgres",)),
    f"replay good.000001 --into mysql://root:{SECRET}@h": ("BL311", ("--into",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1": ("BL401", ("127.0.0.1:1",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1 --password-file missing": ("BL101", ("missing",)),
    "replay --follow folder": ("BL119", ("folder has no index of logs", "name the logs themselves, as folder/binlog.*")),
    "replay gone": ("BL119", ("gone/binlog.index names binlog.000002, which is not there",)),
    "forecast good.000001 --schema good.sql --table d.tt": ("BL315", ("--table d.tt: names nothing", "did you mean d.t?")),
    "forecast good.000001 --schema good.sql --include-gtids 0-1-5": ("BL305", ("0-1-5 names transactions of MariaDB",)),
    "forecast good.000001 --replica 127.0.0.1": ("BL310", ("--replica: '127.0.0.1' is not a server address",)),
    "forecast missing.000001 --schema good.sql --openmetrics x.txt": ("BL302", ("x.txt does not end in .prom",)),
    "forecast --workload list.yaml": ("BL203", ("`tables` should be names and values",)),
    "forecast --workload traffic.yaml": ("BL203", ("`traffic` should be a list",)),
    "forecast --workload binary": ("BL203", ("not text in UTF-8",)),
    "forecast good.000001 --schema good.sql --calibration binary": ("BL204", ("not text in UTF-8",)),
    "forecast good.000001 --schema good.sql --password-file secret": ("BL304", ("--password-file: no server is named",)),
    "explain good.sql --password-file secret": ("BL304", ("--password-file: no server is named",)),
    "explain good.sql --database dd": ("BL315", ("--database dd: no table of the schema is left", "did you mean d?")),
    "explain good.sql --exclude-database d": ("BL315", ("the schema has d",)),
    "explain empty.sql --database d": ("BL207", ("the dump is empty",)),
    "events gone/relay.index": ("BL101", ("gone/relay.index",)),
    "replay garbage": ("BL119", ("garbage/binlog.index", "this is not an index of logs")),
    "replay good.000001 --schema good.sql --stats /dev/full": ("BL902", ("free space where the output is written",)),
    "replay good.000001 --schema good.sql --include-gtids ,": ("BL315", ("--include-gtids: the set is empty",)),
    "events mysql://u@h:1": ("BL122", ("binlag receive mysql://",)),
    "explain other.json": ("BL201", ("expected a statement",)),
    "clock --scenario": ("BL301", ("requires an argument", "see binlag clock --help")),
    "clock good.000001 --row-speed nan": ("BL301", ("'nan' is not a number.",)),
    "clock good.000001 --status-at inf": ("BL301", ("'inf' is not a number.",)),
    "clock good.000001 --every 1e-9": ("BL301", ("--every",)),
    "clock good.000001 --workers two": ("BL301", ("'two' is not a whole number.",)),
    "clock good.000001 --row-speed fast": ("BL301", ("'fast' is not a number.",)),
    "recover relay --info hello.txt": ("BL508", ("hello.txt", "mysqldump mysql slave_relay_log_info")),
    "recover relay --my-cnf hello.txt": ("BL510", ("hello.txt", "line 1: an option stands before the first section")),
    "recover relay --set relay-log-recover=1": ("BL302", ("did you mean relay_log_recovery?",)),
    "receive mysql://u@h --dir relay --zstd-compression-level 99": ("BL302", (": --zstd-compression-level=99 is not",)),
    "receive mysql://u@h --dir relay --compression-algorithms lz4": ("BL302", (": --compression-algorithms: 'lz4'",)),
    "fleet good.yaml --master nonsense": ("BL302", ("--master: 'nonsense' is not an address of Spark", "spark://HOST:PORT")),
    "measure --table x.parquet --master nonsense": ("BL302", ("--master: 'nonsense'",)),
    "replay good.000001 missing.000002 --schema good.sql": ("BL101", ("(file missing.000002).",)),
    "replay good.000001 --start-position 400 --stop-position 300": ("BL303", ("--stop-position 300 is before --start-position 400",)),
    "replay good.000001 --start-datetime 2026-02-02 --stop-datetime 2026-02-01": ("BL303", ("--stop-datetime is before",)),
    "replay good.000001 --exclude-gtids 0-1-5": ("BL305", ("0-1-5 names transactions of MariaDB",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1 --until-gtid 5": ("BL305", ("--until-gtid",)),
    "verify good.000001 --into mysql://u@127.0.0.1:1 --start-position 400 --stop-position 300": ("BL303", ("--stop-position 300",)),
    "replay good.000001 --row-search FAST": ("BL302", ("Next: see binlag replay --help",)),
    "events good.000001 --start-position 400 --stop-position 300": ("BL303", ("--stop-position 300",)),
    "events good.000001 --start-datetime 2026-02-02 --stop-datetime 2026-02-01": ("BL303", ("--stop-datetime is before",)),
    "events good.000001 --include-gtids 0-1-5": ("BL305", ("0-1-5 names transactions of MariaDB, and the log is one of MySQL",)),
    "events good.000001 --json --parquet x": ("BL303", ("--json, --parquet and --arrow",)),
    "events good.000001 --parquet x --arrow y": ("BL303", ("--json, --parquet and --arrow",)),
    "events gtid.000001": ("BL109", ("gtid.000001", f"position {FIRST}")),
    "events decimal.000001 --rows": ("BL110", ("decimal.000001", "position")),
    "events good.000001 --table t": ("BL307", ("'t'",)),
    "events good.000001 --arrow out --stop-position 4": ("BL303", ("--stop-position",)),
    "events good.000001 --parquet missing/x": ("BL206", ("missing/x",)),
    "explain missing.sql": ("BL101", ("missing.sql",)),
    "explain good.sql --server 4.0": ("BL308", ("4.0",)),
    "explain good.sql --table d.other": ("BL307", ("d.other",)),
    "explain good.sql --server 9.7 --row-search TABLE_SCAN": ("BL309", ("9.7",)),
    "explain empty.sql": ("BL207", ("the dump is empty",)),
    "clock": ("BL304", ("--scenario",)),
    "clock --scenario nonsense": ("BL302", ("nonsense",)),
    "clock --scenario ddl --workers 7": ("BL303", ("--workers: a scenario has its own replicas",)),
    "clock --scenario ddl --server 5.7": ("BL303", ("--server: a scenario has its own replicas",)),
    "clock missing.000001 --plot missing/x.svg": ("BL206", ("--plot: cannot write missing/x.svg",)),
    "clock --scenario ddl --status-at 3 --plot x.svg": ("BL303", ("--plot: a status cannot be drawn",)),
    "clock nothing.000001": ("BL117", ()),
    "status folder": ("BL508", ("folder",)),
    f"crashtest good.000001 --schema good.sql {ONE} --crash nonsense": ("BL701", ()),
    "crashtest good.000001 --schema good.sql --crash process": ("BL303", ("--crash",)),
    "crashtest missing.000001 --html missing/x.html": ("BL206", ("--html: cannot write missing/x.html",)),
    "crashtest good.000001 --schema good.sql --transactions 3": ("BL303", ("--transactions: the log has its own",)),
    "status folder --json --format table": ("BL303", ("--json and --format table are two outputs",)),
    "clock good.000001 --json --format table": ("BL303", ("--json and --format table are two outputs",)),
    "forecast good.000001 --schema good.sql --relaxed --sync-binlog 1": ("BL303", ("--relaxed sets --sync-binlog, too",)),
    "forecast good.000001 --schema good.sql --durable --innodb-flush-log-at-trx-commit 2": (
        "BL303",
        ("--durable sets --innodb-flush-log-at-trx-commit, too",),
    ),
    "forecast good.000001 --schema good.sql --server 5.6 --parallel-type LOGICAL_CLOCK": (
        "BL302",
        ("5.6 has no LOGICAL_CLOCK", "it has DATABASE"),
    ),
    "forecast good.000001 --schema good.sql --server mariadb --parallel-type DATABASE": (
        "BL302",
        ("mariadb has no DATABASE", "aggressive, conservative"),
    ),
    "clock good.000001 --server 5.6 --parallel-type LOGICAL_CLOCK": ("BL510", ("=LOGICAL_CLOCK. Next: it has DATABASE",)),
    "clock good.000001 --server mariadb --parallel-type DATABASE": ("BL510", ("=DATABASE. Next: remove it",)),
    "clock good.000001 --server 5.6 --preserve-commit-order": ("BL510", ("5.6 has no preserve_commit_order",)),
    "crashtest --server 5.5": ("BL308", ("Next: name one of 5.6, 5.7, 8.0, 8.4, 9.7$",)),
    "recover relay --server 5.5": ("BL308", ("Next: name one of 5.6, 5.7, 8.0, 8.4, 9.7$",)),
    "explain mysql://u@127.0.0.1:1/shop": ("BL310", ("schema: '/shop' is not part", "--database NAME")),
    "replay good.000001 --into mysql://u@127.0.0.1:0": ("BL310", ("the port or the host is missing or not valid",)),
    "crashtest --json --brief": ("BL303", ("--json and --brief are two outputs",)),
    f"crashtest good.000001 --schema good.sql {ONE} --crash nonsense --json": ("BL303", ("--json: one crash makes no matrix",)),
    f"crashtest good.000001 --schema good.sql {ONE} --crash nonsense --require sync=1": ("BL303", ("--require: one crash",)),
    "crashtest --schema good.sql": ("BL303", ("--schema: the generated log",)),
    "crashtest --server 9.7 --workers 0": ("BL510", ("workers=0 is out of range", "takes 1 to 1024")),
    "forecast": ("BL304", ()),
    "forecast good.000001": ("BL304", ("add --schema",)),
    "forecast --workload bad.yaml --schema good.sql": ("BL203", ("bad.yaml",)),
    "forecast good.000001 --schema good.sql --calibration bad.json": ("BL204", ("bad.json",)),
    "forecast good.000001 --schema good.sql --calibration other.json": ("BL204", ("no calibration: it has no 'format'", "other.json")),
    "forecast good.000001 --schema other.sql --server 5.7": ("BL207", ("none of the log's tables, d.t for one",)),
    "forecast good.000001 --schema empty.sql --server 5.7": ("BL207", ("the dump is empty",)),
    "forecast good.000001 --schema good.sql --server 9.7 --row-search TABLE_SCAN": ("BL309", ("9.7",)),
    "forecast good.000001 --schema good.sql --rows d.other=5": ("BL307", ("d.other",)),
    "forecast good.000001 --schema good.sql --server 5.7 --what-if index=x": ("BL302", ("--what-if index: 'x' is not a number",)),
    "forecast missing.000001 --schema good.sql --report missing/x.html": ("BL206", ("--report: cannot write missing/x.html",)),
    "forecast missing.000001 --schema good.sql --openmetrics missing/x.prom": ("BL206", ("--openmetrics: cannot write missing/x",)),
    "forecast missing.000001 --schema good.sql": ("BL101", ("missing.000001",)),
    "measure": ("BL304", ("--table",)),
    "measure --table bad.parquet": ("BL205", ("bad.parquet",)),
    "measure --table missing/x.parquet": ("BL206", ("--table: cannot write missing/x.parquet",)),
    "measure --table x.parquet --relay-folder .": ("BL303", ("--relay-folder",)),
    "completion": ("BL301", ("bash, zsh, fish. Next",)),
    "receive mysql://u@127.0.0.1:1 --dir relay": ("BL401", ("127.0.0.1:1",)),
    "receive mysql://u@127.0.0.1:1 --dir relay --from nonsense": ("BL302", ("--from",)),
    "receive mysql://u@127.0.0.1:1 --dir good.sql/relay": ("BL206", ("good.sql",)),
    "receive mysql://u@127.0.0.1:1 --dir relay --channel c": ("BL304", ("--channel: no gauges are written",)),
    "replay good.000001 --channel c": ("BL304", ("--channel: no gauges are written",)),
    "status . --channel c": ("BL304", ("--channel: no gauges are written",)),
    "replay good.000001 --start-datetime @x": ("BL306", ("--start-datetime: '@x' is not a date and time",)),
    f"replay mysql://root:{SECRET}@h/x": ("BL311", ("a password stands in an address",)),
    f"receive //root:{SECRET}@h --dir relay": ("BL310", ()),
    f"forecast good.000001 --schema mysql://root:{SECRET}@h/d": ("BL311", ()),
    "doctor x": ("BL301", ("(x)",)),
    "doctor --jso": ("BL301", ("did you mean --json?",)),
    "doctor --json=3": ("BL301", ("does not take a value",)),
    "demo x": ("BL301", ("(x)",)),
    "demo --dir good.sql": ("BL301", ("good.sql",)),
    "demo --folder x": ("BL301", ("--folder",)),
    "completion bash zsh": ("BL301", ("(zsh)",)),
    "spark-package x": ("BL301", ("(x)",)),
    "spark-package --output missing/x/y": ("BL206", ("missing/x/y",)),
    "spark-package --wit x": ("BL301", ("did you mean --with?",)),
    "fleet": ("BL301", ("FLEET.yaml",)),
    "fleet missing.yaml": ("BL101", ("missing.yaml",)),
    "fleet bad.yaml": ("BL211", ("bad.yaml",)),
    "recover": ("BL301", ("DIR",)),
    "recover missing": ("BL508", ("missing",)),
    "recover folder --workers x": ("BL301", ("--workers",)),
    "status": ("BL301", ("DIR",)),
    "status missing": ("BL508", ("missing",)),
    "status folder --format x": ("BL301", ("vertical",)),
    "explain": ("BL301", ("SCHEMA",)),
    "explain good.sql --csv --json": ("BL303", ("--csv",)),
    "explain good.sql --fail-on none": ("BL302", ("use one of no-key, not-unique",)),
    "explain good.sql --rows x": ("BL302", ("db.table=1000000",)),
    "explain good.sql --rows d.t=x": ("BL302", ("'d.t=x'",)),
    "explain good.sql --rows d.tt=4": ("BL307", ("did you mean d.t?",)),
    "explain good.sql --password x": ("BL301", ("did you mean --password-file?",)),
    "explain mysql://u@127.0.0.1:1": ("BL401", ("127.0.0.1:1",)),
    "receive": ("BL301", ("mysql://USER@HOST:PORT",)),
    "receive mysql://u@h": ("BL301", ("--dir",)),
    "verify good.000001": ("BL301", ("--into",)),
    "verify good.000001 --into memory": ("BL310", ("memory",)),
}
"""Arguments -> code, further words of the line."""


@pytest.fixture
def files(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)


def test_every_command_is_given_wrongly() -> None:
    assert len(COMMANDS) >= 100
    assert {name for name in EVERY_COMMAND if sum(text.split()[0] == name for text in COMMANDS) < 2} == set()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_that_cannot_be_carried_out(arguments: str, said: Said) -> None:
    code, words = COMMANDS[arguments]
    exit_code, errors = said(*arguments.split())
    assert exit_code == 2
    check(errors, code, words)
    assert SECRET not in errors[0]
    named = re.search(r"see binlag ([\w-]+ )?--help$", errors[0])
    if named:
        assert said(*(named[1] or "").split(), "--help") == (0, []), "the next step works when it is followed"


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("arguments", [arguments for arguments in COMMANDS if SECRET in arguments])
def test_verbose_tells_no_password_of_a_url(arguments: str, said: Said) -> None:
    exit_code, errors = said(*arguments.split(), "--verbose")
    assert exit_code == 2
    assert len(errors) > 4
    assert SECRET not in "\n".join(errors)


@pytest.mark.parametrize("before", [True, False])
def test_verbose_says_what_led_there(before: bool, said: Said, tmp_path: Path) -> None:
    path = write(tmp_path, log(*transaction(1, table_map(), rows(30, ints(5), width=3))))
    schema = tmp_path / "schema.sql"
    schema.write_text(INT_TABLE)
    arguments = ["replay", path, "--schema", schema, "--exec-mode", "idempotent"]
    exit_code, errors = said(*["--verbose", *arguments] if before else [*arguments, "--verbose"])
    assert exit_code == 2
    check(errors[:1], "BL111", ("table d.t",))
    text = "\n".join(errors[1:])
    assert f"meaning: {BY_CODE['BL111'].meaning}" in text
    assert "page: docs/errors/BL111.md" in text
    assert re.search(r"last event read: Write_rows\w* of \d+ bytes, \S*binlog\.000001, position \d+, server id 1", text)
    assert "command: binlag replay" in text
    assert "option exec_mode: idempotent" in text
    assert re.search(r"versions: binlag \S+, click .*Python 3", text)
    assert "Traceback" not in text


def test_verbose_says_the_cause_that_the_line_leaves_out(said: Said) -> None:
    _, errors = said("replay", "missing.000001", "--verbose")
    assert any("because of: FileNotFoundError: [Errno 2]" in line for line in errors)


def test_nothing_more_is_said_when_nothing_fails(said: Said, tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(INT_TABLE)
    assert said("replay", write(tmp_path, GOOD), "--schema", schema, "--verbose") == (0, [])


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the program, with a password at hand."""

    def fail(*arguments: object, **options: object) -> None:
        password = SECRET
        raise RuntimeError(f"no such state (of mysql://root:{password}@h, {password})")

    monkeypatch.setattr(applier.replay_loop.ReplayLoop, "_commit", fail)
    monkeypatch.setenv("BINLAG_PASSWORD", SECRET)


@pytest.mark.usefixtures("broken")
def test_a_mistake_in_the_program_is_one_line_with_an_exit_code_of_its_own(said: Said, tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(INT_TABLE)
    exit_code, errors = said("replay", write(tmp_path, GOOD), "--schema", schema)
    assert exit_code == failures.INTERNAL_ERROR == 70
    check(errors, "BL901", ("internal error: RuntimeError: no such state", "file binlog.000001", "position", "--verbose", "report"))
    assert SECRET not in errors[0]


@pytest.mark.usefixtures("broken")
def test_its_traceback_is_there_with_verbose_and_holds_no_values(said: Said, tmp_path: Path) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(INT_TABLE)
    exit_code, errors = said("replay", write(tmp_path, GOOD), "--schema", schema, "--verbose")
    text = "\n".join(errors)
    assert exit_code == 70
    assert "Traceback (most recent call last)" in text
    assert "RuntimeError: no such state (of mysql://root:***@h, ***)" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            CheckpointError("the record's port is 'x'", file="master.info", line=6, hint="mend it"),
            "BL507",
            "(file master.info). Next: mend it",
        ),
        (GtidError("not a GTID set: 'x'"), "BL305", "not a GTID set: 'x'"),
        (OSError(28, "No space left on device", "relay.000001"), "BL902", "No space left on device (file relay.000001)"),
        (MemoryError(), "BL903", "memory is used up"),
        (ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"), "BL601", "pip install 'binlag[arrow]'"),
        (ModuleNotFoundError("No module named 'applier.x'", name="applier.x"), "BL901", "internal error: ModuleNotFoundError"),
        (ZeroDivisionError(), "BL901", "internal error: ZeroDivisionError"),
    ],
)
def test_errors_of_others_get_a_code_at_the_border(error: Exception, code: str, words: str) -> None:
    found = failures.translated(error)
    assert isinstance(found, BinlagError)
    assert found.code == code
    assert words in str(found)
    assert found.exit_code == (70 if code == "BL901" else 2)


@pytest.mark.parametrize(
    "error",
    [
        InputError("cut", code=Code.CUT_OFF, file="f", position=4, table="d.t", hint="do"),
        UsageError("wrong", code=Code.URL),
        ReplicationError(1032, "missing", file="f"),
    ],
)
def test_errors_travel_between_processes(error: BinlagError) -> None:
    came = pickle.loads(pickle.dumps(error))
    assert type(came) is type(error)
    assert (str(came), came.args, came.__dict__) == (str(error), error.args, error.__dict__)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mysql://root:s3cr/t@p@host:3306/x?tls=off", "mysql://root:***@host:3306/x?tls=off"),
        ("'u:pw@[::1]' and //x:y@z", "'u:***@[::1]' and //x:***@z"),
        ("CREATE USER a IDENTIFIED WITH sha2 AS '*A1'", "CREATE USER a IDENTIFIED WITH sha2 AS ***"),
        ("SET PASSWORD = PASSWORD('x')", "SET PASSWORD = PASSWORD(***)"),
        ("mysql://root@host:3306 at binlog.000001:4, 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", None),
    ],
)
def test_what_is_masked(text: str, masked: str | None) -> None:
    assert mask(text) == (masked or text)
