"""Transactions of the log as SQL: BINLOG statements, or statements of our own."""
