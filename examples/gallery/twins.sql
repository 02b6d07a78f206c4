-- Equal rows that one statement makes different; then a key numbers them, and what the key points at is deleted.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (c1 INT, c2 INT);
INSERT INTO t1 VALUES (1, 1), (1, 1), (1, 1);
SET @n := 4;
UPDATE t1 SET c2 = (@n := @n + 1);
ALTER TABLE t1 ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY, ADD UNIQUE KEY c2 (c2);
DELETE FROM t1 WHERE c2 = 5;
INSERT INTO t1 (c1, c2) VALUES (1, 5);
