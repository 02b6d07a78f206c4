"""Clauses and expressions in statement format on real servers and in memory: equal, and nothing of
them is refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from servers.server import Server

from tests.servers.fixtures import ServerFactory
from tests.tables.test_functions_servers import Scripts, compared, compared_scripts, run

ALL = ("5.7", "9.7", "mariadb")
SCRIPTS: Scripts = (
    (
        ALL,
        """
CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20), b VARBINARY(20), l VARCHAR(9) CHARSET latin1);
INSERT INTO a VALUES (1, CHAR(77, 121, 83 USING utf8mb4), CHAR(0, 255 USING BINARY), 'x'),
    (2, CHAR(50089 USING utf8mb4), CONCAT(REPEAT(0x00, 15), CHAR(7 USING binary)), NULL),
    (3, CHAR(233 USING latin1), CHAR(NULL, 256 USING BINARY), CHAR(233, 65 USING latin1)),
    (4, CHAR(NULL USING utf8mb4), CHAR(65), CHAR(id + 61 USING utf8mb4));
UPDATE a SET v = CHAR(id + 64, 66 USING latin1) WHERE CHAR(id + 48 USING ascii) = '2';
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE a (id INT PRIMARY KEY, n DECIMAL(10, 3), r TEXT, q TEXT, c TEXT, d DECIMAL(30, 15));
INSERT INTO a (id, n) VALUES (1, 0), (2, 5), (3, 0.001), (4, -1.005);
UPDATE a SET r = n / 18446744073709551615, d = n / 18446744073709551615,
    c = CONCAT(n / 18446744073709551615) WHERE id < 4;
UPDATE a SET q = n / 3;
RESET;
""",
    ),
    (
        ("mariadb",),
        """
CREATE TABLE a (id INT PRIMARY KEY, u UUID, n INET6, m INET4, s VARCHAR(10));
INSERT INTO a VALUES (1, 'c7f700f1-6581-4418-b9a9-74ebbadc07fd', '::1', '10.0.0.1', 'a'),
    (2, '01890000-0000-7000-8000-00000000abcd', 'fe80::2', '10.0.0.2', 'b'),
    (3, NULL, NULL, NULL, 'c');
UPDATE a SET s = 'one' WHERE u = 'c7f700f1-6581-4418-b9a9-74ebbadc07fd';
UPDATE a SET s = CONCAT(s, '2') WHERE u = '01890000000070008000-00000000ABCD' OR u <=> NULL;
UPDATE a SET s = CONCAT(s, '!') WHERE n > '::ffff' OR m IN ('10.0.0.1', '10.0.0.9');
DELETE FROM a WHERE u <> 'c7f700f1-6581-4418-b9a9-74ebbadc07fd' AND m < '10.0.0.3';
CREATE TABLE d (id INT PRIMARY KEY, w DATETIME(3), d DATE);
INSERT INTO d VALUES (1, '2026--01-02', '2026,-1-02'), (2, '2026-01-02 10::11', '26.1.2 3  4'),
    (3, '2026-01-02 -10:11', '2026-01-02: 10:11'), (4, '2026-01-02  10:11:12.5', '2026-1-2-3'),
    (5, '2026-01-02 10: 11:12', '2026:01:02');
RESET;
""",
    ),
    (
        ("5.7", "9.7"),
        """
CREATE TABLE a (id INT PRIMARY KEY, d JSON, s VARCHAR(60));
INSERT INTO a VALUES (1, '{"a": 1}', NULL), (2, '[1, 2]', NULL), (3, NULL, NULL), (4, 'null', 'x');
UPDATE a SET d = CASE id WHEN 1 THEN CAST('{"b": [1, 2.50, "x"]}' AS JSON)
    WHEN 2 THEN CAST('"t"' AS JSON) END WHERE id IN (1, 2);
UPDATE a SET s = IF(id = 1, d, CAST('[]' AS JSON)), d = COALESCE(d, CAST('7' AS JSON));
UPDATE a SET d = JSON_SET(IFNULL(d, JSON_OBJECT()), '$.x', id) WHERE id < 3;
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE a (id INT PRIMARY KEY, f FLOAT, s VARCHAR(20), d DECIMAL(8, 2), t DATETIME, KEY (s));
INSERT INTO a VALUES (1, 0.1, 'x', 1.50, '2026-01-02 03:04:05'), (2, 123456.789, NULL, 0, NULL),
    (3, 99999.95, 'y', NULL, NULL), (4, -0.333333333, 'X', -2, '2026-01-01'), (5, 0, '', 1, NULL);
CREATE TABLE sums (db VARCHAR(9), chunk INT, lower TEXT, cnt INT, crc CHAR(40),
    ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (db, chunk));
REPLACE INTO sums (db, chunk, lower, cnt, crc) SELECT 'd', '1', NULL, COUNT(*) AS cnt,
    COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, `f`, `s`, `d`, `t`,
    CONCAT(ISNULL(`s`), ISNULL(`d`), ISNULL(`t`)))) AS UNSIGNED)), 10, 16)), 0) AS crc
    FROM a FORCE INDEX (`PRIMARY`) WHERE ((`id` >= '1')) AND ((`id` <= '3')) /*checksum chunk*/;
REPLACE INTO sums (db, chunk, lower, cnt, crc) SELECT 'd', '2', '4', COUNT(*) AS cnt,
    COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, `f`)) AS UNSIGNED)), 10, 16)), 0)
    FROM a WHERE ((`id` > '3')) ORDER BY id;
UPDATE a SET s = CONCAT(f, '/', LEFT(f, 3), LENGTH(f));
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE s (id INT PRIMARY KEY, v VARCHAR(9), n INT, KEY (n));
INSERT INTO s VALUES (1, 'b', 30), (2, 'a', 20), (3, 'c', 10), (4, NULL, 25);
CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), n INT);
INSERT INTO a (v, n) SELECT v, n FROM s ORDER BY 1;
INSERT INTO a (v, n) SELECT v, n FROM s ORDER BY 2 DESC LIMIT 2;
INSERT INTO a (v, n) SELECT CONCAT(v, 'x') AS w, -n AS m FROM s ORDER BY m;
INSERT INTO a (v, n) SELECT CONCAT(v, 'x') `w`, n FROM s ORDER BY w DESC, 2 LIMIT 3;
INSERT INTO a (v, n) SELECT STRAIGHT_JOIN v AS 'x y', n + 0 FROM s ORDER BY `x y` ASC, id;
INSERT INTO a (v, n) (SELECT SQL_BIG_RESULT v, n FROM s ORDER BY 2);
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE a (id INT PRIMARY KEY, l VARCHAR(20) CHARACTER SET latin1, u VARCHAR(20)
    CHARACTER SET utf8mb4, b VARBINARY(40), n INT);
INSERT INTO a VALUES (1, CONVERT('é' USING latin1), CONVERT(_latin1 0xE9 USING utf8mb4),
    CONVERT('é' USING binary), LENGTH(CONVERT('é' USING latin1)));
INSERT INTO a VALUES (2, CONVERT(12 USING ascii), CONVERT(NULL USING utf8), CONVERT('é' USING ucs2),
    LENGTH(CONVERT('é' USING utf16)));
INSERT INTO a VALUES (3, CONVERT('x' USING utf8mb3), CONVERT(0xC3A9 USING utf8mb4),
    CONVERT(0x41 USING latin1), CONVERT('a' USING latin1) = _latin1'A');
UPDATE a SET n = CHAR_LENGTH(CONVERT(b USING latin1)), b = CONVERT(l USING utf8mb4);
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE a (id INT PRIMARY KEY, d DOUBLE, n DECIMAL(30, 20), i INT, f FLOAT);
INSERT INTO a VALUES (1, PI(), PI(), PI(), PI()), (2, PI() * 2, PI() / 3, -PI(), 1 + PI());
UPDATE a SET d = d - PI(), i = FLOOR(PI() * 1000) WHERE id = 1 AND d > PI() - 1;
RESET;
""",
    ),
    (
        ALL,
        """
SET sql_mode = '';
CREATE TABLE a (id INT PRIMARY KEY, b BIT(9), c BIT(64), d BIT(8));
INSERT INTO a VALUES (1, 'a', 'abcdefgh', 'z'), (2, '1', '1', '1'), (3, '', '', ''),
    (4, 'abc', 'abcdefghi', 'ab'), (5, _latin1 0xE9, 'é', ' ');
UPDATE a SET d = 'A' WHERE id = 2;
RESET;
""",
    ),
)  # fmt: skip
RESET = "SET sql_mode = DEFAULT"


@pytest.fixture(scope="module", params=ALL)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    options: dict[str, str | int | bool | None] = {
        "innodb_flush_log_at_trx_commit": 0,
        "sync_binlog": 0,
    }
    started = server_factory(request.param, options=options)
    yield started
    started.close()


def test_scripts(server: Server) -> None:
    equal, different = compared_scripts(server, SCRIPTS, RESET, divider="RESET;\n")
    assert different == []
    assert equal >= 14


def test_random_character_sets(server: Server) -> None:
    draw = random.Random(5)
    names = ("latin1", "utf8", "utf8mb4", "ascii", "ucs2", "binary", "cp1251", "utf16", "latin2")
    texts = ("'abc'", "'é'", "'日'", "''", "0xE9", "_latin1 0xE9", "5", "1.5", "v", "x", "'ж'")
    statements = [
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), x VARBINARY(9), u VARCHAR(90), h TEXT)"
    ]
    for at in range(300):
        made = f"CONVERT({draw.choice(texts)} USING {draw.choice(names)})"
        if draw.random() < 0.3:
            made = draw.choice(("CONCAT({0}, '!')", "CONVERT({0} USING latin1)")).format(made)
        statements.append(
            f"INSERT INTO a (id, v, x, u, h) VALUES ({at}, 'vé', 'xy', {made}, HEX({made}))"
        )
    equal, different = compared(run(server, statements, ""))
    assert different == []
    assert equal > 100
