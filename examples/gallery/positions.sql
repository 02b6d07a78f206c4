-- What the consumers of positions.py read: statements that are cut into several rows events, and transactions with two tables.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(600));
CREATE TABLE items (id INT PRIMARY KEY, item INT);
-- log
BEGIN;
INSERT INTO orders VALUES (1, REPEAT('a', 600)), (2, REPEAT('b', 600)), (3, REPEAT('c', 600));
INSERT INTO items VALUES (1, 7);
COMMIT;
INSERT INTO items VALUES (2, 7), (3, 8);
BEGIN;
UPDATE orders SET note = 'paid' WHERE id < 3;
DELETE FROM items WHERE id = 1;
COMMIT;
