"""Bad input of every kind, through the command line: exit code, code, place, next step, one line.
And --verbose, which tells no secret."""

from __future__ import annotations

import pickle
import re
import shlex
import struct
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import applier.replay_loop
from applier.cli import failures
from applier.cli.main import COMMANDS as EVERY_COMMAND
from applier.cli.main import main
from applier.error_catalogue import situation
from applier.error_codes import Code
from applier.errors import BinlagError, InputError, ReplicationError, UsageError
from applier.masking import mask
from checkpoints.errors import CheckpointError
from checkpoints.gtid import GtidError
from tests.applier.logs import BEGIN, INT_TABLE, inner, insert, ints, transaction
from tests.binlog.build import (
    MAGIC,
    event,
    format_description,
    gtid,
    log,
    payload,
    query,
    rows,
    table_map,
    write,
    xid,
)
from tests.cli.wrong_commands import COMMANDS, FIRST, SECRET

Said = Callable[..., tuple[int, list[str]]]
GOOD = log(*insert(1, 5))


@pytest.fixture
def said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Said:
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
    "a length that is none": (log() + struct.pack("<IBIIIH", 0, 2, 1, 5, 0, 0), "BL106",
                              (f"position {FIRST}",)),
    "a format that is cut": (MAGIC + event(15, b"\x04\0" + bytes(20), at=4), "BL107",
                             ("position 4",)),
    "a log of version 9": (MAGIC + event(15, b"\x09\0" + format_description()[21:-4], at=4),
                           "BL108", ("position 4",)),
    "more columns than mapped":
        (log(*transaction(1, table_map(), rows(30, ints(5), width=3))), "BL111",
         ("position", "table d.t")),
    "an image that is cut": (log(*transaction(1, table_map(), rows(30, b"\0\1"))), "BL111",
                             ("position", "table d.t")),
    "a payload that lies": (log(gtid(1), payload(inner(BEGIN, xid()), size=7)), "BL113",
                            ("position",)),
    "rows of nobody": (log(gtid(1), BEGIN, rows(30, ints(5), table_id=7), xid()), "BL114",
                       ("position",)),
    "a file that was not loaded": (
        log(
            gtid(1),
            BEGIN,
            (
                18,
                query(b"LOAD DATA")[1][:11]
                + b"\0\0"
                + struct.pack("<IIIB", 9, 0, 0, 0)
                + b"d\0LOAD DATA",
            ),
            xid(),
        ),
        "BL118",
        ("position",),
    ),
}  # fmt: skip
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
    assert all(
        line.endswith(word[:-1]) if word.endswith("$") else word in line for word in words
    ), line
    assert re.search(r"\. Next: \S.+$", line), line
    assert "Traceback" not in line


STOPS: dict[str, tuple[bytes, str, int, tuple[str, ...]]] = {
    "a row that is missing": (log(*transaction(1, table_map(), rows(32, ints(9)))), INT_TABLE, 1032,
                              ("position", "table d.t")),
    "a row that is there": (log(*insert(1, 5), *insert(2, 5)), INT_TABLE, 1062,
                            ("position", "table d.t")),
    "a table that is missing": (GOOD, "CREATE DATABASE d;", 1146, ("position", "table d.t")),
    "a type that does not fit":
        (GOOD, "CREATE TABLE d.t (a DATE);", 1677, ("position", "table d.t")),
    "a statement that is none":
        (log(gtid(1), query(b"CREATE TABLE x (")), INT_TABLE, 1064, ("position",)),
    "an expression that is not known":
        (log(gtid(1), BEGIN, query(b"INSERT INTO t VALUES (f(1))"), xid()), INT_TABLE, 1235,
         ("position",)),
    "a database that is there":
        (log(gtid(1), query(b"CREATE DATABASE d")), INT_TABLE, 1007, ("position",)),
    "an incident": (with_event(26, struct.pack("<HB", 1, 4) + b"gone"), INT_TABLE, 1590,
                    (f"position {FIRST}",)),
}  # fmt: skip
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
    "decimal.000001": log(
        *transaction(1, table_map(types=b"\xf6", metadata=b"\xc8\3"), rows(30, ints(5)))
    ),
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
    "sqlite": b"SQLite format 3\0",
    "three.000001": b"\xfebi",
    "empty.000001": b"",
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
    "utf16.sql": INT_TABLE.encode("utf-16"),
}


@pytest.fixture
def files(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)


def test_every_command_is_given_wrongly() -> None:
    assert len(COMMANDS) >= 100
    assert {
        name for name in EVERY_COMMAND if sum(text.split()[0] == name for text in COMMANDS) < 2
    } == set()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_that_cannot_be_carried_out(arguments: str, said: Said) -> None:
    code, words = COMMANDS[arguments]
    exit_code, errors = said(*shlex.split(arguments))
    assert exit_code == 2
    check(errors, code, words)
    assert SECRET not in errors[0]
    named = re.search(r"see binlag ([\w-]+ )?--help$", errors[0])
    if named:
        assert said(*(named[1] or "").split(), "--help") == (0, []), (
            "the next step works when it is followed"
        )


@pytest.mark.usefixtures("files")
def test_an_input_that_was_named_as_the_output_stays(said: Said, tmp_path: Path) -> None:
    assert said(*"replay good.000001 --schema good.sql --stats good.000001".split())[0] == 2
    assert said(*"forecast good.000001 --schema good.sql --report good.sql".split())[0] == 2
    assert said("demo", "--dir", "gone")[0] == 2
    assert all((tmp_path / name).read_bytes() == content for name, content in FILES.items())


def test_a_file_that_may_not_be_read_is_said_like_one_that_is_not_there() -> None:
    found = failures.translated(click.BadParameter("Path 'x y' is not readable."))
    assert (found.code, found.file, "Permission denied" in str(found)) == ("BL101", "x y", True)


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
    assert f"meaning: {situation('BL111').meaning}" in text
    assert "page: docs/errors/BL111.md" in text
    assert re.search(
        r"last event read: Write_rows\w* of \d+ bytes, \S*binlog\.000001, position \d+, "
        r"server id 1",
        text,
    )
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
def test_a_mistake_in_the_program_is_one_line_with_an_exit_code_of_its_own(
    said: Said, tmp_path: Path
) -> None:
    schema = tmp_path / "schema.sql"
    schema.write_text(INT_TABLE)
    exit_code, errors = said("replay", write(tmp_path, GOOD), "--schema", schema)
    assert exit_code == failures.INTERNAL_ERROR == 70
    check(
        errors,
        "BL901",
        (
            "internal error: RuntimeError: no such state",
            "file binlog.000001",
            "position",
            "--verbose",
            "report",
        ),
    )
    assert SECRET not in errors[0]


@pytest.mark.usefixtures("broken")
def test_its_traceback_is_there_with_verbose_and_holds_no_values(
    said: Said, tmp_path: Path
) -> None:
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
        (OSError(28, "No space left on device", "relay.000001"), "BL902",
         "No space left on device (file relay.000001)"),
        (MemoryError(), "BL903", "memory is used up"),
        (ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"), "BL601",
         "pip install 'binlag[arrow]'"),
        (ModuleNotFoundError("No module named 'applier.x'", name="applier.x"), "BL901",
         "internal error: ModuleNotFoundError"),
        (ZeroDivisionError(), "BL901", "internal error: ZeroDivisionError"),
    ],
)  # fmt: skip
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
        (
            "CREATE USER a IDENTIFIED WITH sha2 AS '*A1'",
            "CREATE USER a IDENTIFIED WITH sha2 AS ***",
        ),
        ("SET PASSWORD = PASSWORD('x')", "SET PASSWORD = PASSWORD(***)"),
        (
            "mysql://root@host:3306 at binlog.000001:4, 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5",
            None,
        ),
    ],
)
def test_what_is_masked(text: str, masked: str | None) -> None:
    assert mask(text) == (masked or text)
