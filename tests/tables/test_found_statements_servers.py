"""Statements in statement format that random scripts beside real servers found wrong or refused.
Nothing of them is refused."""

from __future__ import annotations

from servers.server import Server

from tests.tables.test_functions_servers import Scripts, compared_scripts

ALL = ("5.7", "9.7", "mariadb")
SCRIPTS: Scripts = (
    (
        ALL,
        """
CREATE TABLE from_enum (id INT PRIMARY KEY, d ENUM('u', 'v'));
CREATE TABLE to_enum (id INT PRIMARY KEY, d ENUM('u', 'v'), e ENUM('x', 'u'), s SET('u', 'v'));
INSERT INTO from_enum VALUES (1, 'zero'), (2, 'u'), (3, NULL);
SET sql_mode = 'STRICT_ALL_TABLES';
INSERT INTO to_enum (id, d) SELECT id, d FROM from_enum;
INSERT INTO to_enum (id, e) SELECT id + 10, d FROM from_enum WHERE id <> 2;
INSERT INTO to_enum (id, s) SELECT id + 30, d FROM from_enum;
UPDATE from_enum SET d = d, id = 9 WHERE id = 1;
""",
    ),
    (
        ALL,
        """
CREATE TABLE years (id INT PRIMARY KEY, y YEAR, z YEAR NOT NULL, v VARCHAR(9));
INSERT INTO years VALUES (1, '', ' ', ''), (2, '0', '70', '  '),
    (3, '69', '1999', '0'), (4, 0, 0, '');
UPDATE years SET y = v, z = '' WHERE id < 4;
SET sql_mode = 'STRICT_ALL_TABLES';
INSERT IGNORE INTO years VALUES (5, '', '', '5');
UPDATE IGNORE years SET z = v;
""",
    ),
    (
        ALL,
        """
CREATE TABLE numbers (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
SET insert_id = 4;
INSERT IGNORE INTO numbers (id, v) VALUES (5, 1), (NULL, 2), (NULL, 3), (30, 4), (NULL, 5);
INSERT INTO numbers (id, v) VALUES (40, 6), (NULL, 7), (50, 8), (NULL, 9);
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
INSERT INTO numbers VALUES (DEFAULT, 10);
INSERT INTO numbers VALUES (DEFAULT, 11), (NULL, 12) ON DUPLICATE KEY UPDATE v = 110;
INSERT IGNORE INTO numbers (v, id) VALUES (13, DEFAULT), (14, NULL), (15, DEFAULT);
INSERT INTO numbers (v) VALUES (16);
""",
    ),
    (
        ALL,
        """
CREATE TABLE pairs (id INT PRIMARY KEY, a INT, b VARCHAR(10), c DECIMAL(5, 2), n INT, r INT, s INT);
INSERT INTO pairs VALUES (1, 1, 'x', 1.5, NULL, 0, 0), (2, 2, 'y', 2.5, 3, 0, 0),
    (3, 3, 'X ', 1, 5, 0, 0), (4, NULL, NULL, NULL, 4, 0, 0), (5, 5, 'z', 5, 5, 0, 0),
    (6, 6, 'w', 6, 6, 0, 0);
UPDATE pairs SET r = r + 1 WHERE (a, b) IN ((1, 'X'), (5, 'q'), (NULL, 'y'));
UPDATE pairs SET r = r + 10 WHERE (a, b) = (2, 'Y') OR (a, n) <=> (1, NULL);
UPDATE pairs SET r = r + 100 WHERE ((a, n) <> (1, 7));
UPDATE pairs SET r = r + 1000 WHERE NOT ((a, n) = (1, 7)) AND ROW(id, c) != ROW('2', 2.5);
UPDATE pairs SET r = r + 10000 WHERE (a, n) NOT IN ((1, 7), (3, 5), (9, 9));
UPDATE pairs SET s = (a, c) IN ((2, 2.50), (3, 1.00)), a = ((a, 1) = (1, 1)) + 5 WHERE (id) < 4;
DELETE FROM pairs WHERE (id, 5) IN ((5, 5), (6, 6)) AND (b IN ('z', 'w'));
DELETE FROM pairs ORDER BY b DESC, id LIMIT 1;
DELETE IGNORE FROM pairs ORDER BY c, id LIMIT 1;
""",
    ),
    (
        ALL,
        """
CREATE TABLE fixed (id INT PRIMARY KEY, f FLOAT(5, 4), g FLOAT, d DOUBLE(8, 2), i INT,
    n DECIMAL(6, 4), r VARCHAR(40));
INSERT INTO fixed VALUES (1, 1.2345, 1.2345, 3.14, 3, 1.2345, ''), (2, 2, 2, 2, 2, 2, ''),
    (3, NULL, 0, NULL, NULL, 0, ''), (4, 0.1, 0.1, 0.1, 0, 0.1, ''), (5, 0.1, 9, 9, 9, 9, '');
UPDATE fixed SET r = CONCAT(r, IF(f = 1.2345, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f <=> 1.2345, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f < 1.2345, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f >= 1.2345, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f IN (1.2345), 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f IN (1.2345, 2), 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(g = 1.2345, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f = n, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(n = f, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f = g, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f = d, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(d = 3.144, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(d < 3.144, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(d = i, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f = 1.2345e0, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f = '1.2345', 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(-f = -1.2345, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(f = 1.2344, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF((f, 1) = (1.2345, 1), 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(CASE f WHEN 1.2345 THEN 1 ELSE 0 END, 1, 0));
UPDATE fixed SET r = CONCAT(r, IF(NULLIF(f, 1.2345) IS NULL, 1, 0));
DELETE FROM fixed WHERE id > 3 AND f = 0.1;
CREATE TABLE texts (id INT PRIMARY KEY, v VARCHAR(9), r INT);
INSERT INTO texts VALUES (1, '1.04', 0), (2, '1', 0);
UPDATE texts SET r = r + 1 WHERE -v = -1.0;
UPDATE texts SET r = r + 10 WHERE v + 1 = 2;
UPDATE texts SET r = r + 100 WHERE v * 1 BETWEEN 0 AND 2;
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE unread (id INT, e INT INVISIBLE DEFAULT (10), n INT NOT NULL INVISIBLE DEFAULT (90),
    l INT INVISIBLE DEFAULT 7, m DATETIME INVISIBLE DEFAULT CURRENT_TIMESTAMP,
    o DATETIME NOT NULL INVISIBLE DEFAULT (NOW()),
    t VARCHAR(9) NOT NULL INVISIBLE DEFAULT (UPPER('a')), v INT DEFAULT 3);
INSERT INTO unread VALUES (1, DEFAULT), (2, 2);
INSERT INTO unread VALUES (), ();
INSERT INTO unread () VALUES ();
INSERT INTO unread (id) VALUES (3);
INSERT INTO unread (id, e) VALUES (4, DEFAULT);
INSERT INTO unread SET id = 5;
INSERT INTO unread SELECT 6, 6;
REPLACE INTO unread VALUES (7, 7);
INSERT INTO unread VALUES (8, 8) ON DUPLICATE KEY UPDATE id = 9;
""",
    ),
    (
        ALL,
        """
CREATE TABLE signs (id INT PRIMARY KEY, s INT, u INT UNSIGNED, r VARCHAR(30), b BIGINT, y YEAR);
INSERT INTO signs VALUES (1, 9, 10, '', 0, 1999), (2, -5, 100, '', 0, 1999),
    (3, NULL, 7, '', 0, 1999), (4, 3, NULL, '', 0, 1999), (5, 88, 9, '', 0, 1999),
    (6, 0, 9, '', 0, 1999);
UPDATE signs SET r = CONCAT(GREATEST(s, u), ',', LEAST(s, u)), b = GREATEST(s, u);
UPDATE signs SET b = b + 1 ORDER BY IFNULL(s, u), id LIMIT 2;
UPDATE signs SET y = IFNULL(s, u), r = CONCAT(r, IFNULL(s, u) / 3, IF(id > 1, u, s)) WHERE id <> 2;
DELETE FROM signs WHERE COALESCE(s, u) > 80;
""",
    ),
    (
        ALL,
        """
CREATE TABLE source (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b CHAR(10), UNIQUE (b));
INSERT INTO source VALUES (1, 0, 'p'), (2, 0, 'q'), (30, 0, 'y'), (50, 0, 'z');
CREATE TABLE one LIKE source;
INSERT INTO one SELECT * FROM source WHERE id < 50 ORDER BY id;
INSERT INTO one (id, a, b) VALUES (36, 5, 'b'), (NULL, 2, 'b'), (0, 4, '')
    ON DUPLICATE KEY UPDATE id = VALUES(id);
CREATE TABLE two LIKE source;
INSERT INTO two SELECT * FROM source ORDER BY id;
INSERT INTO two (id, b) VALUES (NULL, 'q'), (0, 'p'), (NULL, 's')
    ON DUPLICATE KEY UPDATE id = id + 50;
CREATE TABLE three LIKE source;
INSERT INTO three SELECT * FROM source ORDER BY id;
SET insert_id = 7;
INSERT INTO three (a, b) VALUES (4, 'm'), (5, 'y'), (6, 'n'), (7, 'z'), (8, 'o')
    ON DUPLICATE KEY UPDATE a = 9;
CREATE TABLE ignored LIKE source;
INSERT INTO ignored SELECT * FROM source ORDER BY id;
INSERT IGNORE INTO ignored (b) VALUES ('q'), ('new'), ('p') ON DUPLICATE KEY UPDATE b = 'z', a = 1;
INSERT IGNORE INTO ignored (id, b) VALUES (1, 'm'), (30, 'k'), (NULL, 'm')
    ON DUPLICATE KEY UPDATE b = 'w', a = 2;
CREATE TABLE four LIKE source;
INSERT INTO four SELECT * FROM source ORDER BY id;
SET insert_id = 7, auto_increment_increment = 5;
INSERT INTO four (a, b) VALUES (5, 'y'), (6, 'n'), (0, 'z'), (3, 'k')
    ON DUPLICATE KEY UPDATE id = VALUES(id), a = 4;
SET auto_increment_increment = 1;
""",
    ),
    (
        ALL,
        """
CREATE TABLE parent (id INT PRIMARY KEY, b CHAR(10), c INT, r INT, UNIQUE (b), UNIQUE (r));
INSERT INTO parent VALUES (1, 'x', 0, 10), (2, 'q', 0, 20), (3, 'y', 0, 30), (4, 'z', 0, 40);
CREATE TABLE nulled (x INT PRIMARY KEY, p INT, q INT,
    FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL,
    FOREIGN KEY (q) REFERENCES parent (r) ON DELETE SET NULL);
CREATE TABLE gone (x INT PRIMARY KEY, p INT,
    FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO nulled SELECT id, id, r FROM parent ORDER BY id;
INSERT INTO gone SELECT id, id FROM parent ORDER BY id;
REPLACE INTO parent VALUES (1, 'n', 1, 10), (2, 'q', 1, 21), (5, 'w', 1, 30), (6, 'z', 1, 41);
""",
    ),
    (
        ALL,
        """
CREATE TABLE days (id INT PRIMARY KEY, day DATE, at DATETIME, b BIGINT, u INT UNSIGNED,
    d DECIMAL(20, 2), f DOUBLE, v VARCHAR(30));
INSERT INTO days (id, day, at) VALUES (1, '2020-12-31', '2020-12-31 10:11:12'),
    (2, '2020-12-31', '2020-12-31 10:11:12'), (3, '2020-12-31', '2020-12-31');
UPDATE days SET b = day, u = day, d = day, f = day, v = day WHERE id = 1;
UPDATE days SET b = at, d = at, f = at, v = at WHERE id = 2;
UPDATE days SET b = DATE'2020-12-31', u = day + 0 WHERE id = 3;
""",
    ),
    (
        ALL,
        """
CREATE TABLE rolled (id INT PRIMARY KEY);
BEGIN;
INSERT INTO rolled VALUES (1);
CREATE TEMPORARY TABLE scratch (a INT);
INSERT INTO scratch VALUES (1), (2);
INSERT INTO rolled SELECT a + 20 FROM scratch ORDER BY a;
DROP TEMPORARY TABLE scratch;
ROLLBACK;
BEGIN;
INSERT INTO rolled VALUES (2);
SAVEPOINT s;
CREATE TEMPORARY TABLE notes (a INT) ENGINE=MEMORY;
INSERT INTO rolled VALUES (3);
ROLLBACK TO s;
COMMIT;
BEGIN;
INSERT INTO rolled VALUES (4);
ALTER TABLE notes ADD b INT;
INSERT INTO rolled VALUES (5);
DROP /*!40005 TEMPORARY */ TABLE IF EXISTS notes;
ROLLBACK;
""",
    ),
    (
        ALL,
        """
CREATE TABLE behind (id INT PRIMARY KEY);
INSERT INTO behind VALUES (1);
CREATE TEMPORARY TABLE behind (id INT, x INT);
INSERT INTO behind VALUES (5, 6);
RENAME TABLE behind TO ahead;
CREATE TABLE visible (id INT PRIMARY KEY);
INSERT INTO visible VALUES (7);
CREATE TEMPORARY TABLE hidden (id INT);
RENAME TABLE visible TO hidden;
DROP TEMPORARY TABLE hidden;
DROP TEMPORARY TABLE IF EXISTS behind, ahead;
INSERT INTO hidden VALUES (8);
""",
    ),
    (
        ALL,
        """
CREATE TABLE digits (id INT PRIMARY KEY, z INT(5) ZEROFILL, f DECIMAL(6, 2) ZEROFILL, y YEAR,
    v VARCHAR(40), c CHAR(40), b VARBINARY(40), n BINARY(6), x TEXT, t TINYTEXT, o BLOB,
    u VARCHAR(10) CHARACTER SET ucs2, l INT);
INSERT INTO digits (id, z, f, y) VALUES (1, 7, 3.5, 0), (2, 7, 3.5, 0), (3, 7, 3.5, 0),
    (4, 7, 3.5, 0), (5, 123456, 12345.67, 1999);
UPDATE digits SET v = z, c = z, b = z, n = z, x = z, t = z, o = z, u = z WHERE id = 1;
UPDATE digits SET v = y, c = y, b = y, n = y, x = y, t = y, o = y, u = y WHERE id = 2;
UPDATE digits SET v = f, c = f, b = f, x = f, t = f, o = f, u = f WHERE id = 3;
UPDATE digits SET v = CONCAT(z, '|', f, '|', y), c = CONCAT(z + 0, LEFT(z, 2), IFNULL(z, '')),
    b = IF(1, z, 'a'), x = COALESCE(z, 1), t = CAST(z AS CHAR), o = HEX(z), l = LENGTH(z)
    WHERE id > 3;
CREATE TABLE chosen LIKE digits;
INSERT INTO chosen (id, v, x, l) SELECT id + 10, y, z, z LIKE '0%' FROM digits ORDER BY id;
""",
    ),
    (
        ("5.7", "mariadb"),
        """
CREATE TABLE padded (id INT PRIMARY KEY, c VARCHAR(5), d VARCHAR(5), l VARCHAR(9), r VARCHAR(9));
INSERT INTO padded VALUES (1, '', '', 'z', 'z'), (2, 'ab', '', 'z', 'z'), (3, 'abcd', '', 'z', 'z'),
    (4, 'ab', 'x', 'z', 'z'), (5, 'abc', '', 'z', 'z');
UPDATE padded SET l = LPAD(c, 3, d), r = RPAD(c, 3, d);
""",
    ),
    (
        ("5.7", "9.7"),
        """
CREATE TABLE documents (id INT PRIMARY KEY, j JSON, k JSON, m JSON, s VARCHAR(100), n INT);
INSERT INTO documents (id, j) VALUES (1, 'null'), (2, '"x"'),
    (3, '{"a": null, "b": [null, 1], "0": 5}'), (4, '[null, 2]'), (5, NULL), (6, '3');
UPDATE documents SET k = j, m = JSON_EXTRACT(j, '$[0][0]'), s = JSON_UNQUOTE(j), n = j IS NULL;
CREATE TABLE copies LIKE documents;
INSERT INTO copies (id, k, m, s)
    SELECT id + 10, k, JSON_EXTRACT(j, '$.b[0]'), CAST(j AS CHAR) FROM documents ORDER BY id;
UPDATE documents SET m = CAST('null' AS JSON), k = JSON_EXTRACT('null', '$') WHERE id = 4;
UPDATE documents SET s = j->>'$[0]', n = JSON_VALID(j) WHERE id < 5;
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE kept (id INT PRIMARY KEY, c INT);
INSERT INTO kept VALUES (1, 0), (2, 0);
CREATE TABLE restricts (x INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES kept (id));
INSERT INTO restricts VALUES (1, 1);
REPLACE INTO kept VALUES (1, 5), (2, 6);
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE vectors (id INT PRIMARY KEY, v VECTOR(3));
INSERT INTO vectors VALUES (1, 0x0000803f0000004000004040), (2, X'0000803F'), (3, NULL);
UPDATE vectors SET v = _binary 0x00000040 WHERE id = 2;
""",
    ),
    (
        ALL,
        """
CREATE TABLE divided (id INT PRIMARY KEY, a INT, s VARCHAR(10))
    PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2
    (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20),
     PARTITION `p 2` VALUES LESS THAN MAXVALUE);
INSERT INTO divided PARTITION (p0, p1) (id, a, s) VALUES (1, 1, 'a'), (2, 2, 'b'), (11, 1, 'c');
INSERT INTO divided PARTITION (`p 2`) SET id = 30, a = 3;
INSERT INTO divided PARTITION (p1) (id, a) SELECT id + 11, a FROM divided WHERE id < 3 ORDER BY id;
INSERT INTO divided PARTITION (p0) (id, a) VALUES (1, 7), (3, 0) ON DUPLICATE KEY UPDATE a = 8;
REPLACE INTO divided PARTITION (p0, `p 2`) (id, a, s) VALUES (2, 5, 'r'), (40, 4, 's');
UPDATE divided PARTITION (P1) SET a = a + 100;
UPDATE divided PARTITION (p0) AS d SET s = 'upd' WHERE d.a > 0;
UPDATE divided PARTITION (p0, p1) SET s = 'none' WHERE id = 30;
UPDATE divided PARTITION (p0, p1) SET id = 15 WHERE id = 3;
UPDATE divided PARTITION (p0sp1, p1sp0) SET s = 'sub';
DELETE FROM divided PARTITION (p1) WHERE a = 101 AND id = 11;
DELETE FROM divided PARTITION (p0sp0);
INSERT INTO divided PARTITION (p0) (id, a) VALUES (50, 0);
CREATE TABLE listed (id INT, k INT, PRIMARY KEY (k, id)) PARTITION BY KEY (k) PARTITIONS 3;
INSERT INTO listed VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6);
DELETE FROM listed PARTITION (p1);
UPDATE listed PARTITION (p0, p2) SET id = id + 10;
""",
    ),
    (
        ("5.7", "9.7"),
        """
CREATE TABLE limited (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 2;
INSERT INTO limited VALUES (1, 1), (2, 2), (3, 3), (4, 4);
UPDATE limited PARTITION (p1) SET a = 9 ORDER BY id DESC LIMIT 1;
DELETE FROM limited PARTITION (p0) ORDER BY id LIMIT 1;
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE aliased (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 2;
INSERT INTO aliased VALUES (1, 1), (2, 2), (3, 3), (4, 4);
DELETE FROM aliased AS d PARTITION (p0) WHERE d.id > 2;
""",
    ),
    (
        ALL,
        """
CREATE TABLE given (id INT PRIMARY KEY, n DECIMAL(20,10), t VARCHAR(20), f DOUBLE);
INSERT INTO given VALUES (1, 0.1, '0.1', 0.1), (2, 1.005, '1.005', 1.005), (3, -1.5, '-1.5', -1.5),
    (4, 1.42857143, '1.42857143', 1.42857143), (5, 0.57142857, '0.57142857', 0.57142857),
    (6, -0.333333333, '-0.333333333', -1e0 / 3), (7, 999.996, '999.996', 999.996),
    (8, 8.125, '8.125', 8.125), (9, 0.005, '4.9999e-3', 4.9999e-3), (10, 33.335, '33.335', 33.335),
    (11, -2.5, '-2.5', -2.5), (12, 1.99999999, ' 1.9999999949', 1.9999999949), (13, 0, '', 1e-9);
CREATE TABLE fixed (id INT AUTO_INCREMENT PRIMARY KEY, a FLOAT(8,2), b DOUBLE(15,8) DEFAULT 0.12345,
    c DOUBLE(5,0), d FLOAT(12,6), e DOUBLE(6,3));
INSERT INTO fixed (a, b, c, d, e) SELECT n, n, n, n, n FROM given;
INSERT INTO fixed (a, b, c, d, e) SELECT t, t, t, t, t FROM given;
INSERT INTO fixed (a, e) VALUES (1.005, '2.0005'), (99999999.99, -1e9), ('9999999.9', 9999);
INSERT INTO fixed (b, c) VALUES (1e9, 123456), (-1e300, 2.5), (1.42857143, -99999.6);
INSERT INTO fixed (a, b, c, d, e) VALUES (1e-9, 1.9999999949e0, 2.5e0, -4.9999999e-3, 0.0005e0);
UPDATE fixed SET e = id / 7, a = id * 1.005, c = id * 1.5 WHERE id < 10;
INSERT INTO fixed (a, b) SELECT c, c FROM fixed;
""",
    ),
    (
        ("mariadb",),
        """
CREATE TABLE given (id INT PRIMARY KEY, f DOUBLE, g FLOAT);
INSERT INTO given VALUES (1, 0.1, 0.1), (2, 1.005, 1.005), (3, 1.42857143, -1e0 / 3),
    (4, 1e30, 1e30);
CREATE TABLE fixed (id INT AUTO_INCREMENT PRIMARY KEY, a FLOAT(8,2), b DOUBLE(15,8),
    c DOUBLE(5,0));
INSERT INTO fixed (a, b, c) SELECT f, f, f FROM given;
INSERT INTO fixed (a, b, c) SELECT g, g, g FROM given;
UPDATE fixed SET a = a / 3, b = b * 1.1, c = c + 0.5;
UPDATE fixed SET c = b, a = b;
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE merged (id INT PRIMARY KEY, n INT, c INT DEFAULT 7, v VARCHAR(5) DEFAULT 'd',
    g INT AS (n * 2), d DECIMAL(4,1), h INT INVISIBLE DEFAULT 4, at TIMESTAMP NULL, UNIQUE (v));
INSERT INTO merged (id, n) VALUES (1, 5) AS new;
INSERT INTO merged (id, n) VALUES (1, 6), (2, 7) AS new
    ON DUPLICATE KEY UPDATE c = c + 1, n = new.n;
INSERT INTO merged (id, n) VALUES (1, 6) AS new ON DUPLICATE KEY UPDATE n = merged.n + `New`.N + 1;
INSERT INTO merged (n, id) VALUES (8, 1) AS new(a, b) ON DUPLICATE KEY UPDATE n = n + b + new.a;
INSERT INTO merged (id, n) VALUES (1, 6) AS new(a, b) ON DUPLICATE KEY UPDATE n = VALUES(n) * b;
INSERT INTO merged SET n = 9, id = 1 AS new ON DUPLICATE KEY UPDATE n = new.n + merged.n, h = h + 1;
INSERT INTO merged SET n = 9, id = 1 AS new(x, y) ON DUPLICATE KEY UPDATE n = x - y;
INSERT INTO merged VALUES (1, 2, 3, 'abc', DEFAULT, 9.87, '2026-01-02 03:04:05') AS new
    ON DUPLICATE KEY UPDATE v = new.v, d = new.d + 0.01, c = new.g, at = new.at;
INSERT INTO merged VALUES (1, 2, 3, 'q', DEFAULT, '3.25', NULL) AS new
    ON DUPLICATE KEY UPDATE v = new.d, n = new.d * 100, c = IF(new.at IS NULL, merged.n, new.c);
INSERT INTO merged (id, v) VALUES (5, '3.3'), (6, 'x'), (7, '3.3') AS new
    ON DUPLICATE KEY UPDATE c = IF(new.id > 5, new.id, c);
""",
    ),
    (
        ALL,
        """
CREATE TABLE shapes (id INT PRIMARY KEY, p POINT, l LINESTRING, y POLYGON, mp MULTIPOINT,
    ml MULTILINESTRING, my MULTIPOLYGON, c GEOMETRYCOLLECTION, g GEOMETRY, x DOUBLE, t VARCHAR(60));
INSERT INTO shapes (id, p, g) VALUES (1, ST_GeomFromText('POINT(1 2)'), POINT(-0.1, 1e0 / 3)),
    (2, ST_PointFromText(' point ( 00012 -00.50 ) ', 0), ST_GeometryFromText('POINT(1 1)', 0)),
    (3, POINT(1.5, 2), ST_GeomFromText(NULL)),
    (4, ST_GeomFromText('POINT(0.1 1e2)'), POINT(NULL, 1));
INSERT INTO shapes (id, l, y) VALUES
    (5, ST_LineFromText('LINESTRING ( 0 0 , 1.7976931348623157e308 4.9e-324 )'),
        ST_PolyFromText('Polygon((0 0,5 0,5 5,0 5,0 0),(1 1,1 2,2 2,1 1))')),
    (6, ST_LineStringFromText('LINESTRING(0 0,1 1,-2 1.)'),
        ST_PolygonFromText('POLYGON ( ( 0 0 , 0 5 , 5 5 , 0 0 ) )'));
INSERT INTO shapes (id, mp, ml, my, c, x, t) VALUES (7, ST_MPointFromText('MULTIPOINT(1 1,2 2)'),
    ST_MLineFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))'),
    ST_MPolyFromText('MULTIPOLYGON(((0 0,5 0,5 5,0 5,0 0)),((9 9,9 8,8 8,9 9)))'),
    ST_GeomCollFromText('GEOMETRYCOLLECTION(MULTIPOINT(1 1),POINT(1 2),LINESTRING(0 0,1 1))'), 7.25,
    'POINT(3 123456789012345678901234567890)');
UPDATE shapes SET p = POINT(x, id), g = ST_GeomFromText(t) WHERE id = 7;
UPDATE shapes SET t = HEX(POINT(1, id)) WHERE id < 7;
UPDATE shapes SET l = LINESTRING(POINT(id, 1), POINT(x, 2e0), ST_PointFromText('POINT(-1 0)'));
""",
    ),
    (
        ("9.7",),
        """
CREATE TABLE shapes (id INT PRIMARY KEY, g GEOMETRY SRID 0);
INSERT INTO shapes VALUES (1, ST_GeomFromText('MULTIPOINT((1 1),( 2 2 ))')),
    (2, ST_GeomFromText('GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT(1 2)))', 0));
""",
    ),
    (
        ("5.7", "mariadb"),
        """
CREATE TABLE shapes (id INT PRIMARY KEY, g GEOMETRY);
INSERT INTO shapes VALUES (1, GeomFromText('POINT(1 2)')), (2, PointFromText('POINT(1 2)', 4326)),
    (3, ST_GeomFromText('POINT(1 2)', 4294967295)),
    (4, MPointFromText('MULTIPOINT(1 1)', id * 7 * 0));
""",
    ),
    (
        ALL,
        """
CREATE TABLE bulk (id INT PRIMARY KEY, a BLOB, b VARBINARY(5), c BINARY(4),
    l VARCHAR(20) CHARACTER SET latin1, n INT, d DOUBLE, m DECIMAL(8, 2), t DATETIME(6),
    j TINYINT(1), k DATE, o TIME(3));
INSERT INTO bulk (id) VALUES (1), (2), (3);
UPDATE bulk SET a = CASE bulk.id WHEN 1 THEN X'0008' WHEN 2 THEN 0x4142 END WHERE id IN (1, 2, 3);
UPDATE bulk SET b = CASE WHEN (id = 1) THEN _binary'ab' WHEN (id = 2) THEN 0x00FF ELSE b END;
UPDATE bulk SET c = IF(id = 1, X'31', b), l = COALESCE(NULL, X'414243');
UPDATE bulk SET d = CASE WHEN (id = 1) THEN 1.5e0 WHEN (id = 2) THEN NULL ELSE 2 END;
UPDATE bulk SET l = CASE id WHEN 1 THEN 0.1e0 WHEN 2 THEN 2.25 ELSE 7 END;
UPDATE bulk SET d = CASE id WHEN 1 THEN m WHEN 2 THEN d ELSE 0.1 END;
UPDATE bulk SET m = CASE WHEN (id = 1) THEN 2.50 WHEN (id = 2) THEN 3.755 ELSE NULL END;
UPDATE bulk SET t = CASE WHEN (id = 1) THEN '2024-02-29 12:34:56.789012' ELSE NULL END,
    k = CASE id WHEN 2 THEN '2024-02-29' END, o = CASE id WHEN 3 THEN '-12:34:56.789' END;
UPDATE bulk SET t = CASE id WHEN 2 THEN TIMESTAMP'2024-01-01 00:00:00' ELSE t END,
    j = CASE WHEN (id = 1) THEN TRUE WHEN (id = 2) THEN FALSE ELSE NULL END;
UPDATE bulk SET n = CASE WHEN (id = 1) THEN (n + 1) WHEN (id = 2) THEN -5 ELSE n END;
""",
    ),
    (
        ("9.7", "mariadb"),
        """
CREATE TABLE moments (id INT PRIMARY KEY, a DATE DEFAULT (CURRENT_DATE),
    b DATETIME DEFAULT (UTC_TIMESTAMP()), c BIGINT DEFAULT (UNIX_TIMESTAMP()));
SET time_zone = '+05:00';
SET TIMESTAMP = 1000000000;
INSERT INTO moments (id) VALUES (1);
SET TIMESTAMP = 1100000000;
INSERT INTO moments (id, a) VALUES (2, DEFAULT);
""",
    ),
)


def test_the_rows_are_the_servers(server: Server) -> None:
    equal, different = compared_scripts(server, SCRIPTS, "SET sql_mode = ''")
    assert different == []
    assert equal > 12
