"""Generated columns of tables whose definition an ALTER TABLE changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.binlog.types.temporal import pack_time
from applier.errors import ReplicationError
from applier.tables.ddl import apply_ddl
from applier.tables.ddl_session import DdlSession
from applier.tables.operands import Session
from tests.tables.test_ddl import run


@pytest.mark.parametrize(("server", "read"), [("9.7", "10:11:12.1"), ("mariadb", "10:11:12.0")])
def test_generated_columns_are_computed_by_the_rules_of_the_server(server: str, read: str, tmp_path: Path) -> None:
    """MariaDB cuts the digits that a TIME(1) has no place for, MySQL rounds."""
    tables = run(schema="CREATE TABLE d.t (id int, m TIME(4), k TIME(1) AS (m) VIRTUAL)", server=server)
    tables["d.t"].insert((1, pack_time(((10 * 60 + 11) * 60 + 12) * 1_000_000 + 63_000, 4), None))
    session = DdlSession(server=server, expressions=Session(mariadb=server == "mariadb"))
    apply_ddl(tables, "ALTER TABLE t ADD INDEX (id)", "d", session)
    tables.dump(tmp_path)
    assert (tmp_path / "d.t.tsv").read_text().split()[-1] == read


@pytest.mark.parametrize(
    ("clause", "kept"),
    [
        ("ADD INDEX (id)", True),
        ("ADD x int FIRST, DROP b", True),
        ("MODIFY id bigint", False),
        ("MODIFY g varchar(9) AS (soundex(id)) STORED", False),
    ],
)
def test_a_generated_value_that_is_not_exact_stays_what_the_log_brought(clause: str, kept: bool) -> None:
    """Where the column and all that it is made of stay as they are."""
    tables = run(schema="CREATE TABLE d.t (id int, b int, g varchar(8) AS (soundex(id)) STORED)")
    tables["d.t"].insert((1, 2, b"X100"))
    apply_ddl(tables, f"ALTER TABLE t {clause}", "d", DdlSession(server="9.7"))
    if kept:
        assert tables["d.t"].rows()[0][-1] == "X100"
    else:
        with pytest.raises(ReplicationError, match="SOUNDEX"):
            tables["d.t"].rows()
