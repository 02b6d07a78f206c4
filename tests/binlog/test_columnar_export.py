"""Row changes exported to Parquet and Arrow files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from applier.binlog.columnar.export import export
from applier.errors import InputError, UsageError
from tests.binlog import build
from tests.binlog.columnar_support import collect, plain
from tests.captures_support import captures, logs


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.ipc.open_file(str(path)) as file:
        return file.read_all()


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
@pytest.mark.parametrize("capture", captures(), ids=lambda path: path.name)
def test_files_hold_what_the_batches_hold(capture: Path, file_format: str, tmp_path: Path) -> None:
    files = logs(capture)
    expected, _ = collect(files)
    written = export(files, tmp_path, file_format=file_format)
    assert sum(item.rows for item in written) == sum(table.num_rows for table in expected.values())
    for item in written:
        table = read(item.path)
        assert table.num_rows == item.rows
        batches = [
            rows
            for (_, name, _), rows in expected.items()
            if name == f"{item.database}.{item.table}"
        ]
        alike = [rows for rows in batches if rows.schema.names == table.schema.names[1:]]
        for column in table.schema.names[8:-1]:
            values = [value for rows in alike for value in plain(rows[column])]
            if len(values) == table.num_rows:
                assert plain(table[column]) == values


def test_a_changed_table_has_a_second_file(tmp_path: Path) -> None:
    changed = [
        build.table_map(2, types=b"\x03\x03"),
        build.rows(30, build.int_image(2) + b"\x03\0\0\0", 2, width=2),
    ]
    events = [build.table_map(1), build.rows(30, build.int_image(1)), *changed]
    log = build.write(tmp_path, build.log(*events))
    written = export([log], tmp_path / "out")
    assert [item.path.name for item in written] == ["d.t.parquet", "d.t.2.parquet"]
    assert read(written[1].path)["@2"].to_pylist() == [3]


def test_damage_leaves_what_stands_before_it(tmp_path: Path) -> None:
    log = build.write(
        tmp_path, build.log(build.table_map(), build.rows(30, build.int_image(1))) + b"\0" * 30
    )
    with pytest.raises(InputError):
        export([log], tmp_path / "out")
    assert read(tmp_path / "out" / "d.t.parquet")["@1"].to_pylist() == [1]


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    log = build.write(tmp_path, build.log(build.table_map(), build.rows(30, build.int_image(1))))
    with pytest.raises(UsageError, match="csv"):
        export([log], tmp_path / "out", file_format="csv")
    with pytest.raises(InputError, match="cannot write"):
        export([log], log / "below")
