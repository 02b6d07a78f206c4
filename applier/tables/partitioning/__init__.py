"""Partitions: which rows stand where, and what ALTER TABLE does to them."""
