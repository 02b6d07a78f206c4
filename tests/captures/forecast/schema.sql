CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  customer INT UNSIGNED NOT NULL,
  state ENUM('new','paid','sent') NOT NULL,
  amount DECIMAL(10,2) NOT NULL,
  KEY customer (customer)
);
CREATE TABLE audit_log (
  at DATETIME(3) NOT NULL,
  account INT UNSIGNED NOT NULL,
  action VARCHAR(20) NOT NULL,
  detail VARCHAR(60) NOT NULL
);
CREATE TABLE session (
  token CHAR(16) NOT NULL,
  account INT UNSIGNED DEFAULT NULL,
  seen INT UNSIGNED NOT NULL,
  UNIQUE KEY token_of (account),
  KEY seen (seen)
);
