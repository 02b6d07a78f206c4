"""Cases of `test_structure`: tables with partitions."""

from __future__ import annotations

from tests.mysql.structure_cases import Statements

NUMBERS = [
    "NULL",
    *map(str, range(-40, 41, 3)),
    *"7 8 9 32 97 1000 8224 24929 49152 65535 70000 2147483647 -2147483648".split(),
]
"""Among them some whose bytes are spaces and small letters, which KEY hashes in its own way."""


def each(table: str, *names: str, numbers: list[str] = NUMBERS) -> Statements:
    """The same rows in one table for each partition, which is emptied; what is left tells where
    they stood."""
    statements: Statements = []
    for name in names:
        rows = ", ".join(f"({number})" for number in numbers)
        statements += [
            table,
            f"INSERT INTO t VALUES {rows}",
            f"ALTER TABLE t TRUNCATE PARTITION {name}",
            f"RENAME TABLE t TO t_{name}",
        ]
    return statements


ROWS = f"INSERT INTO t VALUES {', '.join(f'({number})' for number in NUMBERS)}"
PARTITIONS: dict[str, Statements] = {
    "range drop": [
        """CREATE TABLE t (a INT, b VARCHAR(9)) PARTITION BY RANGE (a)
            (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20),
            PARTITION p2 VALUES LESS THAN MAXVALUE)""",
        "INSERT INTO t VALUES (NULL,'n'),(1,'a'),(10,'b'),(19,'c'),(20,'d'),(99,'e')",
        "ALTER TABLE t DROP PARTITION p1",
        "INSERT INTO t VALUES (15,'f')",
        "ALTER TABLE t TRUNCATE PARTITION p0",
        "INSERT INTO t VALUES (3,'g')",
        (
            """ALTER TABLE t REORGANIZE PARTITION p2 INTO (PARTITION q0 VALUES LESS THAN (50), """
            """PARTITION q1 VALUES LESS THAN MAXVALUE)"""
        ),
        "ALTER TABLE t DROP PARTITION q1",
    ],
    "range add": [
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a+1) (PARTITION p0 VALUES LESS THAN (10))",
        "INSERT INTO t VALUES (1),(8)",
        (
            "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (5*4), PARTITION p2 VALUES "
            "LESS THAN (30))"
        ),
        "INSERT INTO t VALUES (9),(18),(19),(20)",
        "ALTER TABLE t DROP PARTITION p0, p2",
    ],
    "range without the word (MariaDB)": [
        (
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (p1 VALUES LESS THAN (10), "
            "PARTITION p2 VALUES LESS THAN (20))"
        ),
        "INSERT INTO t VALUES (1),(12)",
        "ALTER TABLE t ADD PARTITION (p3 VALUES LESS THAN (30))",
        "ALTER TABLE t TRUNCATE PARTITION p1",
        "INSERT INTO t VALUES (22)",
        "ALTER TABLE t DROP PARTITION p2",
    ],
    "range hour of a clock without seconds": [
        """CREATE TABLE t (a INT, c TIME) PARTITION BY RANGE (a)
            (PARTITION p0 VALUES LESS THAN (HOUR('18:30')),
            PARTITION p1 VALUES LESS THAN (MINUTE('18:45')),
            PARTITION p2 VALUES LESS THAN MAXVALUE)""",
        "INSERT INTO t VALUES (17,'18:30'),(18,'09:09'),(44,'-101:59'),(45,'14:30')",
        "ALTER TABLE t DROP PARTITION p0",
        "ALTER TABLE t TRUNCATE PARTITION p2",
    ],
    "key of text, where no row tells its partition": [
        "CREATE TABLE t (a VARCHAR(20)) PARTITION BY KEY (a) PARTITIONS 3",
        "CREATE TABLE u (a VARCHAR(20))",
        "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE u",
        "ALTER TABLE t TRUNCATE PARTITION p0",
        "INSERT INTO t VALUES ('a'),('b'),('c'),('d')",
        "ALTER TABLE t TRUNCATE PARTITION ALL",
        "ALTER TABLE t TRUNCATE PARTITION p2",
        "INSERT INTO t VALUES ('e')",
    ],
    "range year": [
        """CREATE TABLE t (d DATE NOT NULL) PARTITION BY RANGE (YEAR(d))
            (PARTITION p0 VALUES LESS THAN (2000),
            PARTITION p1 VALUES LESS THAN (2010),
            PARTITION p2 VALUES LESS THAN MAXVALUE)""",
        "INSERT INTO t VALUES ('1999-12-31'),('2000-01-01'),('2009-12-31'),('2010-01-01')",
        "ALTER TABLE t DROP PARTITION p1",
    ],
    "range to_days": [
        """CREATE TABLE t (d DATETIME) PARTITION BY RANGE (TO_DAYS(d))
            (PARTITION p0 VALUES LESS THAN (TO_DAYS('2000-01-01')),
            PARTITION p1 VALUES LESS THAN (TO_DAYS('2010-01-01')),
            PARTITION p2 VALUES LESS THAN MAXVALUE)""",
        (
            "INSERT INTO t VALUES (NULL),('1999-12-31 23:59:59'),('2000-01-01'),('2009-12-31 "
            "23:00:00'),('2010-01-01')"
        ),
        "ALTER TABLE t TRUNCATE PARTITION p1",
        "ALTER TABLE t DROP PARTITION p0",
    ],
    "unix_timestamp": [
        """CREATE TABLE t (d TIMESTAMP NOT NULL) PARTITION BY RANGE (UNIX_TIMESTAMP(d))
            (PARTITION p0 VALUES LESS THAN (1000000000), PARTITION p1 VALUES LESS THAN MAXVALUE)""",
        "INSERT INTO t VALUES ('1999-12-31 23:59:59'),('2011-01-01')",
        "ALTER TABLE t TRUNCATE PARTITION p1",
    ],
    "bounds in the time zone of their session": [
        "SET time_zone = '+05:00'",
        """CREATE TABLE t (d TIMESTAMP NOT NULL) PARTITION BY RANGE (UNIX_TIMESTAMP(d))
            (PARTITION p0 VALUES LESS THAN (UNIX_TIMESTAMP('2014-08-01')),
            PARTITION p1 VALUES LESS THAN MAXVALUE)""",
        "SET time_zone = '-03:00'",
        """ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION p1
            VALUES LESS THAN (UNIX_TIMESTAMP('2014-09-01 00:00:00') + 60),
            PARTITION p2 VALUES LESS THAN MAXVALUE)""",
        "SET time_zone = '+00:00'",
        """INSERT INTO t VALUES ('2014-07-31 18:59:59'),('2014-07-31 19:00:00'),('2014-08-15'),
            ('2014-09-01 03:00:59'),('2014-09-01 03:01:00')""",
        "ALTER TABLE t ADD KEY (d)",
        "ALTER TABLE t DROP PARTITION p1",
    ],
    "range columns": [
        """CREATE TABLE t (a INT, b VARCHAR(9) CHARACTER SET latin1,
            d DATE) PARTITION BY RANGE COLUMNS (a,b)
            (PARTITION p0 VALUES LESS THAN (5,'m'),
            PARTITION p1 VALUES LESS THAN (5,MAXVALUE),
            PARTITION p2 VALUES LESS THAN (MAXVALUE,MAXVALUE))""",
        (
            "INSERT INTO t VALUES "
            "(5,'L',NULL),(5,'M',NULL),(5,'z',NULL),(6,'a',NULL),(NULL,'z',NULL),(5,NULL,NULL)"
        ),
        "ALTER TABLE t DROP PARTITION p1",
    ],
    "range columns date": [
        """CREATE TABLE t (d DATE) PARTITION BY RANGE COLUMNS (d)
            (PARTITION p0 VALUES LESS THAN ('2000-01-01'),
            PARTITION p1 VALUES LESS THAN ('2010-01-01'),
            PARTITION p2 VALUES LESS THAN (MAXVALUE))""",
        "INSERT INTO t VALUES (NULL),('1999-12-31'),('2000-01-01'),('2009-12-31'),('2010-01-01')",
        "ALTER TABLE t DROP PARTITION p1",
    ],
    "list": [
        (
            """CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p0 VALUES IN (1,3,NULL), """
            """PARTITION p1 VALUES IN (2,-4))"""
        ),
        "INSERT INTO t VALUES (NULL),(1),(2),(3),(-4)",
        "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES IN (7))",
        "INSERT INTO t VALUES (7)",
        "ALTER TABLE t DROP PARTITION p0",
        "ALTER TABLE t TRUNCATE PARTITION p2",
    ],
    "list columns": [
        """CREATE TABLE t (a VARCHAR(5) CHARACTER SET latin1, b INT) PARTITION BY LIST COLUMNS (a,b)
            (PARTITION p0 VALUES IN (('x',1),('y',2)),
            PARTITION p1 VALUES IN (('x',2),(NULL,1)))""",
        "INSERT INTO t VALUES ('X',1),('y',2),('x',2),(NULL,1)",
        "ALTER TABLE t TRUNCATE PARTITION p0",
    ],
    "hash": each(
        "CREATE TABLE t (a BIGINT) PARTITION BY HASH (a) PARTITIONS 4", "p0", "p1", "p2", "p3"
    ),
    "hash unsigned": each(
        "CREATE TABLE t (a BIGINT UNSIGNED) PARTITION BY HASH (a) PARTITIONS 3",
        "p0",
        "p1",
        "p2",
        numbers=[
            "1",
            "2",
            "3",
            "18446744073709551615",
            "9223372036854775808",
            "18446744073709551613",
        ],
    ),
    "linear hash": each(
        "CREATE TABLE t (a INT) PARTITION BY LINEAR HASH (a) PARTITIONS 6", "p0", "p1", "p2", "p5"
    ),
    "key": each("CREATE TABLE t (a INT) PARTITION BY KEY (a) PARTITIONS 3", "p0", "p1", "p2"),
    "key two": [
        (
            "CREATE TABLE t (a SMALLINT UNSIGNED, b BIGINT, PRIMARY KEY (a,b)) PARTITION BY KEY () "
            "PARTITIONS 5"
        ),
        "INSERT IGNORE INTO t VALUES "
        + ", ".join(f"({abs(int(n)) % 65536}, {n})" for n in NUMBERS[1:]),
        "ALTER TABLE t TRUNCATE PARTITION p0,p3",
    ],
    "key alg 1": each(
        "CREATE TABLE t (a INT) PARTITION BY KEY ALGORITHM = 1 (a) PARTITIONS 3", "p0", "p2"
    ),
    "linear key": each(
        "CREATE TABLE t (a INT) PARTITION BY LINEAR KEY (a) PARTITIONS 5", "p0", "p4"
    ),
    "hash add coalesce": [
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
        ROWS,
        "ALTER TABLE t ADD PARTITION PARTITIONS 3",
        "ALTER TABLE t TRUNCATE PARTITION p4",
        "ALTER TABLE t COALESCE PARTITION 2",
        "ALTER TABLE t TRUNCATE PARTITION p1",
    ],
    "exchange": [
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
        "CREATE TABLE u (a INT)",
        "INSERT INTO t VALUES (1),(2),(3),(4)",
        "INSERT INTO u VALUES (10),(12)",
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
        "UPDATE t SET a=20 WHERE a=10",
    ],
    "exchange without validation": [
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
        "CREATE TABLE u (a INT)",
        "INSERT INTO t VALUES (1),(2),(3),(4)",
        "INSERT INTO u VALUES (10)",
        "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u WITHOUT VALIDATION",
    ],
    "remove": [
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
        "INSERT INTO t VALUES (1),(2)",
        "ALTER TABLE t REMOVE PARTITIONING",
        (
            "ALTER TABLE t PARTITION BY RANGE (a) (PARTITION a0 VALUES LESS THAN (2), "
            "PARTITION a1 VALUES LESS THAN (5))"
        ),
        "ALTER TABLE t DROP PARTITION a0",
    ],
    "sub": [
        """CREATE TABLE t (a INT, b INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (b)
            SUBPARTITIONS 2
            (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))""",
        "INSERT INTO t VALUES (1,1),(6,2),(7,3)",
        "ALTER TABLE t DROP PARTITION p1",
    ],
    "NULL in three partitions": each(
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 3", "p0", "p1", "p2"
    ),
    "NULL in seven partitions": each(
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 7", *(f"p{at}" for at in range(7))
    ),
    "single subpartitions by HASH": each(
        """CREATE TABLE t (a INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (a) SUBPARTITIONS 3
            (PARTITION p0 VALUES LESS THAN (20), PARTITION p1 VALUES LESS THAN MAXVALUE)""",
        *(f"p{at}sp{below}" for at in range(2) for below in range(3)),
    ),
    "single subpartitions by KEY": each(
        """CREATE TABLE t (a INT) PARTITION BY LIST (a % 2) SUBPARTITION BY LINEAR KEY (a)
            (PARTITION p0 VALUES IN (NULL, 0) (SUBPARTITION `e1`, SUBPARTITION E2, SUBPARTITION e3),
             PARTITION p1 VALUES IN (-1, 1) (SUBPARTITION o1, SUBPARTITION o2, SUBPARTITION o3))""",
        "e1",
        "e2",
        "e3",
        "o1",
        "o2",
        "o3",
        "p1",
    ),
    "exchange of a subpartition": [
        """CREATE TABLE t (a INT, b INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (b)
            (PARTITION p0 VALUES LESS THAN (10) (SUBPARTITION s0, SUBPARTITION s1),
             PARTITION p1 VALUES LESS THAN MAXVALUE (SUBPARTITION s2, SUBPARTITION s3))""",
        "CREATE TABLE u (a INT, b INT)",
        "INSERT INTO t VALUES (1,1),(2,2),(3,NULL),(4,-3),(11,1),(12,2),(13,13)",
        "INSERT INTO u VALUES (30,7),(31,9)",
        "ALTER TABLE t EXCHANGE PARTITION s3 WITH TABLE u",
        "UPDATE t SET b = b + 1 WHERE a = 30",
        "INSERT INTO u VALUES (15,5)",
        "CREATE TABLE v LIKE u",
        "ALTER TABLE t EXCHANGE PARTITION s1 WITH TABLE v",
        "ALTER TABLE t TRUNCATE PARTITION s0, p1",
    ],
    "rebuild etc": [
        "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2",
        "INSERT INTO t VALUES (1),(2)",
        "ALTER TABLE t REBUILD PARTITION ALL",
        "ALTER TABLE t ANALYZE PARTITION p0",
        "ALTER TABLE t ADD COLUMN b INT DEFAULT 3",
        "ALTER TABLE t TRUNCATE PARTITION ALL",
        "INSERT INTO t VALUES (5,6)",
    ],
    "rename column": [
        "CREATE TABLE t (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 2",
        "INSERT INTO t VALUES (1,2),(2,3)",
        "ALTER TABLE t CHANGE a c INT",
        "ALTER TABLE t TRUNCATE PARTITION p0",
    ],
}
