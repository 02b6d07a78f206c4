"""sql_mode as a QUERY event carries it (sql/system_variables.h 9.7, sql/sql_class.h of MariaDB
10.11)."""

from __future__ import annotations

from enum import IntFlag


class SqlModeFlag(IntFlag):
    """The modes that change what a statement does to rows. MySQL and MariaDB give bit 32 and above
    different meanings."""

    REAL_AS_FLOAT = 1 << 0
    PIPES_AS_CONCAT = 1 << 1
    ANSI_QUOTES = 1 << 2
    NO_UNSIGNED_SUBTRACTION = 1 << 6
    ORACLE = 1 << 9
    MAXDB = 1 << 12
    NO_AUTO_VALUE_ON_ZERO = 1 << 19
    NO_BACKSLASH_ESCAPES = 1 << 20
    STRICT_TRANS_TABLES = 1 << 21
    STRICT_ALL_TABLES = 1 << 22
    NO_ZERO_IN_DATE = 1 << 23
    NO_ZERO_DATE = 1 << 24
    ALLOW_INVALID_DATES = 1 << 25
    ERROR_FOR_DIVISION_BY_ZERO = 1 << 26
    HIGH_NOT_PRECEDENCE = 1 << 29
    NO_ENGINE_SUBSTITUTION = 1 << 30
    PAD_CHAR_TO_FULL_LENGTH = 1 << 31
    TIME_TRUNCATE_FRACTIONAL = 1 << 32
    """MySQL 8.0 and later."""
    EMPTY_STRING_IS_NULL = 1 << 32
    """MariaDB."""
    INTERPRET_UTF8_AS_UTF8MB4 = 1 << 33
    """MySQL 9.x."""
    SIMULTANEOUS_ASSIGNMENT = 1 << 33
    """MariaDB."""
    TIME_ROUND_FRACTIONAL = 1 << 34
    """MariaDB."""
    STRICT = STRICT_TRANS_TABLES | STRICT_ALL_TABLES


NO_MODES = SqlModeFlag(0)
