"""Statements that put functions, operators, casts and columns to the test: one INSERT a case, each
with values of its own.

What a server refuses is not in its log; what the replay refuses leaves its row out. Neither may be
another value.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping

from applier.tables.expressions.expression_parser import EXACT_FUNCTIONS

COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "i": ("INT", ("5", "-7", "0", "2147483647", "NULL")),
    "u": ("BIGINT UNSIGNED", ("3", "18446744073709551615", "0", "12", "NULL")),
    "n": ("DECIMAL(12,3)", ("2.500", "-1.005", "0.000", "99999.125", "NULL")),
    "d": ("DOUBLE", ("1.5", "-2.5", "0", "12345.678", "NULL")),
    "f": ("FLOAT", ("1.5", "1.1", "0", "-3.25", "NULL")),
    "v": ("VARCHAR(30)", ("'abc'", "'ABC '", "''", "'12x'", "NULL")),
    "l": ("VARCHAR(30) CHARACTER SET latin1", ("'abc'", "'\u00e9'", "' 7'", "'B'", "NULL")),
    "x": ("VARBINARY(30)", ("'abc'", "0x00FF", "''", "'7'", "NULL")),
    "c": ("CHAR(5)", ("'ab'", "'x  '", "''", "'7'", "NULL")),
    "da": ("DATE", ("'2024-02-29'", "'1999-12-31'", "'0000-00-00'", "'2000-00-10'", "NULL")),
    "dt": ("DATETIME(3)",
           ("'2024-02-29 12:34:56.789'", "'1999-12-31 23:59:59'", "'0000-00-00'", "'2001-01-01'",
            "NULL")),
    "ts": ("TIMESTAMP NULL",
           ("'2024-02-29 12:34:56'", "'1999-12-31 23:59:59'", "'0000-00-00'", "'2001-01-01'",
            "NULL")),
    "ti": ("TIME(1)", ("'12:34:56.5'", "'-01:02:03'", "'00:00:00'", "'838:59:59'", "NULL")),
    "y": ("YEAR", ("2024", "1999", "0", "2001", "NULL")),
    "e": ("ENUM('a','b','C')", ("'a'", "'b'", "'C'", "2", "NULL")),
    "s": ("SET('a','b','C')", ("'a'", "'b,C'", "''", "3", "NULL")),
    "b": ("BIT(9)", ("5", "0", "511", "b'101'", "NULL")),
}  # fmt: skip
LITERALS = (
    "NULL", "0", "1", "-1", "7", "255", "2.5", "-2.55", "1.5e0", "100000000000000000000",
    "18446744073709551615", "-9223372036854775808", "''", "'abc'", "'ABC '", "' x'", "'12abc'",
    "'-5'", "'2.7'", "'\u00e9'", "'a\\'b'", "0x41", "x'C3A9'", "b'1001'", "_latin1'abc'",
    "_latin1 0xE9", "_binary'ab'", "N'nat'", "TRUE", "DATE'2024-02-29'",
    "TIMESTAMP'2024-02-29 12:34:56.789'", "TIME'-12:34:56'", "'2024-02-29'",
    "'2001-02-03 04:05:06'", "'10:11:12'", "'10:11'", "'a' COLLATE utf8mb4_bin", "'%b%'", "'a_c'",
    "4", "3",
)  # fmt: skip
COMPUTED = "(n - n)", "(n * 2)", "(n % n)", "(i - 5)", "(-d)", "(NULL - n)", "0.00"
"""Arguments that show the types of operators, and the digits and signs of a zero."""
OPERATORS = "+ - * / DIV % MOD & | ^ << >> = <> < <= > >= <=> AND OR XOR LIKE && ||".split()
UNARY = (
    "-{}",
    "~{}",
    "!{}",
    "NOT {}",
    "{} IS NULL",
    "{} IS NOT TRUE",
    "{} IS UNKNOWN",
    "BINARY {}",
)
CASTS = (
    "SIGNED",
    "UNSIGNED",
    "CHAR",
    "CHAR(2)",
    "BINARY",
    "DECIMAL(10,2)",
    "DECIMAL",
    "DATE",
    "DATETIME",
    "DATETIME(3)",
    "TIME",
    "DOUBLE",
)
SHAPES = (
    "IF({}, {}, {})", "CASE {} WHEN {} THEN {} ELSE 9 END", "CASE WHEN {} THEN {} ELSE {} END",
    "{} BETWEEN {} AND {}", "{} IN ({}, {})", "{} NOT IN ({}, NULL, {})",
    "TRIM(LEADING {} FROM {})", "TRIM(BOTH {} FROM {})", "SUBSTRING({} FROM {} FOR {})",
    "POSITION({} IN {})", "EXTRACT(YEAR FROM {})", "EXTRACT(SECOND FROM {})",
    "{} + INTERVAL {} DAY", "{} - INTERVAL {} MONTH", "DATE_ADD({}, INTERVAL {} SECOND)",
    "DATE_SUB({}, INTERVAL {} YEAR)", "ADDDATE({}, {})", "NOT {} = {}", "{} + {} * {}",
    "{} = {} = {}", "-{} % {}", "{} LIKE {} ESCAPE '|'", "{} COLLATE utf8mb4_bin = {}",
    "{} - {} - {}", "{} || {}", "TIMESTAMPDIFF(MONTH, {}, {})", "TIMESTAMPDIFF(SECOND, {}, {})",
    "TIMESTAMPADD(QUARTER, {}, {})", "NAME_CONST('n', {})", "DEFAULT({})",
)  # fmt: skip


def expressions(seed: int, each: int) -> Iterator[str]:
    """All of the table of functions, of operators, casts and other shapes, with arguments drawn by
    chance."""
    random_ = random.Random(seed)
    arguments = [*LITERALS, *COLUMNS, *COMPUTED]
    for name, function in sorted(EXACT_FUNCTIONS.items()):
        for count in range(function.least, min(function.most, function.least + 2, 4) + 1):
            if count == 1:
                yield from (f"{name}({argument})" for argument in arguments)
            else:
                for _ in range(each if count else 1):
                    yield f"{name}({', '.join(random_.choices(arguments, k=count))})"
    for kind, argument in itertools.product(CASTS, arguments):
        yield f"CAST({argument} AS {kind})"
    for shape, argument in itertools.product(UNARY, arguments):
        yield shape.format(argument)
    for operator in OPERATORS:
        for _ in range(each * 2):
            one, two = random_.choices(arguments, k=2)
            yield f"{one} {operator} {two}"
    for shape in SHAPES:
        for _ in range(each * 2):
            yield shape.format(*random_.choices(arguments, k=shape.count("{}")))


def statements(seed: int = 1, each: int = 30) -> Iterator[str]:
    """The matrix as statements; the row with id N is that of the case N."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    for table, kind in (("texts", "LONGTEXT COLLATE utf8mb4_bin"), ("numbers", "DECIMAL(60,12)")):
        yield f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns}, r {kind})"
    yield "START TRANSACTION"
    names = ", ".join(COLUMNS)
    for at, expression in enumerate(expressions(seed, each)):
        values = ", ".join(choices[at % 5] for _, choices in COLUMNS.values())
        table = "numbers" if at % 4 == 3 else "texts"
        yield f"INSERT INTO {table} (id, {names}, r) VALUES ({at}, {values}, {expression})"
    yield "COMMIT"


STORED = (
    "TINYINT", "TINYINT UNSIGNED", "SMALLINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED",
    "DECIMAL(5,2)", "DECIMAL(10,0) UNSIGNED", "FLOAT", "DOUBLE", "DOUBLE UNSIGNED", "CHAR(3)",
    "VARCHAR(3)", "VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "TEXT",
    "VARCHAR(5) CHARACTER SET ucs2", "CHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "BINARY(4)", "VARBINARY(3)", "BLOB", "DATE", "DATETIME", "DATETIME(2)", "TIMESTAMP NULL",
    "TIMESTAMP(3) NULL", "TIME", "TIME(2)", "YEAR", "BIT(1)", "BIT(9)", "BIT(64)",
    "ENUM('a','b','12')", "ENUM('x','A') CHARACTER SET latin1 COLLATE latin1_bin",
    "SET('a','b','c')", "JSON", "INT NOT NULL",
    "VARCHAR(3) NOT NULL", "DATE NOT NULL", "DATETIME NOT NULL", "ENUM('p','q') NOT NULL",
)  # fmt: skip
OTHERS = (
    "'2024-02-30'", "'2024-00-10'", "'0000-00-00'", "20240229", "20240229123456",
    "'2024-02-29 12:34:56.987654'", "'12:34:56.987'", "128", "-129", "99999999999", "1e30", "-1.5",
    "0.5", "1.5", "2.5", "0.5e0", "1.5e0", "2.5e0", "1e-5", "'1e2'", "'abcdef'", "'ab   '", "'a,b'",
    "'B'", "'[1, 2]'", "'{\"a\": 1.50}'", "'x'", "0xFF", "0x", "70", "69", "2155", "'70'", "'0'",
    "0.1", "123456.789", "'\u0436'", "'5 '", "' 5'", "'2038-01-19 03:14:08'",
    "'1970-01-01 00:00:00'", "NOW()", "CURDATE()", "CURTIME()", "NOW(6)", "'2000-1-1'",
    "'98-12-31 11:30:45'", "'00:03'", "'1:23'", "'2004-0-31'", "'99:99:99'",
    "'2000-12-31 23:59:59.9999999'", "'2008-09-27T00:34'", "'10 11:12:13'", "'-1:2:3.5'",
    "'20240229'", "'240229'", "'1980-10-14 03:03'", "'2003.04.01'", "240229", "991231", "101112",
    "'2024-02-29x'", "'12:34:56x'", "'2024-02-29 25:00:00'", "'11:12'", "'1112'", "'2024-02-29 12'",
    "10", "-5",
)  # fmt: skip


def stores() -> Iterator[str]:
    """Each literal into each type of column."""
    for at, kind in enumerate(STORED):
        yield f"CREATE TABLE s{at} (id INT PRIMARY KEY, c {kind})"
    yield "START TRANSACTION"
    for (at, _), (number, value) in itertools.product(
        enumerate(STORED), enumerate((*LITERALS, *OTHERS))
    ):
        yield f"INSERT INTO s{at} VALUES ({number}, {value})"
        yield f"INSERT INTO s{at} VALUES ({number} + 1000, {value}), ({number} + 2000, {value})"
    yield "COMMIT"
