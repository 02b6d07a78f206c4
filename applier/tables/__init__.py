"""The in-memory storage engine and the DDL that shapes it."""
