"""Cases of `test_structure`: foreign keys and what their tables go through, CREATE … SELECT,
statements about another database."""

from __future__ import annotations

Statements = list[str | tuple[int, str]]
ALL = ("ROW", "MIXED", "STATEMENT")

PARENT = "CREATE TABLE p (id INT PRIMARY KEY, n INT, KEY (n)) ENGINE=InnoDB"
CHILD = """CREATE TABLE c (a INT PRIMARY KEY, pid INT,
    FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)
    ENGINE=InnoDB"""
FAMILY = [
    PARENT,
    CHILD,
    "INSERT INTO p VALUES (1,1),(2,2),(3,3)",
    "INSERT INTO c VALUES (10,1),(20,2),(21,2),(30,NULL)",
]
SELF = (
    "CREATE TABLE s (pk INT PRIMARY KEY, fk INT, FOREIGN KEY (fk) REFERENCES s (pk) "
    "ON DELETE CASCADE) ENGINE=InnoDB"
)
OFF, ON = "SET foreign_key_checks=0", "SET foreign_key_checks=1"
PLAIN = [
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY ka (a), KEY kb (b)) ENGINE=InnoDB",
    "INSERT INTO t VALUES (1,10,100),(2,20,200)",
]

FOREIGN_KEYS: dict[str, Statements] = {
    "rename parent": [
        *FAMILY,
        "RENAME TABLE p TO q",
        PARENT,
        "INSERT INTO p VALUES (1,1)",
        "DELETE FROM p",
        "DELETE FROM q WHERE id=1",
    ],
    "rename parent other db": [
        "CREATE DATABASE e",
        *FAMILY,
        "RENAME TABLE p TO e.q",
        "DELETE FROM e.q WHERE id=1",
        "INSERT INTO c VALUES (40,3)",
    ],
    "rename parent checks=0": [
        *FAMILY,
        OFF,
        "RENAME TABLE p TO q",
        ON,
        "DELETE FROM q WHERE id=1",
        "INSERT INTO c VALUES (40,3)",
    ],
    "rename parent checks=0, new p": [
        *FAMILY,
        OFF,
        "RENAME TABLE p TO q",
        PARENT,
        ON,
        "INSERT INTO p VALUES (1,1),(9,9)",
        "DELETE FROM p WHERE id=1",
        "INSERT INTO c VALUES (40,9)",
        "DELETE FROM q WHERE id=2",
    ],
    "alter rename parent": [
        *FAMILY,
        "ALTER TABLE p RENAME TO q",
        "DELETE FROM q WHERE id=1",
        PARENT,
        "DELETE FROM q WHERE id=2",
    ],
    "alter rename + add col": [
        *FAMILY,
        "ALTER TABLE p RENAME TO q, ADD z INT",
        "DELETE FROM q WHERE id=1",
    ],
    "rename child": [
        *FAMILY,
        "RENAME TABLE c TO k",
        "DELETE FROM p WHERE id=1",
        "INSERT INTO k VALUES (50,2)",
        "ALTER TABLE k DROP FOREIGN KEY k_ibfk_1",
        "INSERT INTO k VALUES (51,77)",
    ],
    "rename col parent": [
        *FAMILY,
        "ALTER TABLE p CHANGE id id2 INT",
        "DELETE FROM p WHERE id2=1",
        "INSERT INTO c VALUES (50,2)",
        "UPDATE p SET id2=7 WHERE id2=2",
    ],
    "rename col child": [
        *FAMILY,
        "ALTER TABLE c CHANGE pid ppp INT",
        "DELETE FROM p WHERE id=1",
        "INSERT INTO c VALUES (50,2)",
        "UPDATE p SET id=7 WHERE id=2",
    ],
    "drop parent checks0, recreate": [
        *FAMILY,
        OFF,
        "DROP TABLE p",
        PARENT,
        ON,
        "INSERT INTO p VALUES (1,1),(9,9)",
        "DELETE FROM p WHERE id=1",
        "INSERT INTO c VALUES (40,9)",
    ],
    "drop parent, rename other to it": [
        *FAMILY,
        "CREATE TABLE o LIKE p",
        "INSERT INTO o VALUES (1,1),(9,9)",
        OFF,
        "DROP TABLE p",
        ON,
        "RENAME TABLE o TO p",
        "DELETE FROM p WHERE id=1",
        "INSERT INTO c VALUES (40,9)",
    ],
    "drop parent, recreate no key checks0": [
        *FAMILY,
        OFF,
        "DROP TABLE p",
        "CREATE TABLE p (x INT) ENGINE=InnoDB",
        ON,
        "INSERT INTO c VALUES (40,9)",
        "INSERT INTO p VALUES (1)",
        "DELETE FROM p",
        "DELETE FROM c WHERE a=10",
    ],
    "swap p and o": [
        *FAMILY,
        "CREATE TABLE o LIKE p",
        "INSERT INTO o VALUES (1,1),(9,9)",
        "RENAME TABLE p TO tmp, o TO p, tmp TO o",
        "DELETE FROM p WHERE id=1",
        "INSERT INTO c VALUES (40,3)",
        "DELETE FROM o WHERE id=1",
    ],
    "self ref rename": [
        SELF,
        "INSERT INTO s VALUES (1,1),(2,1),(3,2)",
        "RENAME TABLE s TO o",
        "CREATE TABLE s (pk INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO s VALUES (1)",
        "DELETE FROM s",
        "DELETE FROM o WHERE pk=1",
    ],
    "circular cascade": [
        OFF,
        (
            "CREATE TABLE a (id INT PRIMARY KEY, b INT, FOREIGN KEY (b) REFERENCES b (id) "
            "ON DELETE CASCADE) ENGINE=InnoDB"
        ),
        (
            "CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id) "
            "ON DELETE CASCADE) ENGINE=InnoDB"
        ),
        "INSERT INTO a VALUES (1,1),(2,1),(3,2)",
        "INSERT INTO b VALUES (1,1),(2,2)",
        ON,
        "DELETE FROM a WHERE id=1",
    ],
    "self set null": [
        (
            "CREATE TABLE s (pk INT PRIMARY KEY, fk INT, FOREIGN KEY (fk) REFERENCES s (pk) "
            "ON DELETE SET NULL ON UPDATE CASCADE)"
        ),
        "INSERT INTO s VALUES (1,1),(2,1),(3,2)",
        "UPDATE s SET pk=9 WHERE pk=1",
        "UPDATE s SET pk=8 WHERE pk=3",
        "DELETE FROM s WHERE pk=1",
    ],
    "myisam": [
        "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE c (id INT, FOREIGN KEY (id) REFERENCES p (id)) ENGINE=MyISAM",
        "INSERT INTO c VALUES (9)",
        "ALTER TABLE c ENGINE=InnoDB",
        "INSERT INTO c VALUES (10)",
    ],
    "inline references": [
        PARENT,
        "CREATE TABLE c (a INT REFERENCES p (id) ON DELETE CASCADE) ENGINE=InnoDB",
        "INSERT INTO p VALUES (1,1)",
        "INSERT INTO c VALUES (1)",
        "INSERT INTO c VALUES (9)",
        "DELETE FROM p",
    ],
    "inline references with a name": [
        PARENT,
        "CREATE TABLE c (a INT CONSTRAINT f REFERENCES p (id) ON DELETE CASCADE) ENGINE=InnoDB",
        "ALTER TABLE c ADD b INT CONSTRAINT REFERENCES p (id) ON DELETE SET NULL",
        "ALTER TABLE c ADD d INT CONSTRAINT g REFERENCES p (id) ON DELETE CASCADE",
        "INSERT INTO p VALUES (1,1),(2,2),(3,3)",
        "INSERT INTO c (a) VALUES (1),(2)",
        "ALTER TABLE c ADD e INT",
        "UPDATE c SET d=3",
        "ALTER TABLE c DROP FOREIGN KEY f, DROP KEY f",
        "DELETE FROM p WHERE id<=2",
        "ALTER TABLE c DROP FOREIGN KEY g, DROP KEY g",
        "DELETE FROM p",
    ],
    "inline references no list": [
        PARENT,
        "CREATE TABLE c (a INT REFERENCES p ON DELETE CASCADE) ENGINE=InnoDB",
        "INSERT INTO p VALUES (1,1)",
        "INSERT INTO c VALUES (1)",
        "DELETE FROM p",
    ],
    "case-insensitive": [
        "CREATE TABLE p (v VARCHAR(10) CHARACTER SET latin1 PRIMARY KEY) ENGINE=InnoDB",
        (
            "CREATE TABLE c (v VARCHAR(20) CHARACTER SET latin1, FOREIGN KEY (v) REFERENCES p (v) "
            "ON DELETE CASCADE ON UPDATE CASCADE)"
        ),
        "INSERT INTO p VALUES ('A'),('b')",
        "INSERT INTO c VALUES ('a'),('B '),('b')",
        "UPDATE p SET v='a' WHERE v='A'",
        "DELETE FROM p WHERE v='b'",
    ],
    "two paths": [
        PARENT,
        CHILD,
        (
            "CREATE TABLE g (id INT, c INT, FOREIGN KEY (c) REFERENCES c (a) ON DELETE RESTRICT) "
            "ENGINE=InnoDB"
        ),
        "INSERT INTO p VALUES (1,1),(2,2),(3,3)",
        "INSERT INTO c VALUES (10,1),(20,2),(21,2),(30,NULL)",
        "INSERT INTO g VALUES (1,20)",
        "DELETE FROM p WHERE id=2",
        "DELETE FROM p WHERE id=1",
    ],
    "default names": [
        PARENT,
        (
            "CREATE TABLE c (a INT, b INT, CONSTRAINT x FOREIGN KEY (a) REFERENCES p (id), "
            "FOREIGN KEY (b) REFERENCES p (id)) ENGINE=InnoDB"
        ),
        "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1",
        "ALTER TABLE c DROP FOREIGN KEY c_ibfk_2",
        "INSERT INTO c VALUES (NULL,77)",
        "ALTER TABLE c ADD FOREIGN KEY iname (a) REFERENCES p (n)",
        "ALTER TABLE c DROP FOREIGN KEY iname",
        "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1",
        "ALTER TABLE c DROP FOREIGN KEY c_ibfk_2",
        "INSERT INTO p VALUES (5,6)",
        "INSERT INTO c VALUES (5,78)",
        "ALTER TABLE c DROP FOREIGN KEY x",
        "INSERT INTO c VALUES (99,88)",
    ],
    "drop both": [
        *FAMILY,
        "DROP TABLE p, c",
    ],
    "drop both reverse": [
        *FAMILY,
        "DROP TABLE c, p",
    ],
    "drop some missing": [
        *FAMILY,
        "DROP TABLE c, nope, p",
    ],
    "drop p missing": [
        *FAMILY,
        "DROP TABLE p, nope, c",
    ],
    "drop if exists p, c": [
        *FAMILY,
        "DROP TABLE IF EXISTS p, nope, c",
    ],
    "statement fmt": [
        *FAMILY,
        "DELETE FROM p WHERE id=1",
        OFF,
        "DELETE FROM p WHERE id=2",
        "INSERT INTO c VALUES (99,99)",
    ],
    "drop db": [
        "CREATE DATABASE e",
        "CREATE TABLE e.p (id INT PRIMARY KEY) ENGINE=InnoDB",
        (
            "CREATE TABLE c (id INT, FOREIGN KEY (id) REFERENCES e.p (id) ON DELETE CASCADE) "
            "ENGINE=InnoDB"
        ),
        "INSERT INTO e.p VALUES (1)",
        "INSERT INTO c VALUES (1)",
        OFF,
        "DROP DATABASE e",
        "CREATE DATABASE e",
        "CREATE TABLE e.p (id INT PRIMARY KEY) ENGINE=InnoDB",
        ON,
        "INSERT INTO e.p VALUES (1)",
        "DELETE FROM e.p",
    ],
}

SOURCE = [
    """CREATE TABLE o (id INT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL DEFAULT 5,
        v VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'q',
        g INT AS (a + 1) STORED)""",
    "INSERT INTO o (a, v) VALUES (1,'x'),(2,NULL)",
]
SELECTS: dict[str, Statements] = {
    "star": [
        *SOURCE,
        "CREATE TABLE t SELECT * FROM o",
        "INSERT INTO t () VALUES ()",
    ],
    "star with": [
        *SOURCE,
        (
            "CREATE TABLE t (v VARCHAR(9) CHARACTER SET utf8mb4, z INT DEFAULT 4, KEY (z), "
            "KEY (v)) SELECT * FROM o"
        ),
        "INSERT INTO t () VALUES ()",
    ],
    "alias": [
        *SOURCE,
        "CREATE TABLE t (g INT, id INT, PRIMARY KEY (id)) SELECT id, g, a AS b FROM o",
    ],
    "where": [
        *SOURCE,
        "INSERT INTO o (a, v) VALUES (3,'X'),(4,'y')",
        "CREATE TABLE t SELECT * FROM o WHERE v = 'x'",
        "CREATE TABLE u AS SELECT n.a, id AS k FROM o n WHERE n.g > 2 ORDER BY n.id DESC LIMIT 1",
        "CREATE TABLE w (z INT) SELECT v FROM o AS n WHERE 1 = 0",
    ],
    "temporary": [
        *SOURCE,
        "CREATE TEMPORARY TABLE t SELECT id FROM o",
        "CREATE TABLE u SELECT * FROM t",
    ],
}
OTHER_DATABASES: dict[str, Statements] = {
    "alter rename across": [
        "CREATE DATABASE e",
        "CREATE TABLE e.t (a INT)",
        "ALTER TABLE e.t RENAME TO u",
        "INSERT INTO u VALUES (1)",
    ],
    "fk across": [
        "CREATE DATABASE e",
        "CREATE TABLE e.p (id INT PRIMARY KEY) ENGINE=InnoDB",
        (
            "CREATE TABLE e.c (id INT, FOREIGN KEY (id) REFERENCES p (id) ON DELETE CASCADE) "
            "ENGINE=InnoDB"
        ),
        "INSERT INTO e.p VALUES (1),(2)",
        "INSERT INTO e.c VALUES (1)",
        "DELETE FROM e.p WHERE id=1",
        "ALTER TABLE e.c ADD b INT, ADD FOREIGN KEY (b) REFERENCES p (id)",
        "INSERT INTO e.c VALUES (2,2)",
    ],
}
