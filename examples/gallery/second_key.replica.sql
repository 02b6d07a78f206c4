CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (id INT NOT NULL, state INT NOT NULL, row_no INT NOT NULL AUTO_INCREMENT PRIMARY KEY, UNIQUE KEY id (id));
INSERT INTO t1 (id, state) VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0);
