"""Logs and schemas on a store: every command reads them as it does files, by ranges, and says in a
line what is wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

from applier.binlog.reader import LogReader
from applier.binlog.spool import Spool
from applier.cli.main import cli
from applier.errors import InputError, UsageError
from applier.remote import RemoteFile, address_of
from applier.sources import expanded
from tests.applier.logs import INT_TABLE, insert
from tests.binlog.build import gtid, log
from tests.stores.fixtures import Bucket, bucket, moto_server

__all__ = ["bucket", "moto_server"]
FIRST, SECOND = log(*insert(1, 1), (4, b"\4\0\0\0\0\0\0\0binlog.000002")), log(*insert(2, 2))
COMMANDS: dict[str, tuple[str, ...]] = {
    "replay": ("--json",),
    "events": (),
    "forecast": ("--json",),
    "clock": ("--json",),
}
PACKINGS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}


def run(command: str, *arguments: str) -> Result:
    schema = () if command in ("events", "clock") else ("--schema", "before.sql")
    return CliRunner().invoke(cli, [command, *arguments, *COMMANDS[command], *schema])


def shown(result: Result) -> str:
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def failed(result: Result) -> str:
    assert isinstance(result.exception, InputError | UsageError), result.output
    return str(result.exception)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before.sql").write_text(INT_TABLE)
    for name, content in (("binlog.000001", FIRST), ("binlog.000002", SECOND)):
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_what_is_on_a_store(here: Path, bucket: Bucket, command: str) -> None:
    expected = shown(run(command, "binlog.000001", "binlog.000002"))
    for name, content in (("binlog.000002", SECOND), ("binlog.000001", FIRST)):
        bucket.put(f"plain/{name}", content)
        for suffix, pack in PACKINGS.items():
            bucket.put(f"packed{suffix}/{name}{suffix}", pack(content))
    root = f"s3://{bucket.name}"
    assert (
        shown(run(command, f"{root}/plain/binlog.000001", f"{root}/plain/binlog.000002"))
        == expected
    )
    assert shown(run(command, f"{root}/plain/binlog.*")) == expected
    assert shown(run(command, f"{root}/pl?in/*")) == expected
    assert shown(run(command, f"{root}/plain/")) == expected
    for suffix in PACKINGS:
        assert shown(run(command, f"{root}/packed{suffix}/binlog.*")) == expected


def test_a_schema_on_a_store(here: Path, bucket: Bucket) -> None:
    expected = shown(run("forecast", "binlog.000001"))
    url = bucket.put("before.sql.gz", gzip.compress(INT_TABLE.encode()))
    Path("before.sql").unlink()
    result = CliRunner().invoke(cli, ["forecast", "binlog.000001", "--schema", url, "--json"])
    assert shown(result) == expected


def test_the_index_says_which_logs_there_are(bucket: Bucket) -> None:
    for name in ("binlog.000009", "binlog.000010", "binlog.999999", "binlog.1000000"):
        bucket.put(f"all/{name}", FIRST)
        bucket.put(f"some/{name}", FIRST)
    bucket.put("some/binlog.index", b"./binlog.000010\n./binlog.1000000\n")
    root = f"s3://{bucket.name}"
    assert [one.rpartition(".")[2] for one in expanded(f"{root}/all")] == [
        "000009",
        "000010",
        "999999",
        "1000000",
    ]
    assert expanded(f"{root}/some") == [f"{root}/some/binlog.000010", f"{root}/some/binlog.1000000"]


def long_log() -> bytes:
    """Twelve megabytes in twelve transactions."""
    return log(*(one for number in range(1, 13) for one in (gtid(number), (29, b"x" * (1 << 20)))))


def test_only_the_ranges_that_are_asked_for_are_fetched(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content = long_log()
    (tmp_path / "binlog.000001").write_bytes(content)
    starts = [one.position for one in LogReader([tmp_path / "binlog.000001"]) if one.type == 33]
    url, asked = bucket.put("binlog.000001", content), list[int]()
    read_at = RemoteFile.read_at

    def counted(self: RemoteFile, size: int, position: int) -> bytes:
        data = read_at(self, size, position)
        asked.append(len(data))
        return data

    monkeypatch.setattr(RemoteFile, "read_at", counted)
    for part in (
        {},
        {"start_position": starts[9], "stop_position": starts[10]},
        {"stop_position": starts[1]},
    ):
        asked.clear()
        expected = [
            (one.position, one.type, one.data)
            for one in LogReader([tmp_path / "binlog.000001"], **part)
        ]
        assert [(one.position, one.type, one.data) for one in LogReader([url], **part)] == expected
        assert (sum(asked) > len(content)) == (not part)
        assert not part or sum(asked) < len(content) / 2
    asked.clear()
    next(iter(LogReader([url])))
    assert sum(asked) < 1 << 17


def test_a_packed_log_is_unpacked_as_far_as_it_is_read(tmp_path: Path) -> None:
    content = long_log()
    path = tmp_path / "binlog.000001.zst"
    path.write_bytes(zstandard.compress(content))
    with Spool(path) as spool:
        assert spool.fetch(0, 4) < len(content)
        assert spool.size is None
        assert spool.mapped(spool.fetch(0))[:] == content
    found = [(one.file, one.position) for one in LogReader([path])]
    (tmp_path / "binlog.000001").write_bytes(content)
    assert found == [(one.file, one.position) for one in LogReader([tmp_path / "binlog.000001"])]


@pytest.mark.parametrize("cut", [3, 30, 200])
def test_a_log_that_is_cut_off(bucket: Bucket, here: Path, cut: int) -> None:
    (here / "binlog.000001").write_bytes(FIRST[:-cut])
    url = bucket.put("binlog.000001", FIRST[:-cut])
    assert failed(run("replay", url)) == failed(run("replay", "binlog.000001"))


def test_what_is_no_log_is_named(bucket: Bucket, here: Path) -> None:
    url = bucket.put("x/binlog.000001", b"SELECT 1;")
    assert (
        f"not a binary log: it does not start with fe 62 69 6e (file {url}, position 0)"
        in failed(run("replay", url))
    )
    empty = bucket.put("x/binlog.000002", b"")
    assert f"the file is empty (file {empty})" in failed(run("events", empty))
    damaged = bucket.put("x/binlog.000003.gz", gzip.compress(FIRST)[:-20])
    assert (
        f"the compressed file is damaged: it ends before its end mark (file {damaged})"
        in failed(run("events", damaged))
    )


def test_a_store_that_does_not_give_it(
    bucket: Bucket, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("a/other", b"")
    root = f"s3://{bucket.name}"
    assert f"no file fits this pattern (file {root}/a/binlog.*)" in failed(
        run("events", f"{root}/a/binlog.*")
    )
    assert "the folder holds no log" in failed(run("events", f"{root}/a/"))
    assert f"there is no such file (file {root}/a/none)" in failed(run("events", f"{root}/a/none"))
    assert "there is no such file (file s3://nobody-has-this/x)" in failed(
        run("events", "s3://nobody-has-this/x")
    )
    text = failed(run("events", "s3://nobody-has-this/binlog.*"))
    assert text.startswith("error BL122: the store does not give it: ")
    assert "(file s3://nobody-has-this/" in text
    assert "AWS_ACCESS_KEY_ID" in text
    unknown = failed(run("events", "foo://bucket/binlog.000001"))
    assert unknown.startswith(
        "error BL122: no library here knows the scheme foo:// (file foo://bucket/). Next: "
        "one of s3://, gs://"
    )


@pytest.mark.parametrize("scheme", ["gs", "gcs"])
def test_google_is_asked_for_half_a_minute(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """Its library would try for fifteen minutes. (Half a minute is too long for a test.)"""
    asked: list[str] = []

    class Recording:
        @staticmethod
        def from_uri(uri: str) -> None:
            asked.append(uri)
            raise OSError("no network")

    monkeypatch.setattr("pyarrow.fs.FileSystem", Recording)
    assert "no network" in failed(run("events", f"{scheme}://nobody/x"))
    assert asked == [f"{scheme}://nobody/?retry_limit_seconds=30"]


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    text = failed(run("events", "s3://AKIA:hunter2@bucket/binlog.000001"))
    assert "a password stands in an address" in text
    assert "hunter2" not in text


def test_other_schemes_are_those_of_fsspec(here: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://logs/binlog.000001", "wb") as file:
        file.write(FIRST)
    assert shown(run("events", "memory://logs/binlog.*")) == shown(run("events", "binlog.000001"))
    assert json.loads(shown(run("replay", "memory://logs/binlog.000001")))["transactions"] == 1


def test_addresses() -> None:
    # pathlib makes one slash of two
    assert str(address_of(Path("s3://bucket/a/b"))) == "s3://bucket/a/b"
    assert str(address_of("hdfs:///logs/binlog.000001")) == "hdfs://default/logs/binlog.000001"
    assert (
        str(address_of("abfs://box@account.dfs.core.windows.net/x"))
        == "abfs://box@account.dfs.core.windows.net/x"
    )
    for name in ("binlog.000001", "/var/lib/binlog.000001", "./a:b/c", "-", "file:///var/lib/x"):
        assert address_of(name) is None
