"""The table of conversions beside real servers: every pair in it, with the values at the ends of
every type."""

from __future__ import annotations

import pytest

from applier.tables.conversions.column_conversion import ROUTES
from applier.tables.conversions.conversion_rules import FAMILIES
from tests.mysql import conversion_matrix as matrix
from tests.mysql.server_support import THOROUGH
from tests.servers.fixtures import ServerFactory
from tests.tables.server_twins import differences, run_with_twins

FLAVOURS = {"5.7": "5.x", "9.7": "8.0+", "mariadb": "mariadb"}
SESSION = ["SET sql_mode = ''", "SET timestamp = 1600000000", "SET time_zone = '+02:00'"]
NAMES = {
    "5.7": "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE'",
    "9.7": "SET sql_mode = 'STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE'",
    "mariadb": "SET sql_mode = 'STRICT_TRANS_TABLES'",
}
DOCUMENTS = """
CREATE TABLE documents (id INT, a TEXT, b VARCHAR(30), c ENUM('1', '"x"'), d INT, e DATE);
INSERT INTO documents VALUES (1, '{"k": [1, 2, "x"]}', ' [true, null] ', '1', 7, '2024-02-29'),
    (2, '"é"', '12', '"x"', -1, NULL);
ALTER TABLE documents MODIFY a JSON, MODIFY b JSON, MODIFY d JSON
"""
STRICT = """
CREATE TABLE fits (id INT, a INT, b VARCHAR(9), c DATETIME(3), d DOUBLE, e TIME, f TIMESTAMP NULL,
    g DECIMAL(5,2));
INSERT INTO fits VALUES (1, 20, '12', '2024-02-29 10:11:12.600', 1.5, '10:11:12',
    '2024-02-29 10:11:12', 9.99),
    (2, -3, '-1', NULL, 2.5, NULL, NULL, 0);
ALTER TABLE fits MODIFY a VARCHAR(5), MODIFY b SMALLINT, MODIFY c DATETIME, MODIFY d INT,
    MODIFY e DATETIME, MODIFY f BIGINT, MODIFY g DECIMAL(4,1)
"""

MOMENTS = [
    "20240229.7", "240229.7", "10101010101.5", "1010101010101.5", "-20240229101112",
    "20240230101112.5", "20240001101112.5", "20240229T101112", "20240229.101112", "2024.02.29",
    "2024.02.29 10.11.12", "10.11.12", "101010.101010", "+10:11:12", "2024-02-29 10:11:12.9999999",
    "10:11:12.9999999", "9999-12-31 23:59:59.9999996", "2012-02-00 23:59:59.9999999",
    "2012-02-00 10:11:12.9999999", "838:59:59.9999999", "99999999999", "4294967296:00",
    "2038-01-19 03:14:07.9999999",
]  # fmt: skip
MOMENT_TYPES = ["TIME(5)", "TIME", "DATETIME(5)", "DATETIME", "TIMESTAMP(5) NULL", "DATE"]
ROUNDING = {"mariadb": "TIME_ROUND_FRACTIONAL"}


def _moments(mode: str) -> list[str]:
    """The moments as texts, and what becomes of them as they lose their digits."""
    statements = [f"SET sql_mode = '{mode}'", "CREATE TABLE texts (id INT, a VARCHAR(40))"]
    statements += [
        f"INSERT INTO texts VALUES ({number}, '{text}')" for number, text in enumerate(MOMENTS)
    ]
    for number, kind in enumerate(MOMENT_TYPES):
        name = f"moments{number}"
        statements += [
            f"CREATE TABLE {name} AS SELECT id, a FROM texts",
            f"ALTER TABLE {name} MODIFY a {kind}",
        ]
        if "(5)" in kind:
            long, short = kind.replace("(5)", "(6)"), kind.replace("(5)", "(2)")
            statements += [
                f"CREATE TABLE {name}s (id INT, a {long})",
                f"INSERT INTO {name}s SELECT id, a FROM texts",
            ]
            statements += [
                f"ALTER TABLE {name}s MODIFY a {short}",
                f"ALTER TABLE {name}s MODIFY a DATE",
            ]
    return statements


@pytest.mark.parametrize("name", FLAVOURS)
def test_odd_moments_are_read_and_rounded_as_the_server_does(
    name: str, server_factory: ServerFactory
) -> None:
    mode = ROUNDING.get(FLAVOURS[name], "")
    tables, said = run_with_twins(server_factory.shared(name), [*SESSION, *_moments(mode)])
    assert said == []
    assert differences(tables) == []


@pytest.mark.parametrize("name", FLAVOURS if THOROUGH else ["9.7", "mariadb"])
def test_every_conversion_is_that_of_the_server(name: str, server_factory: ServerFactory) -> None:
    flavour = FLAVOURS[name]
    more = [statement.strip() for statement in STRICT.split(";\n")]
    more += (
        [] if flavour == "mariadb" else [statement.strip() for statement in DOCUMENTS.split(";\n")]
    )
    tables, said = run_with_twins(
        server_factory.shared(name), [*SESSION, *matrix.statements(flavour), NAMES[name], *more]
    )
    assert said == []
    assert differences(tables) == []


@pytest.mark.parametrize("flavour", ROUTES)
def test_the_matrix_holds_every_pair_of_the_table(flavour: str) -> None:
    families = {matrix.family(kind) for kind, _ in matrix.sources(flavour)}
    missing = {
        (old, new) for old, new in ROUTES[flavour] if old not in families or new not in families
    }
    assert missing == {pair for pair in missing if "json" in pair and flavour == "mariadb"}
    assert families <= set(FAMILIES.values())
