"""Statement-format DML: INSERT, UPDATE, DELETE, LOAD DATA, and the rows that they name."""
