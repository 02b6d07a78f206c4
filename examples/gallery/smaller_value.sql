-- A key value that goes down and then up within one rows event: a stored function changes the row twice.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (a INT, KEY a (a));
INSERT INTO t1 VALUES (5);
SET GLOBAL log_bin_trust_function_creators = 1;
CREATE FUNCTION twice() RETURNS INT BEGIN UPDATE t1 SET a = 3 WHERE a = 5; UPDATE t1 SET a = 7 WHERE a = 3; RETURN 0; END;
SELECT twice();
