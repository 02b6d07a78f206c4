"""lower_case_table_names=1: names in statements, row events, dumps and filters, beside real
servers and replicas with it. A 9.7 has it only from its first start on, so 5.7 and MariaDB stand
for all."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import applier
from applier.errors import UsageError
from applier.options import parse_options
from tests.mysql.test_filters_beside_replicas import on_server, replayed
from tests.replica.real_pairs import Pair
from tests.servers.fixtures import ServerFactory

VERSIONS = pytest.mark.parametrize("version", ["5.7", "mariadb"])
FORMATS = pytest.mark.parametrize("log_format", ["ROW", "STATEMENT"])
STATEMENTS = """
CREATE DATABASE S1; CREATE DATABASE s2 CHARACTER SET utf8; USE S1;
CREATE TABLE `SequelizeMeta` (Name VARCHAR(20) PRIMARY KEY);
INSERT INTO SequelizeMeta VALUES ('a'), ('b');
CREATE TABLE Orders (Id INT PRIMARY KEY, Total INT);
CREATE TABLE Items (Id INT PRIMARY KEY, `Order` INT,
    CONSTRAINT `Of` FOREIGN KEY (`Order`) REFERENCES Orders (Id) ON DELETE CASCADE);
INSERT INTO Orders VALUES (1, 10), (2, 20), (3, 30);
INSERT INTO S1.Items VALUES (1, 1), (2, 1), (3, 2);
UPDATE Orders SET Total = Orders.Total + 1 WHERE S1.Orders.Id = 2;
DELETE FROM Orders WHERE Id = 1;
ALTER TABLE Items ADD Note VARCHAR(9) DEFAULT 'n';
CREATE INDEX Totals ON Orders (Total);
USE s2; CREATE TABLE Other LIKE S1.Orders; INSERT INTO Other SELECT * FROM S1.Orders;
UPDATE S1.Orders AS O JOIN Other ON O.Id = Other.Id SET O.Total = 5;
RENAME TABLE S1.Items TO s2.`Items Of Orders`;
INSERT INTO `Items Of Orders` VALUES (9, 3, 'x');
CREATE TABLE Größe (Ä INT); INSERT INTO Größe VALUES (1);
CREATE TABLE GONE (a INT); DROP TABLE Gone; CREATE TABLE gone (b INT); INSERT INTO GONE VALUES (7);
ALTER DATABASE S2 CHARACTER SET latin1; CREATE TABLE Latin (c VARCHAR(3)); TRUNCATE TABLE Other;
CREATE DATABASE S3; CREATE TABLE S3.T (a INT); DROP DATABASE s3
"""
"""As written on a server whose names have no case."""
IN_ONE_CASE = """
CREATE DATABASE S1; USE S1; CREATE TABLE Mixed (Id INT PRIMARY KEY); INSERT INTO Mixed VALUES (1);
UPDATE Mixed SET Id = 2; ALTER TABLE Mixed ADD B INT DEFAULT 3; INSERT INTO Mixed VALUES (4, 5);
CREATE TABLE Child (Id INT PRIMARY KEY, FOREIGN KEY (Id) REFERENCES Mixed (Id) ON DELETE CASCADE);
INSERT INTO Child VALUES (2), (4); DELETE FROM Mixed WHERE Id = 2;
CREATE DATABASE s2; RENAME TABLE Child TO s2.Moved
"""
"""As written on one where they have."""


def _statements(text: str) -> list[str]:
    return [sql.strip() for sql in text.split(";")]


@VERSIONS
@FORMATS
def test_a_log_of_a_server_with_lower_case_names(
    version: str, log_format: str, server_factory: ServerFactory
) -> None:
    """Its statements have names as they were written, its row events in lower case."""
    options = {"lower_case_table_names": 1, "binlog_format": log_format}
    with closing(server_factory(version, options=options)) as source:
        source.execute(*_statements(STATEMENTS))
        file = source.binlog_files()[-1]
        assert replayed(file, {"lower_case_table_names": 1}) == on_server(source)
        if log_format == "ROW":
            error = applier.replay([file]).error
            assert error is not None
            assert error.number == 1146
            assert "s1.sequelizemeta" in error.message.lower()
            assert "give --lower-case-table-names 1" in str(error)


@VERSIONS
@FORMATS
def test_a_replica_with_lower_case_names(
    version: str, log_format: str, server_factory: ServerFactory
) -> None:
    """Of a source without them: row events have names in any case, too."""
    with Pair(
        server_factory,
        version,
        source_options={"binlog_format": log_format, "log_bin": "binlog"},
        lower_case_table_names=1,
    ) as pair:
        pair.source.execute(*_statements(IN_ONE_CASE))
        pair.change_source()
        pair.run("START REPLICA")
        last, position = pair.source_end()
        pair.wait(Relay_Master_Log_File=last, Exec_Master_Log_Pos=position)
        file = pair.source.binlog_files()[-1]
        assert replayed(file, {"lower_case_table_names": 1}) == on_server(pair.replica)


@VERSIONS
def test_filters_and_renamed_databases(version: str, server_factory: ServerFactory) -> None:
    with closing(server_factory(version, options={"lower_case_table_names": 1})) as source:
        source.execute(*_statements(STATEMENTS))
        file = source.binlog_files()[-1]
        there = on_server(source)
        chosen = {"lower_case_table_names": 1, "table": "s1.SEQUELIZEMeta"}
        assert replayed(file, chosen) == {"s1.sequelizemeta": there["s1.sequelizemeta"]}
        left_out = {"lower_case_table_names": 1, "exclude_database": "S2"}
        assert replayed(file, left_out).keys() == {
            name for name in there if name.startswith("s1.")
        } | {"s1.items"}
        part = {"table": "s1.sequelizemeta", "rewrite_db": "s1:New", "lower_case_table_names": 1}
        assert replayed(file, part) == {"new.sequelizemeta": there["s1.sequelizemeta"]}


def test_a_dump_is_read_so(tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    dump.write_text(
        "CREATE DATABASE Shop; USE Shop; CREATE TABLE Orders (a INT); INSERT INTO ORDERS VALUES (1)"
    )
    tables = applier.load_schema(dump, lower_case_table_names=1)
    assert [table.definition.full_name for table in tables] == ["shop.orders"]
    assert list(tables["shop.orders"].rows()) == [(1,)]


def test_only_0_and_1_are_known() -> None:
    with pytest.raises(UsageError, match="2 is neither 0 nor 1"):
        parse_options(lower_case_table_names=2)
