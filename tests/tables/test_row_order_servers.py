"""INSERT … SELECT whose result hangs on the order in which the rows are read, in statement format
on real servers and in memory: equal or refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

from servers.server import Server

from tests.servers.chosen_cases import number_drawn
from tests.tables.test_joined_servers import compared_drawn, of_script

SCRIPT = """
CREATE TABLE forced (id INT PRIMARY KEY, k INT, v INT, KEY (k), KEY (v, k)) ENGINE=InnoDB;
INSERT INTO forced VALUES (3, 1, 1), (1, 9, 1), (2, 5, 2), (4, 1, 2), (5, 0, 3);
CREATE TABLE firsts (n INT AUTO_INCREMENT PRIMARY KEY, id INT, v INT, UNIQUE (v)) ENGINE=InnoDB;
INSERT LOW_PRIORITY IGNORE INTO firsts (id, v) SELECT id, v FROM forced FORCE INDEX (`PRIMARY`)
    WHERE id >= '1' AND id <= '4' LOCK IN SHARE MODE;
REPLACE INTO firsts (id, v) SELECT id, v FROM forced f FORCE INDEX (PRIMARY) WHERE k < 9;
CREATE TABLE copied (id INT PRIMARY KEY, k INT, v INT, w INT, UNIQUE (v), KEY (k)) ENGINE=InnoDB;
ALTER TABLE forced ADD w INT DEFAULT 5;
INSERT LOW_PRIORITY IGNORE INTO copied (id, k, v, w) SELECT id, k, v, w FROM forced
    LOCK IN SHARE MODE
"""
"""Nothing of it is refused."""


def test_rows_come_in_the_order_of_the_primary_key(server: Server) -> None:
    assert of_script(server, SCRIPT) == (11, [])


def test_orders_drawn_by_chance(server: Server) -> None:
    count = number_drawn(80)
    assert compared_drawn(server, drawn, 3011, count) > count * 5 / 4


def drawn(rng: random.Random, number: int) -> Iterator[str]:
    """A table with keys, and a table that takes one row of each value."""
    source, target = f"s{number}", f"t{number}"
    keys = rng.sample(["KEY (k)", "KEY (v)", "KEY (k, v)", "KEY (v, w)", "UNIQUE (w, id)"], 2)
    primary = rng.choice(["id INT PRIMARY KEY", "id INT NOT NULL, UNIQUE (id)", "id INT"])
    yield f"CREATE TABLE {source} ({primary}, k INT, v INT, w INT, {', '.join(keys)})"
    rows = [f"({at}, {rng.randint(0, 9)}, {rng.randint(0, 4)}, {at % 3})" for at in range(12)]
    rng.shuffle(rows)
    yield f"INSERT INTO {source} VALUES {', '.join(rows)}"
    yield f"CREATE TABLE {target} (n INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT, UNIQUE (b))"
    hint = rng.choice(["", "", " FORCE INDEX (PRIMARY)"])
    where = rng.choice(["", "", " WHERE id > 3", " WHERE k < 7", " WHERE v = 2 AND id < 9"])
    columns = rng.choice(["id, v", "k, v", "id, w", "k + w, v", "k + v, w"])
    words = rng.choice(["INSERT IGNORE", "REPLACE"])
    yield f"{words} INTO {target} (a, b) SELECT {columns} FROM {source}{hint}{where}"
