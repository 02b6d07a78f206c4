-- One row updated to another value and back by one statement: two equal before images in one rows event.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (id INT, test VARCHAR(255) DEFAULT 'hallo', UNIQUE KEY id (id));
INSERT INTO t1 VALUES (1, 'foo'), (2, 'test'), (3, 'lorem');
INSERT INTO t1 VALUES (1, 'test'), (1, 'foo'), (1, 'bar') ON DUPLICATE KEY UPDATE test = VALUES(test);
