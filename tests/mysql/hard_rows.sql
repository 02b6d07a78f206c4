-- Rows that are hard to find, for test_sql_hard_rows.py: `-- NAME: VERSIONS`, then what a source carries out, a statement a line.

-- signed zeros: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (f FLOAT, d DOUBLE, g FLOAT(7,2), id INT) ENGINE=InnoDB
INSERT INTO d.t VALUES (0, 0, 0, 1), (-0e0, -0e0, -0e0, 1), (-1e-300, 0, 0, 1), (0, -0e0, 0, 1), (1.1, 1.1, 1.1, 1)
INSERT INTO d.t SELECT * FROM d.t
DELETE FROM d.t WHERE CONCAT(f) = '-0' AND CONCAT(d) = '-0' LIMIT 1
UPDATE d.t SET id = 2 WHERE CONCAT(d) = '0' AND CONCAT(f) = '0' LIMIT 1
UPDATE d.t SET id = 3, g = 5.5 WHERE CONCAT(d) = '-0'
UPDATE d.t SET f = f + 1, d = -d WHERE d = 0

-- keys that are zeros: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (f DOUBLE NOT NULL, id INT, KEY k (f)) ENGINE=InnoDB
INSERT INTO d.t VALUES (0, 1), (-0e0, 1), (0, 1), (-0e0, 1)
DELETE FROM d.t WHERE CONCAT(f) = '0' LIMIT 1
UPDATE d.t SET id = 2 WHERE CONCAT(f) = '-0' LIMIT 1
CREATE TABLE d.p (f DOUBLE PRIMARY KEY, id INT) ENGINE=InnoDB
INSERT INTO d.p VALUES (-0e0, 1), (1e0, 2), (0.1, 3)
UPDATE d.p SET id = id + 1
DELETE FROM d.p WHERE f < 1

-- equal documents: 5.7 9.7
CREATE TABLE d.t (j JSON, id INT) ENGINE=InnoDB
INSERT INTO d.t VALUES ('1', 1), ('1.0', 1), ('{"a": [1]}', 1), ('{"a": [1.0]}', 1), (CAST(CAST(1.0 AS DECIMAL(3,1)) AS JSON), 1)
INSERT INTO d.t SELECT * FROM d.t
DELETE FROM d.t WHERE JSON_TYPE(j) = 'DECIMAL' LIMIT 1
UPDATE d.t SET id = 2 WHERE JSON_TYPE(j) IN ('DECIMAL', 'INTEGER') LIMIT 2
UPDATE d.t SET id = 3 WHERE id = 1

-- documents that only 8.0 and later show: 9.7
CREATE TABLE d.t (j JSON, id INT) ENGINE=InnoDB
INSERT INTO d.t VALUES ('1', 1), ('1.0', 1), ('{"a": [1]}', 1), ('{"a": [1.0]}', 1)
DELETE FROM d.t WHERE JSON_TYPE(j) = 'DOUBLE'
DELETE FROM d.t WHERE JSON_TYPE(JSON_EXTRACT(j, '$.a[0]')) = 'DOUBLE'

-- text: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a VARCHAR(9), b CHAR(5), c TEXT, n INT) ENGINE=InnoDB CHARACTER SET utf8mb4
INSERT INTO d.t VALUES ('a', 'x', 'q', 1), ('A', 'x', 'q', 1), ('a ', 'x', 'q', 1), ('ä', 'X', 'Q', 1), ('a', 'x ', 'q ', 1)
INSERT INTO d.t VALUES ('', '', '', 1), (NULL, '', NULL, 1), ('', NULL, NULL, 1), (NULL, NULL, NULL, 1), ('\0', '\t', '', 1)
INSERT INTO d.t SELECT * FROM d.t
DELETE FROM d.t WHERE BINARY a = 'A' LIMIT 1
UPDATE d.t SET n = 2 WHERE a IS NULL LIMIT 3
UPDATE d.t SET a = UPPER(a), c = CONCAT(c, ' ') WHERE n = 1
DELETE FROM d.t WHERE c IS NULL AND n = 1
CREATE TABLE d.k (a VARCHAR(9), n INT, KEY k (a(2))) ENGINE=InnoDB CHARACTER SET latin1
INSERT INTO d.k VALUES ('abc', 1), ('abC', 1), ('ABC', 1), ('ab', 1), ('ab ', 1), (NULL, 1), ('abc', 1)
DELETE FROM d.k WHERE BINARY a = 'abC'
UPDATE d.k SET n = 2 WHERE BINARY a IN ('ab ', 'ABC') OR a IS NULL
CREATE TABLE d.p (a VARCHAR(9) PRIMARY KEY, n INT) ENGINE=InnoDB CHARACTER SET utf8mb4
INSERT INTO d.p VALUES ('a', 1), ('b', 2), ('c', 3), ('', 4)
UPDATE d.p SET a = UPPER(a), n = n + 1
UPDATE d.p SET n = n + 1
DELETE FROM d.p WHERE a IN ('a', 'B')

-- keys that change places: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a INT PRIMARY KEY, b INT NOT NULL, c INT, UNIQUE KEY u (b)) ENGINE=InnoDB
INSERT INTO d.t VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0), (5, 5, 0)
UPDATE d.t SET a = a + 1 ORDER BY a DESC
UPDATE d.t SET b = b - 1 ORDER BY b
UPDATE d.t SET a = 100 - a, c = a ORDER BY a DESC
UPDATE d.t SET c = a
DELETE FROM d.t WHERE a > 96 ORDER BY b DESC
CREATE TABLE d.s (a INT NOT NULL, b INT, UNIQUE KEY u (b)) ENGINE=InnoDB
INSERT INTO d.s VALUES (1, NULL), (1, NULL), (1, 5), (1, 6)
UPDATE d.s SET b = b + 10 WHERE b IS NOT NULL
UPDATE d.s SET b = 1 LIMIT 1
DELETE FROM d.s WHERE b IS NULL

-- big numbers: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a BIGINT UNSIGNED PRIMARY KEY, b BIGINT, c BIT(64), d DECIMAL(65,30), e SET('a','b'), y YEAR, u INT UNSIGNED) ENGINE=InnoDB
INSERT INTO d.t VALUES (0, -9223372036854775808, b'0', 0, '', 0, 0), (18446744073709551615, 9223372036854775807, 18446744073709551615, -99999999999999999999999999999999999.999999999999999999999999999999, 'a,b', 2155, 4294967295)
INSERT INTO d.t VALUES (9223372036854775808, 1, 9223372036854775808, 0.1, 'b', 1901, 2147483648), (5, 5, 5, 5, 'a', 2000, 5)
UPDATE d.t SET d = -d, y = IF(y = 0, 2000, y)
UPDATE d.t SET c = c ^ 1, u = u ^ 1, e = IF(e = '', 'a', ''), b = -1 - b
CREATE TABLE d.k AS SELECT * FROM d.t
UPDATE d.k SET c = c ^ 1, a = a ^ 1, u = u ^ 1, y = 0
DELETE FROM d.k WHERE a > 5
DELETE FROM d.t WHERE a > 0

-- times: 5.6 5.7 9.7 mariadb
SET sql_mode = 'ALLOW_INVALID_DATES'
CREATE TABLE d.t (a DATE, b DATETIME(3), c TIME(6), e TIMESTAMP NULL, y YEAR, n INT) ENGINE=InnoDB
INSERT INTO d.t VALUES (0, 0, 0, 0, 0, 1), ('2024-02-30', '2024-02-30 01:02:03.004', '-838:59:59', '2001-01-01', 2000, 1), ('2024-00-00', NULL, '-00:00:00.000001', NULL, NULL, 1), ('9999-12-31', '0001-01-01', '00:00:00.1', '2037-01-01', 1970, 1)
INSERT INTO d.t SELECT * FROM d.t
UPDATE d.t SET n = 2 LIMIT 3
DELETE FROM d.t WHERE n = 1
CREATE TABLE d.p (a DATE NOT NULL, b TIME(2) NOT NULL, n INT, PRIMARY KEY (a, b)) ENGINE=InnoDB
INSERT INTO d.p VALUES (0, 0, 1), ('2024-02-30', '-1:00:00.01', 1), ('2024-02-30', '1:00:00.01', 1), ('2024-00-00', 0, 1)
UPDATE d.p SET n = n + 1
DELETE FROM d.p WHERE b < 0

-- some columns only: 5.6 5.7 9.7 mariadb
SET binlog_row_image = 'MINIMAL'
CREATE TABLE d.t (a INT PRIMARY KEY, b INT DEFAULT 7, c TEXT, s TIMESTAMP NOT NULL DEFAULT '2001-01-01' ON UPDATE CURRENT_TIMESTAMP, n INT NOT NULL, UNIQUE KEY u (n)) ENGINE=InnoDB
INSERT INTO d.t (a, c, n) VALUES (1, 'x', 1), (2, 'y', 2), (3, NULL, 3)
UPDATE d.t SET b = b + a
UPDATE d.t SET n = n + 10, s = s
UPDATE d.t SET c = 'z', s = '2002-02-02' WHERE a < 3
DELETE FROM d.t WHERE a > 1
CREATE TABLE d.k (a INT, b INT, c TEXT, KEY k (b)) ENGINE=InnoDB
INSERT INTO d.k VALUES (1, 1, 'x'), (1, 1, 'x'), (1, 2, NULL)
UPDATE d.k SET c = 'q' WHERE b = 1 LIMIT 1
SET binlog_row_image = 'NOBLOB'
UPDATE d.t SET b = 1
UPDATE d.k SET b = 9 WHERE b = 2
UPDATE d.k SET a = NULL, c = 'w' LIMIT 1
DELETE FROM d.k LIMIT 1

-- references: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a INT PRIMARY KEY, up INT, FOREIGN KEY f (up) REFERENCES d.t (a)) ENGINE=InnoDB
INSERT INTO d.t VALUES (1, NULL), (2, 1), (3, 2), (4, 3)
DELETE FROM d.t WHERE a > 1 ORDER BY a DESC
CREATE TABLE d.c (a INT PRIMARY KEY, up INT, FOREIGN KEY g (up) REFERENCES d.t (a) ON DELETE CASCADE ON UPDATE CASCADE) ENGINE=InnoDB
INSERT INTO d.c VALUES (10, 1), (11, 1), (12, NULL)
UPDATE d.t SET a = 5
INSERT INTO d.t VALUES (6, 5)
INSERT INTO d.c VALUES (13, 6)
DELETE FROM d.t ORDER BY a DESC
SET foreign_key_checks = 0
INSERT INTO d.c VALUES (14, 99)
UPDATE d.c SET up = 98 WHERE a = 14

-- triggers: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB
CREATE TABLE d.log (a INT, b INT) ENGINE=InnoDB
INSERT INTO d.t VALUES (1, 1), (2, 2)
CREATE TRIGGER d.tr AFTER UPDATE ON d.t FOR EACH ROW INSERT INTO d.log VALUES (NEW.a, NEW.b)
CREATE TRIGGER d.ti BEFORE INSERT ON d.t FOR EACH ROW SET NEW.b = NEW.b + 1
UPDATE d.t SET b = b + 10
INSERT INTO d.t VALUES (3, 3), (4, 4)
DELETE FROM d.log WHERE a = 1

-- prefixes: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a VARCHAR(20) NOT NULL, b BLOB NOT NULL, n INT, UNIQUE KEY u (a(3), b(2))) ENGINE=InnoDB CHARACTER SET latin1
INSERT INTO d.t VALUES ('abcdef', X'010203', 1), ('abcdef', X'0202', 1), ('abdx', '', 1)
UPDATE d.t SET n = n + 1
UPDATE d.t SET a = CONCAT(a, '!')
DELETE FROM d.t WHERE b = ''

-- constraints that were off: mariadb
CREATE TABLE d.t (a INT PRIMARY KEY, b INT CHECK (b < 10)) ENGINE=InnoDB
INSERT INTO d.t VALUES (1, 1)
SET check_constraint_checks = 0
INSERT INTO d.t VALUES (2, 20)
UPDATE d.t SET b = b + 50
SET check_constraint_checks = 1
DELETE FROM d.t WHERE a = 1

-- rows of millions of bytes: 5.6 5.7 9.7 mariadb
CREATE TABLE d.t (a INT PRIMARY KEY, b LONGBLOB, c LONGTEXT) ENGINE=InnoDB CHARACTER SET utf8mb4
INSERT INTO d.t VALUES (1, REPEAT('x', 900000), REPEAT('y', 400000)), (2, '', REPEAT('z', 900000)), (3, '', '')
UPDATE d.t SET b = CONCAT(b, 'x'), c = CONCAT(c, 'z')
DELETE FROM d.t WHERE a = 1

-- numbers at the end of a FLOAT(M,D): 5.7 9.7 mariadb
CREATE TABLE d.t (a FLOAT(10,5), b FLOAT(20,2), c DOUBLE(8,3), id INT) ENGINE=InnoDB
INSERT INTO d.t VALUES (99999.99999, 999999999999999999.99, 99999.999, 1), (-99999.99999, -1, -99999.999, 2), (99999.99999, 1, 1, 3)
UPDATE d.t SET id = id + 10 WHERE id <> 2
DELETE FROM d.t WHERE id = 2
UPDATE d.t SET a = 1.5 WHERE id = 13
