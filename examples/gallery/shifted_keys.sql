-- Unique values that all go down by one: right in the order in which the source did it, and in no other.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (a INT PRIMARY KEY, b INT UNIQUE NOT NULL);
INSERT INTO t1 VALUES (1, 2), (2, 1);
UPDATE t1 SET b = b - 1 WHERE b > 0 ORDER BY b;
