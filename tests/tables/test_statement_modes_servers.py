"""Statements whose meaning the session decides: SQL modes, character sets, time zones,
AUTO_INCREMENT steps. Nothing of it is refused."""

from __future__ import annotations

from servers.server import Server

from tests.tables.test_functions_servers import Scripts, compared_scripts

ALL = ("5.7", "9.7", "mariadb")
SCRIPTS: Scripts = (
    (
        ALL,
        """
CREATE TABLE a (id INT, u VARCHAR(10) CHARACTER SET ucs2, v VARCHAR(10),
    l VARCHAR(10) CHARACTER SET latin1);
INSERT INTO a VALUES (1, _utf8 0xe880bd, _utf8'abc', _utf8 X'41'),
    (2, _utf8mb4'x', _latin1'y', _utf8mb3 'z');
RESET;
CREATE TABLE a (id SMALLINT AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO a VALUES (32767), (NULL);
INSERT INTO a VALUES (5);
RESET;
CREATE TABLE a (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO a VALUES (18446744073709551613);
INSERT INTO a VALUES (NULL);
INSERT INTO a VALUES (NULL), (NULL);
INSERT INTO a VALUES (7);
RESET;
CREATE TABLE b (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO b VALUES (1);
INSERT INTO b VALUES (18446744073709551601);
SET auto_increment_increment = 10;
INSERT INTO b VALUES (NULL), (NULL), (NULL);
INSERT INTO b VALUES (7);
RESET;
CREATE TABLE c (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO c VALUES (18446744073709551615), (NULL);
INSERT INTO c VALUES (7);
RESET;
""",
    ),
    (
        ("mariadb",),
        """
SET explicit_defaults_for_timestamp = 1;
CREATE TABLE a (id INT, t TIMESTAMP NOT NULL DEFAULT '2001-01-01',
    u TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3));
INSERT INTO a VALUES (1, NULL, NULL), (2, NULL, '2002-01-01');
UPDATE a SET t = NULL, u = NULL WHERE id = 2;
INSERT IGNORE INTO a VALUES (3, NULL, '2003-01-01');
RESET;
""",
    ),
    (
        ("mariadb",),
        """
CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, b INT, c VARCHAR(10));
INSERT INTO a (b) SELECT seq FROM seq_1_to_5;
INSERT INTO a (b, c) SELECT seq * 2, CONCAT('n', seq) FROM seq_3_to_20_step_4 AS s WHERE s.seq > 5;
INSERT INTO a (b) SELECT seq FROM SEQ_10_to_1_step_4;
INSERT INTO a (b) SELECT * FROM seq_7_to_7;
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE a (id INT PRIMARY KEY, b VARCHAR(20), c DECIMAL(10, 4), d DATE,
    e INT NOT NULL DEFAULT 5);
CREATE TABLE b LIKE a;
INSERT INTO a VALUES (1, 'x', 1.5, '2020-01-01', 1), (2, NULL, 2.25, NULL, 2),
    (3, 'zz', 0, '2021-05-05', 3);
INSERT INTO b SELECT * FROM a;
INSERT INTO b (id, b) SELECT id + 10, CONCAT(b, '-', id) FROM a WHERE id > 1;
INSERT INTO b (id, e) (SELECT x.id + 20, x.e * 2 FROM a x WHERE x.b IS NOT NULL ORDER BY x.id DESC
    LIMIT 1);
INSERT INTO b (id, e) SELECT 99, 7;
INSERT INTO b (id, e) SELECT 98, 7 LIMIT 0;
INSERT INTO b (id, c, e) SELECT ALL 101, 7 / 3, 1 FROM DUAL;
INSERT INTO b (id, e) SELECT a.id + 30 AS k, 7 FROM a AS a;
INSERT INTO b SELECT id + 1000, b, c, d, e FROM b LOCK IN SHARE MODE;
UPDATE b AS x SET x.e = x.e + 10 WHERE x.id > 20;
UPDATE b `y` SET y.b = 5, b = CONCAT(y.b, 1) WHERE y.id = 1 ORDER BY y.id LIMIT 1;
RESET;
CREATE TABLE a (id INT PRIMARY KEY, b INT);
CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, b INT);
INSERT INTO a VALUES (3, 30), (1, 10), (2, 20);
INSERT INTO c (b) SELECT b FROM a;
INSERT INTO c (b) SELECT b + 1 FROM a ORDER BY b DESC;
REPLACE INTO c (id, b) SELECT id, b + 1 FROM a ORDER BY id;
INSERT IGNORE INTO c (id, b) SELECT id + 4, b FROM a ORDER BY id;
RESET;
SET sql_mode = '';
CREATE TABLE a (id INT PRIMARY KEY, b INT, s VARCHAR(10));
CREATE TABLE c (id TINYINT NOT NULL, s VARCHAR(3), d DATETIME);
INSERT INTO a VALUES (1, NULL, 'abcdef'), (2, 1000, '12'), (3, -5, NULL);
INSERT INTO c (id, s) SELECT b, s FROM a;
INSERT INTO c (id, s) SELECT NULL, s FROM a WHERE id = 1;
INSERT INTO c (id, d) SELECT 3, NOW();
RESET;
""",
    ),
    (
        ALL,
        r"""
CREATE TABLE a (id INT, s SET('a', 'b', 'c', 'd', 'e'));
INSERT IGNORE INTO a VALUES (1, 'f,a,b'), (2, 'd,A ,b'), (3, 'a ,b'), (4, 'a,'), (5, ','),
    (6, 'a,b '), (7, ' a,b'), (8, 'b,x ,c');
RESET;
CREATE TABLE b (id INT, t TEXT DEFAULT '', c CHAR(2), v VARCHAR(2));
INSERT INTO b (id) VALUES (1);
INSERT INTO b() VALUES (2, DEFAULT, 0x4120, 0x412020);
RESET;
""",
    ),
    (
        ALL,
        """
CREATE TABLE a (id INT, a DECIMAL(12, 3), i INT, j INT, q DECIMAL(50, 25), r DECIMAL(50, 25),
    s VARCHAR(60), t VARCHAR(60), u VARBINARY(60),
    v VARCHAR(60));
INSERT INTO a (id, a, i, j) VALUES (1, 10.125, 1, 3), (2, -94579.09, 2, -7), (3, 0.001, 999983, 6),
    (4, 78076704.61, -5, 89);
UPDATE a SET q = a / j, r = i / j * j, s = i / j, t = CONCAT(i / j), u = a / j,
    v = GREATEST(i / j, a / 7);
RESET;
CREATE TABLE b (id INT, i INT, j INT);
INSERT INTO b VALUES (1, 1, 3), (2, 2, 3), (3, 10, 3);
UPDATE b SET i = 0 WHERE i / j > 0.3333 AND i / j < 0.66667;
RESET;
CREATE TABLE c (id INT, i INT, j INT, d DECIMAL(5, 4), r VARCHAR(60));
INSERT INTO c VALUES (1, 1, 3, 0.3333, ''), (2, 2, 3, 0.6667, ''), (3, 10, 3, 3, '');
UPDATE c SET r = CONCAT(i / j = d, i / j <=> d, i / j <> d, i / j >= 0.66667, i / j IN (0.3333),
    i / j IN (0.3333, 3), d IN (i / j), i / j BETWEEN 0.3333 AND d, i / j = 1 / 3,
    (i / j) * 3 = 1, COALESCE(i / j, 1) = d, NULLIF(i / j, d) IS NULL,
    CASE i / j WHEN 0.3333 THEN 1 ELSE 0 END, (i / j, 1) = (d, 1), (i / j, 1) IN ((d, 1)),
    (i / j, 1) IN ((d, 1), (2.5, 2)));
RESET;
""",
    ),
    (
        ("5.7", "9.7"),
        """
CREATE TABLE a (id INT, v VARCHAR(5), n INT, g VARCHAR(10) AS (CONCAT(v, v)) VIRTUAL NOT NULL,
    h INT AS (n + 1) STORED NOT NULL, UNIQUE (g));
INSERT IGNORE INTO a (id, v, n) VALUES (1, 'a', 3), (2, NULL, NULL), (3, NULL, 5);
UPDATE IGNORE a SET n = NULL WHERE id = 1;
RESET;
""",
    ),
    (
        ("mariadb",),
        """
CREATE TABLE a (id SMALLINT PRIMARY KEY AUTO_INCREMENT);
INSERT IGNORE INTO a VALUES (32766), (NULL), (NULL), (1);
RESET;
""",
    ),
    (
        ALL,
        r"""
CREATE TABLE a (id INT, v VARCHAR(20));
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
INSERT INTO a VALUES (1, 'a\nb'), (2, 'x\');
RESET;
CREATE TABLE b (id INT, v VARCHAR(20));
SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES';
INSERT INTO b ("id", v) VALUES (1, 'a' || 2 || 'c');
RESET;
CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO c VALUES (0, 1), (NULL, 2);
INSERT INTO c (a) VALUES (3), (4);
INSERT INTO c VALUES (DEFAULT, 5);
RESET;
CREATE TABLE d (id INT, v INT);
SET sql_mode = 'HIGH_NOT_PRECEDENCE';
INSERT INTO d VALUES (1, NOT 1 BETWEEN -5 AND 5);
RESET;
CREATE TABLE raw (id INT, a BINARY(3), v VARBINARY(40), t VARCHAR(20) CHARACTER SET latin1);
INSERT INTO raw VALUES (1, 'a', CONCAT(x'00ff', 12, 'b'), 'é'),
    (2, 'b', CONCAT(REPEAT(0x00, 2), LEFT(x'010203', 2)), 'x');
UPDATE raw SET v = CONCAT(a, t, SUBSTRING(v, 2), REVERSE(x'0102'), RIGHT(x'0a0b', 1));
RESET;
CREATE TABLE wide (id INT, v DECIMAL(65, 2), w DECIMAL(65, 2));
INSERT INTO wide VALUES (1, -999999999999999999999999999999999999999999999999999999999999999.99,
    1.25);
INSERT INTO wide VALUES (2, 1234567890123456789012345678901234567890.12,
    ABS(-1234567890123456789012345678901234567890.12));
UPDATE wide SET v = v + 1, w = v - w * 3 WHERE id = 2;
INSERT INTO wide VALUES (3, MOD(1234567890123456789012345678901234567890.12,
    1000000000000000000000000000000000007.5), 0);
INSERT INTO wide VALUES (4, -(1234567890123456789012345678901234567890.12 * 10), 0);
RESET;
CREATE TABLE e (id INT, v INT);
INSERT INTO e VALUES (1, NOT 1 BETWEEN -5 AND 5), (2, 2 = 2 = 1), (3, -2 + 3 * 4 MOD 5);
RESET;
CREATE TABLE f (id INT, v VARCHAR(9) CHARACTER SET utf8mb4);
INSERT INTO f VALUES (1, _ucs2 0x3106), (2, _latin1 0xE9), (3, N'ab'), (4, x'6162');
RESET;
CREATE TABLE g (id INT, t TIMESTAMP NULL, d DATETIME);
SET time_zone = '+05:30';
INSERT INTO g VALUES (1, '2020-02-02 02:02:02', NOW());
RESET;
CREATE TABLE h (id INT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
SET auto_increment_increment = 7, auto_increment_offset = 3;
INSERT INTO h (a) VALUES (1), (2);
INSERT INTO h VALUES (NULL, 3), (30, 4), (NULL, 5);
INSERT IGNORE INTO h (a) VALUES (5), (6);
RESET;
CREATE TABLE i (id INT PRIMARY KEY, a INT UNIQUE, n INT);
INSERT INTO i VALUES (1, 1, 0), (2, 2, 0);
INSERT INTO i VALUES (3, 2, 9) ON DUPLICATE KEY UPDATE n = n + VALUES(n), a = a + 10;
REPLACE INTO i VALUES (1, 12, 7);
RESET;
CREATE TABLE j (id INT, a INT);
INSERT INTO j VALUES (1, 5), (2, 3), (3, 9);
UPDATE j SET a = a * 2 ORDER BY a DESC LIMIT 2;
DELETE FROM j WHERE a > 1 LIMIT 5;
INSERT INTO j VALUES (4, 1);
RESET;
CREATE TABLE k (id INT NOT NULL, v VARCHAR(3) NOT NULL, e ENUM('p','q') NOT NULL);
SET sql_mode = '';
INSERT INTO k VALUES (1, 'abcdef', 'q'), (2, NULL, 'x');
UPDATE k SET v = NULL WHERE id = 1;
INSERT IGNORE INTO k VALUES (300, NULL, 'p');
RESET;
CREATE TABLE l (id INT, f DOUBLE, u VARCHAR(9));
SET @x = 'abc', @y = 2.5;
INSERT INTO l VALUES (1, RAND(), @x), (2, @y, LAST_INSERT_ID());
RESET;
""",
    ),
    (
        ("mariadb",),
        r"""
CREATE TABLE m (id INT, v VARCHAR(9));
SET sql_mode = 'EMPTY_STRING_IS_NULL';
INSERT INTO m VALUES (1, ''), (2, 'a');
RESET;
CREATE TABLE n (id INT, a INT, b INT);
INSERT INTO n VALUES (1, 5, 6);
SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT';
UPDATE n SET a = b, b = a;
RESET;
CREATE TABLE o (id INT, d DATETIME);
INSERT INTO o VALUES (1, '2020-01-01 00:00:00.9');
SET sql_mode = 'TIME_ROUND_FRACTIONAL';
INSERT INTO o VALUES (2, '2020-01-01 00:00:00.9');
RESET;
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE loose (id INT, a INT CHECK (a > 0) NOT ENFORCED NOT NULL,
    CONSTRAINT below CHECK (a < 9), CHECK (a > -9) NOT ENFORCED);
ALTER TABLE loose ALTER CHECK below NOT ENFORCED;
INSERT IGNORE INTO loose VALUES (1, -20), (2, 20);
UPDATE IGNORE loose SET a = a - 1;
CREATE TABLE looser LIKE loose;
INSERT IGNORE INTO looser VALUES (1, -20), (2, 20);
RESET;
""",
    ),
    (
        ("9.7",),
        r"""
CREATE TABLE p (id INT, d DATETIME);
INSERT INTO p VALUES (1, '2020-01-01 00:00:00.9');
SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL';
INSERT INTO p VALUES (2, '2020-01-01 00:00:00.9');
RESET;
""",
    ),
)
DISPLACED = (
    "2019-10-10 10:11:12+00:00", "2019-10-10 23:30:12.5006-05:30", "2019-10-10 10:11:12 +00:00",
    "2019-10-10 10:11:12-00:00", "2019-10-10 10:11:12+14:00", "2019-10-10 10:11:12+14:01",
    "2019-10-10 10:11:12-14:00", "2019-10-10 10:11:12+1:00", "2019-10-10 10:11+02:00",
    "2019-10-10 10:11:12.1234567+02:00", "2019-10-10 10:11:12.123456+02:00",
    "2019-10-10 10:11:12.+02:00", "2019-10-10 10:11:12+05:60", "2019-10-10 10:11:12.9999+02:00",
    "20191010101112+02:00", "20191010101112.5+02:00",
    "2019-10-10T10:11:12+02:00 ", "1970-01-01 00:30:00+00:00",
)  # fmt: skip
"""Moments that name a time zone, rightly or not; 8.0.19 on knows them, the others pass over it."""
PACKED = tuple(
    f"{head}{tail}"
    for head in (
        "20191010101112",
        "20191010101112.5",
        "191010101112",
        "20191010T101112",
        "20191010101112.",
        "20191010101112.1234567",
    )
    for tail in (
        "",
        "x",
        " ",
        "+",
        "1",
        "12",
        "x1",
        "x ",
        " 1",
        "x x",
        "e3",
        "\t",
        "_",
        ":1",
        "T",
        "T1",
        "xT",
        "TT",
        "12345678x",
    )
)
"""Moments without delimiters, and what may stand behind them."""
LONG_TEXTS = tuple(
    f"INSERT INTO long_{at} VALUES ({number}, REPEAT('{text}', {count}));"
    for at in range(6)
    for number, (text, count) in enumerate(
        [("é", 128), ("aé", 86), ("€", 86), ("a", 256), ("b€", 64), ("é ", 90)]
    )
)
SCRIPTS += (
    (
        ALL,
        "SET sql_mode = '';\n"
        + "".join(
            f"CREATE TABLE long_{at} (id INT, t TINYTEXT CHARACTER SET {charset});\n"
            f"CREATE TABLE longer_{at} (id INT, t TEXT CHARACTER SET {charset});\n"
            for at, charset in enumerate(("utf8mb4", "utf8", "ucs2", "utf16", "gbk", "ujis"))
        )
        + "\n".join(LONG_TEXTS)
        + "\n"
        + "\n".join(LONG_TEXTS).replace("long_", "longer_")
        + "\n"
        + "".join(
            f"ALTER TABLE longer_{at} MODIFY t TINYTEXT CHARACTER SET {kind};\n"
            for at, kind in enumerate(("utf8mb4", "utf8"))
        )
        + "RESET;\n",
    ),
    (
        ("9.7", "mariadb"),
        """CREATE TABLE escaped (x VARCHAR(10), g INT AS (x LIKE 'abba' ESCAPE 'b') STORED);
INSERT INTO escaped (x) VALUES ('abba'), ('aba'), ('abbbba');
RESET;
""",
    ),
    (
        ALL,
        "".join(
            f"SET sql_mode = '{mode}';\n"
            f"CREATE TABLE numbered_{at} (a INT{first} AUTO_INCREMENT{second}, b INT, "
            "UNIQUE KEY (a));\n"
            f"INSERT INTO numbered_{at} SET a = 1, b = 2;\n"
            f"INSERT INTO numbered_{at} SET a = 1, b = 2 ON DUPLICATE KEY UPDATE a = NULL;\n"
            f"INSERT INTO numbered_{at} SET b = 7;\n"
            f"INSERT INTO numbered_{at} VALUES (NULL, 8), (5, 9), (0, 10);\n"
            for at, (first, second, mode) in enumerate(
                (*words, mode)
                for words in ((" NULL", ""), (" NOT NULL", ""), ("", " NULL"))
                for mode in ("", "STRICT_ALL_TABLES")
            )
        )
        + "RESET;\n",
    ),
    (
        ALL,
        "".join(
            f"CREATE TABLE spaces_{at} (id INT, t TINYTEXT CHARACTER SET {charset});\n"
            f"INSERT INTO spaces_{at} VALUES (1, REPEAT(' ', 256)), (2, CONCAT(REPEAT('a', 127), "
            "REPEAT(' ', 129)));\n"
            f"CREATE TABLE cut_{at} (id INT, t TEXT CHARACTER SET {charset});\n"
            f"INSERT INTO cut_{at} VALUES (1, REPEAT(' ', 256)), (2, CONCAT(REPEAT('a', 127), "
            "REPEAT(' ', 129)));\n"
            f"ALTER TABLE cut_{at} MODIFY t TINYTEXT CHARACTER SET {charset};\n"
            for at, charset in enumerate(("utf8mb4", "utf8", "ucs2", "utf16", "latin1", "gbk"))
        )
        + "RESET;\n",
    ),
    (
        ALL,
        "SET sql_mode = '', time_zone = '+01:00';\n"
        "CREATE TABLE dd (id INT, a TIMESTAMP(3) NULL, b DATETIME(3), c DATETIME, d DATE);\n"
        "CREATE TABLE de (id INT, v VARCHAR(60), w VARCHAR(60), x VARCHAR(60));\n"
        + "".join(
            f"INSERT INTO dd VALUES ({at}, '{text}', '{text}', '{text}', '{text}');\n"
            f"INSERT INTO de VALUES ({at}, '{text}', '{text}', '{text}');\n"
            for at, text in enumerate((*DISPLACED, *PACKED))
        )
        + "ALTER TABLE de MODIFY v DATETIME(2), MODIFY w TIMESTAMP NULL, MODIFY x DATE;\nRESET;\n",
    ),
    (
        ("5.7", "9.7"),
        """
SET sql_mode = '', time_zone = '+02:00';
CREATE TABLE zoned (id INT, a DATETIME DEFAULT '1995-05-05 00:00:00+05:30',
    b TIMESTAMP DEFAULT '1995-05-05 00:00:00+05:30',
    c DATE DEFAULT '1995-05-05 00:00:00+05:30',
    d DATETIME(3) DEFAULT '1995-05-05 00:00:00.125-01:00');
SET time_zone = '+09:00';
INSERT INTO zoned (id) VALUES (1);
ALTER TABLE zoned ALTER a SET DEFAULT '2001-05-05 00:00:00+05:30',
    ADD e DATETIME DEFAULT '2002-05-05 00:00:00+05:30';
SET time_zone = '-03:00';
INSERT INTO zoned (id) VALUES (2);
RESET;
""",
    ),
    (
        ("mariadb",),
        """
CREATE TABLE digits (id INT, a TIMESTAMP(4) DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    b DATETIME(3) DEFAULT now(),
    c DATETIME(6) DEFAULT current_timestamp(2), d DATETIME(2) DEFAULT (LOCALTIME()),
    e TIMESTAMP(5) DEFAULT '2020-01-01');
INSERT INTO digits (id) VALUES (1), (2);
ALTER TABLE digits ALTER e SET DEFAULT now(), ADD f DATETIME(1) DEFAULT CURRENT_TIMESTAMP;
INSERT INTO digits (id) VALUES (3);
UPDATE digits SET b = NULL WHERE id = 2;
RESET;
CREATE TABLE an (id INT PRIMARY KEY, v INT);
ANALYZE INSERT INTO an VALUES (1, 2), (2, 3), (3, 4);
ANALYZE FORMAT=JSON UPDATE an SET v = v + 100 WHERE id > 1;
SET STATEMENT max_statement_time = 100 FOR ANALYZE DELETE FROM an WHERE id = 2;
/* a comment */ ANALYZE REPLACE an VALUES (1, 9);
RESET;
""",
    ),
    (
        ("5.7", "9.7"),
        """
CREATE TABLE bl (id INT PRIMARY KEY, v INT) ENGINE=BLACKHOLE;
INSERT INTO bl VALUES (1, 2), (1, 3);
REPLACE INTO bl VALUES (1, 2);
UPDATE bl SET v = 3;
DELETE FROM bl;
CREATE TABLE bm (id INT, v INT) ENGINE=MyISAM;
INSERT INTO bm VALUES (1, 2);
INSERT INTO bl SELECT * FROM bm;
ALTER TABLE bm ENGINE=BLACKHOLE;
RESET;
""",
    ),
)
RESET = (
    "SET sql_mode = DEFAULT, time_zone = DEFAULT, auto_increment_increment = 1, "
    "auto_increment_offset = 1"
)


def test_the_session_of_the_event_decides(server: Server) -> None:
    equal, different = compared_scripts(server, SCRIPTS, RESET, divider="RESET;\n")
    assert different == []
    assert equal > 25
