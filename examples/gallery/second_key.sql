-- The source's primary key is a second unique key on the replica (second_key.replica.sql).
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (id INT NOT NULL PRIMARY KEY, state INT NOT NULL);
INSERT INTO t1 VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0);
-- log
UPDATE t1 SET state = 1 WHERE id > 6;
