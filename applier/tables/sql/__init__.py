"""The text of SQL: tokens, quotes, modes, and the names that a statement touches."""
