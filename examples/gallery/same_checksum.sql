-- Two rows with the same CRC32 (the values are those of bug #101828); the second one changes.
CREATE DATABASE gallery;
USE gallery;
CREATE TABLE t1 (a BIGINT UNSIGNED NOT NULL, b BIGINT UNSIGNED NOT NULL);
INSERT INTO t1 VALUES (0xa8e8ee744ced7ca8, 0x6850119e455ee4ed), (0x135cd25c170db910, 0x6916c5057592c796);
UPDATE t1 SET a = 1 WHERE a = 0x135cd25c170db910 AND b = 0x6916c5057592c796;
DELETE FROM t1 WHERE a = 0xa8e8ee744ced7ca8;
