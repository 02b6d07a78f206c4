"""The table of conversions beside real servers: every pair in it, with the values at the ends of every type."""

from __future__ import annotations

import pytest

from applier.tables.conversion_rules import FAMILIES
from applier.tables.conversions import ROUTES
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
INSERT INTO documents VALUES (1, '{"k": [1, 2, "x"]}', ' [true, null] ', '1', 7, '2024-02-29'), (2, '"é"', '12', '"x"', -1, NULL);
ALTER TABLE documents MODIFY a JSON, MODIFY b JSON, MODIFY d JSON
"""
STRICT = """
CREATE TABLE fits (id INT, a INT, b VARCHAR(9), c DATETIME(3), d DOUBLE, e TIME, f TIMESTAMP NULL, g DECIMAL(5,2));
INSERT INTO fits VALUES (1, 20, '12', '2024-02-29 10:11:12.600', 1.5, '10:11:12', '2024-02-29 10:11:12', 9.99),
    (2, -3, '-1', NULL, 2.5, NULL, NULL, 0);
ALTER TABLE fits MODIFY a VARCHAR(5), MODIFY b SMALLINT, MODIFY c DATETIME, MODIFY d INT,
    MODIFY e DATETIME, MODIFY f BIGINT, MODIFY g DECIMAL(4,1)
"""


@pytest.mark.parametrize("name", FLAVOURS if THOROUGH else ["9.7", "mariadb"])
def test_every_conversion_is_that_of_the_server(name: str, server_factory: ServerFactory) -> None:
    flavour = FLAVOURS[name]
    more = [statement.strip() for statement in STRICT.split(";\n")]
    more += [] if flavour == "mariadb" else [statement.strip() for statement in DOCUMENTS.split(";\n")]
    tables, said = run_with_twins(server_factory.shared(name), [*SESSION, *matrix.statements(flavour), NAMES[name], *more])
    assert said == []
    assert differences(tables) == []


@pytest.mark.parametrize("flavour", ROUTES)
def test_the_matrix_holds_every_pair_of_the_table(flavour: str) -> None:
    families = {matrix.family(kind) for kind, _ in matrix.sources(flavour)}
    missing = {(old, new) for old, new in ROUTES[flavour] if old not in families or new not in families}
    assert missing == {pair for pair in missing if "json" in pair and flavour == "mariadb"}
    assert families <= set(FAMILIES.values())
