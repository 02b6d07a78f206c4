-- One row replaced twice by one statement: both before images are in one rows event.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (a INT UNIQUE, b INT);
INSERT INTO t1 VALUES (1, 2);
REPLACE INTO t1 VALUES (1, 3), (1, 4);
