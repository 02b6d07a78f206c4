"""Triggers that statements fire, on real servers and in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

from servers.server import Server

from tests.tables.test_functions_servers import SERVERS, Scripts
from tests.tables.test_joined_servers import compared_drawn, of_script

NEWER = ("5.7", "9.7", "mariadb")
SCRIPTS: Scripts = (
    (
        SERVERS,
        """
CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, upper_name VARCHAR(20) NOT NULL
    DEFAULT '', seen DATETIME NULL);
CREATE TABLE log (id INT, was VARCHAR(20), what VARCHAR(20), at DATETIME);
CREATE TABLE counts (kind CHAR(1) PRIMARY KEY, n INT NOT NULL);
INSERT INTO counts VALUES ('i', 0), ('u', 0), ('d', 0);
CREATE TRIGGER one BEFORE INSERT ON item FOR EACH ROW SET NEW.upper_name = UPPER(NEW.name);
CREATE TRIGGER two BEFORE UPDATE ON item FOR EACH ROW BEGIN IF NEW.name <> OLD.name THEN
    SET NEW.upper_name = UPPER(NEW.name), NEW.seen := NOW(); END IF; END;
CREATE TRIGGER three AFTER INSERT ON item FOR EACH ROW BEGIN
    INSERT INTO log VALUES (NEW.id, NULL, NEW.upper_name, NOW());
    UPDATE counts SET n = n + 1 WHERE kind = 'i'; END;
CREATE TRIGGER four AFTER UPDATE ON item FOR EACH ROW IF OLD.name = NEW.name THEN
    INSERT INTO log (id, what) VALUES (NEW.id, 'same'); ELSEIF NEW.seen IS NULL THEN
    INSERT INTO log (id, what) VALUES (NEW.id, 'unseen'); ELSE
    INSERT INTO log VALUES (NEW.id, OLD.name, NEW.name, NULL); END IF;
CREATE TRIGGER five BEFORE DELETE ON item FOR EACH ROW DELETE FROM log WHERE id = OLD.id;
CREATE TRIGGER six AFTER DELETE ON item FOR EACH ROW BEGIN SET @gone = OLD.id;
    UPDATE counts SET n = n + OLD.id WHERE kind = 'd'; END;
INSERT INTO item (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO item (id, name, upper_name) VALUES (4, 'd', 'not this');
INSERT INTO item SET id = 5, name = 'e';
UPDATE item SET name = 'z' WHERE id = 2;
UPDATE item SET name = name;
UPDATE item SET seen = '2020-01-01 00:00:00' WHERE id > 3;
DELETE FROM item WHERE id = 1;
DELETE FROM item ORDER BY id LIMIT 1;
INSERT INTO item (id, name) VALUES (6, 'f'), (3, 'twice');
""",
    ),
    (
        SERVERS,
        """
CREATE TABLE numbered (id INT AUTO_INCREMENT PRIMARY KEY, v INT, w INT);
CREATE TABLE deep (id INT PRIMARY KEY, v INT);
CREATE TABLE deeper (id INT, v INT);
CREATE TRIGGER down AFTER INSERT ON numbered FOR EACH ROW INSERT INTO deep VALUES (NEW.id, NEW.v);
CREATE TRIGGER more BEFORE INSERT ON deep FOR EACH ROW SET NEW.v = NEW.v * 2;
CREATE TRIGGER most AFTER INSERT ON deep FOR EACH ROW
    INSERT INTO deeper SELECT id, v FROM numbered WHERE id = NEW.id;
INSERT INTO numbered (v) VALUES (7);
SET @factor = 3;
CREATE TRIGGER by_variable BEFORE UPDATE ON numbered FOR EACH ROW SET NEW.w = NEW.v * @factor;
UPDATE numbered SET v = 8;
SET @factor = 5;
UPDATE numbered SET v = 9;
DROP TRIGGER most;
INSERT INTO numbered (v) VALUES (10), (11);
""",
    ),
    (
        SERVERS,
        """
CREATE TABLE moving (id INT PRIMARY KEY, k INT, v VARCHAR(9), KEY (k)) ENGINE=InnoDB;
CREATE TABLE moved (id INT PRIMARY KEY, k INT, v VARCHAR(9), extra INT NOT NULL DEFAULT 7,
    UNIQUE (k)) ENGINE=InnoDB;
INSERT INTO moving VALUES (4, 1, 'd'), (1, 4, 'a'), (3, 2, 'c'), (2, 3, 'b'), (9, 9, 'z');
CREATE TRIGGER d AFTER DELETE ON moving FOR EACH ROW DELETE IGNORE FROM matrix.moved
    WHERE matrix.moved.id <=> OLD.id;
CREATE TRIGGER u AFTER UPDATE ON moving FOR EACH ROW BEGIN DELETE IGNORE FROM matrix.moved
    WHERE !(OLD.id <=> NEW.id) AND matrix.moved.id <=> OLD.id;
    REPLACE INTO matrix.moved (id, k, v) VALUES (NEW.id, NEW.k, NEW.v); END;
CREATE TRIGGER i AFTER INSERT ON moving FOR EACH ROW
    REPLACE INTO matrix.moved (id, k, v) VALUES (NEW.id, NEW.k, NEW.v);
UPDATE moving SET v = 'x';
UPDATE moving SET k = 5 WHERE id < 4;
UPDATE moving SET id = id + 10, v = 'y' WHERE v = 'x' AND id BETWEEN 2 AND 8;
INSERT INTO moving VALUES (20, 8, 'n'), (21, 8, 'o');
DELETE FROM moving WHERE v IN ('x', 'o');
""",
    ),
    (
        NEWER,
        """
CREATE TABLE modes (id INT PRIMARY KEY, v VARCHAR(3), w VARCHAR(3));
SET sql_mode = 'ANSI_QUOTES';
CREATE TRIGGER quoted BEFORE INSERT ON modes FOR EACH ROW SET NEW."v" = CONCAT(NEW."v", 'abc');
SET sql_mode = 'STRICT_ALL_TABLES';
INSERT INTO modes (id, v) VALUES (1, 'x');
INSERT INTO modes (id, v, w) VALUES (2, 'x', 'long one');
CREATE TRIGGER second BEFORE INSERT ON modes FOR EACH ROW FOLLOWS quoted
    SET NEW.w = CONCAT(NEW.v, '!');
SET sql_mode = '';
INSERT INTO modes (id, v) VALUES (3, 'y');
CREATE TRIGGER first BEFORE INSERT ON modes FOR EACH ROW PRECEDES quoted SET NEW.v = 'p';
INSERT INTO modes (id, v) VALUES (4, 'y');
DROP TRIGGER second;
INSERT INTO modes (id, v) VALUES (5, '');
""",
    ),
    (
        SERVERS,
        """
CREATE TABLE stamped (id INT PRIMARY KEY, v INT, w INT,
    t TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP);
INSERT INTO stamped VALUES (1, 1, 1, NULL), (2, 2, 2, NULL);
CREATE TRIGGER counted BEFORE UPDATE ON stamped FOR EACH ROW SET NEW.w = OLD.w + 1;
UPDATE stamped SET v = 1 WHERE id = 1;
UPDATE stamped SET v = 5 WHERE id = 2;
""",
    ),
    (
        SERVERS,
        """
CREATE TABLE parted (a INT NOT NULL PRIMARY KEY, b VARCHAR(20), n INT) PARTITION BY RANGE (a) (
    PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (100),
    PARTITION p2 VALUES LESS THAN MAXVALUE);
CREATE TABLE parted_log (x VARCHAR(60));
CREATE TRIGGER filled BEFORE INSERT ON parted FOR EACH ROW
    BEGIN SET NEW.n = NEW.a + 1; IF NEW.b = 'move' THEN SET NEW.a = NEW.a + 50; END IF; END;
CREATE TRIGGER told_new AFTER INSERT ON parted FOR EACH ROW
    INSERT INTO parted_log VALUES (CONCAT('i', NEW.a, NEW.b));
CREATE TRIGGER moved BEFORE UPDATE ON parted FOR EACH ROW
    BEGIN IF NEW.b = 'move' THEN SET NEW.a = NEW.a + 50; END IF; END;
CREATE TRIGGER told_change AFTER UPDATE ON parted FOR EACH ROW
    INSERT INTO parted_log VALUES (CONCAT('u', OLD.a, '-', NEW.a, NEW.b));
CREATE TRIGGER told_gone AFTER DELETE ON parted FOR EACH ROW
    INSERT INTO parted_log VALUES (CONCAT('d', OLD.a, OLD.b));
INSERT INTO parted PARTITION (p0) VALUES (1, 'one', 0);
INSERT INTO parted PARTITION (p0) VALUES (2, 'move', 0);
INSERT INTO parted PARTITION (p1) VALUES (3, 'move', 0);
INSERT INTO parted PARTITION (p0, p1) VALUES (4, 'move', 0), (5, 'five', 0), (200, 'x', 0);
INSERT INTO parted PARTITION (p0, p1) VALUES (6, 'move', 0), (7, 'seven', 0);
INSERT INTO parted VALUES (300, 'big', 0), (8, 'eight', 0);
UPDATE parted PARTITION (p0) SET b = CONCAT(b, '!') WHERE a < 9 ORDER BY a;
UPDATE parted PARTITION (p0) SET b = 'move' WHERE a = 1;
UPDATE parted PARTITION (p0, p1) SET b = 'move' WHERE a = 1;
UPDATE parted PARTITION (p2) SET b = 'q';
DELETE FROM parted PARTITION (p2);
DELETE FROM parted PARTITION (p0) WHERE a = 8;
""",
    ),
)


def test_triggers_change_what_they_change_on_the_server(server: Server) -> None:
    for servers, script in SCRIPTS:
        if server.installed.recipe.name in servers:
            rows, wrong = of_script(server, script)
            assert rows > 1 and wrong == []


def test_triggers_drawn_by_chance(server: Server) -> None:
    assert compared_drawn(server, drawn, 2911, 60) > 80


def drawn(rng: random.Random, number: int) -> Iterator[str]:
    return _Drawn(rng, number).all()


class _Drawn:
    """A table, one that its triggers fill, one or two triggers, and statements that fire them."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.table, self.log, self.trigger = f"t{number}", f"l{number}", f"r{number}"

    def all(self) -> Iterator[str]:
        choice = self.rng.choice
        last = choice(["DOUBLE", "DATETIME", "VARCHAR(30)", "DECIMAL(6, 2)", "TIMESTAMP NULL"])
        yield f"SET sql_mode = '{choice(['', 'STRICT_TRANS_TABLES', 'ANSI_QUOTES'])}'"
        yield (
            f"CREATE TABLE {self.table} (id INT PRIMARY KEY, a INT DEFAULT 3, b VARCHAR(5) NOT NULL"
            f" DEFAULT 'x', c {last})"
        )
        yield f"CREATE TABLE {self.log} (k INT{choice(['', ' PRIMARY KEY'])}, v VARCHAR(40))"
        for at in range(choice([1, 2])):
            time, event = choice(["BEFORE", "AFTER"]), choice(["INSERT", "UPDATE", "DELETE"])
            steps = "; ".join(self._step(time, event) for _ in range(choice([1, 2])))
            yield (
                f"CREATE TRIGGER {self.trigger}_{at} {time} {event} ON {self.table}"
                f" FOR EACH ROW BEGIN {steps}; END"
            )
        yield f"SET sql_mode = '{choice(['', 'STRICT_TRANS_TABLES'])}'"
        for _ in range(6):
            yield self._statement()
        yield "SET sql_mode = ''"

    def _statement(self) -> str:
        choice, literal = self.rng.choice, self._literal
        key = self.rng.randrange(1, 6)
        rows = f"({key}, {literal()}, {literal()}), ({key + 5}, {literal()}, {literal()})"
        return choice(
            [
                f"INSERT INTO {self.table} (id, a, b) VALUES {rows}",
                f"INSERT INTO {self.table} SET id = {key}, c = {literal()}",
                f"UPDATE {self.table} SET a = {literal()} WHERE id = {key}",
                f"UPDATE {self.table} SET b = {literal()}{choice(['', ' ORDER BY id'])}",
                f"DELETE FROM {self.table} WHERE id < {key}",
            ]
        )

    def _literal(self) -> str:
        return self.rng.choice(["1", "NULL", "'abc'", "'abcdefgh'", "12.5", "'2020-02-02'", "''"])

    def _step(self, time: str, event: str) -> str:
        choice = self.rng.choice
        if time == "BEFORE" and event != "DELETE" and self.rng.random() < 0.5:
            inner = f"SET NEW.{choice('abc')} = {self._value(event)}"
        else:
            words = choice(["INSERT", "REPLACE"])
            inner = f"{words} INTO {self.log} VALUES ({self._column(event)}, {self._value(event)})"
        if self.rng.random() < 0.6:
            return inner
        column, value = self._column(event), self._literal()
        otherwise = f"ELSE DELETE FROM {self.log} WHERE k = {self._column(event)}; "
        return f"IF {column} {choice(['=', '<', '<=>'])} {value} THEN {inner}; {otherwise}END IF"

    def _value(self, event: str) -> str:
        column, other = self._column(event), self._column(event)
        return self.rng.choice(
            [column, f"CONCAT({column}, {other})", f"IFNULL({column}, 1)", "NOW()", self._literal()]
        )

    def _column(self, event: str) -> str:
        rows = {"INSERT": ["NEW"], "DELETE": ["OLD"]}.get(event, ["NEW", "OLD"])
        return f"{self.rng.choice(rows)}.{self.rng.choice(['id', 'a', 'b', 'c'])}"
