"""Values of every type, to be converted by one ALTER TABLE each into every type that the table of
conversions has for them."""

from __future__ import annotations

from collections.abc import Sequence

from applier.tables.conversions.column_conversion import ROUTES
from applier.tables.conversions.conversion_rules import FAMILIES

Type = tuple[str, Sequence[str]]
INTEGERS = """
    0 1 -1 2 12 59 60 69 70 99 100 101 127 128 255 256 1900 1901 2000 2155 2156 32767 32768 65535
    65536 101112 236060
""".split()
LARGE = """
    8388607 8388608 16777215 16777216 8385959 8385960 2147483647 2147483648 4294967295 4294967296
    20010203 20010230 20011303 10203 20010203040506 20010203046006 10203040506 99991231235959
    20380119031408 9007199254740993 9223372036854775807 -128 -129 -32769 -8388609 -2147483648
    -2147483649 -9223372036854775808 18446744073709551615 -101112 1000000 13
""".split()
FRACTIONS = """
    0.5 1.5 2.5 -0.5 -1.5 -2.5 0.0005 0.1 0.999 99.995 1234.5678 -1234.5678 20010203.7 101112.9
    101112.4567895 236059.9999996
""".split()
HUGE = """
    1e10 123456789012 1e15 1e17 9.2233720368547e18 1.8446744073709552e19 1e20 -1e20 3.4e38 1e38 1e-7
    1.175e-38 0.3 -0.0 16777217
""".split()
WIDE = """
    1e39 -1e39 1e100 1.7976931348623157e308 -1.7976931348623157e308 2.2250738585072014e-308 1e-300
    0.1234567890123456789
""".split()
DATES = """
    0000-00-00 2001-00-00 2001-02-00 1000-01-01 1901-01-01 1969-12-31 1970-01-01 1999-12-31
    2000-01-01 2024-02-29 2038-01-19 9999-12-31 2155-01-01 2156-01-01 0001-01-01 0070-01-01
""".split()
CLOCKS = """
    00:00:00 00:00:01 03:14:07 03:14:08 10:11:12 10:11:12.4 10:11:12.5 23:59:59.999999
    23:59:59.4999995 12:34:56.789012
""".split()
TIMES = """
    00:00:00 00:00:01 -00:00:01 00:00:00.5 -00:00:00.5 10:11:12 10:11:12.5 -10:11:12.4
    23:59:59.999999 24:00:00 25:01:02 100:00:00 838:59:59 -838:59:59 838:59:58.9 01:00:00.123456
    00:20:01
""".split()
TEXTS = [
    "", "x", "abc", "12", "12abc", " 12 ", "-1", "+5", "1e3", "1.5", "2.5", "-2.5", ".5", "5.",
    "1e", "1e400",
    "-1e400", "0x10", "99999999999999999999", "-99999999999999999999", "18446744073709551615",
    "9223372036854775808", "2001-02-03", "2001-02-30", "2001-02-31 01:02:03", "2001-00-00",
    "0000-00-00",
    "2001-02-03 04:05:06", "2001-02-03 04:05:06.789", "2001-02-03T04:05:06", "2001-02-03 04:05",
    "2001-02-03 4", "2001-2-3", "01-2-3", "70-01-01", "69-01-01", "20010203", "010203",
    "20010203040506", "010203040506", "2001/02/03", "2001.02.03", "2001-02-03 24:00:00",
    "2001-02-03 23:60:00", "2001-13-01", "2001-02-03x", "2001-02-03 04:05:06x", "10:11:12",
    "10:11:12.9999999", "10:11", "-10:11:12", "1 10:11:12", "101112", "1011", "838:59:59",
    "839:00:00", "-900:00:00", "10:61:00", "10:11:12x", "a", "b", "a,b", "b,a", "A", "B ", "a,zz",
    "zz", "é", "1", "2", "3", "4", "7", "0", "00", "0000", "1999", "69", "70", "99", "100", "1900",
    "1901", "2155", "2156", "2012.5", "true", '{"k": [1, 1.0, "x"]}', "[1, 2]", '"text"', "null",
    "1.0", "1e2", "20 ", '\t7', '7\t', "12.5e1x", "1,5", "--1", "- 1", "1 2", "99.9999",
    "123456789",
    "12345678901234567890123456789012345", "9999-12-31 23:59:59.9999999", "1969-12-31 23:59:59",
    "1970-01-01 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07.6", "2038-01-19 03:14:08",
]  # fmt: skip
LETTERS = [
    "😀", "a😀b", "é", "ñandú", "Ω", "日本", "€", "ß", "ÿ", "Ж",
]  # fmt: skip
BYTES = [
    "", "61", "00", "3132", "ff", "c3a9", "6100", "612c62", "e29c", "32303031", "313a31", "20",
    "3939393939393939", "0001", "80", "f09f9880",
]  # fmt: skip
LABELS = [
    "a", "b", "12", "c",
]  # fmt: skip
DOCUMENTS = [
    "null", "1", "0", "-1", "1.0", "1.5", "2.5", "1e20", "300", "18446744073709551615",
    "9223372036854775807", "-9223372036854775808", "true", "false", '"a"', '"b"', '"12"', '"12abc"',
    '"2001-02-03"', '"10:11:12"', '"a,b"', '""', '"é"', '"😀"', "[]", "[1]", "{}", '{"a":1}',
    '{"a":[1,1.0,"x"]}', "1234.5678", "1e-7",
    '"2001-02-03\\u0020"', "99.9999", "101112", "20010203", "2001",
]  # fmt: skip


def _quoted(values: Sequence[str]) -> list[str]:
    return ["'" + value.replace("\\", "\\\\").replace("'", "''") + "'" for value in values]


def _moments(days: Sequence[str], clocks: Sequence[str]) -> list[str]:
    return _quoted([f"{day} {clock}" for day in days for clock in clocks])


def sources(flavour: str) -> list[Type]:
    """(type, literals of its values)"""
    moments = _moments(DATES, CLOCKS[::3]) + _moments(["2038-01-19"], CLOCKS)
    stamps = [
        *_moments(["1970-01-01", "2001-02-03", "2024-10-27"], CLOCKS[1:]),
        "'0000-00-00'",
        "'2038-01-19 03:14:07'",
    ]
    times, dates, texts = _quoted(TIMES), _quoted(DATES), _quoted(TEXTS)
    hexes = [f"x'{value}'" for value in BYTES]
    integers = [
        f"{kind}{sign}"
        for kind in ("tinyint", "smallint", "mediumint", "int", "bigint")
        for sign in ("", " unsigned")
    ]
    found: list[Type] = [
        *((kind, [*INTEGERS, *LARGE]) for kind in integers),
        ("int(6) zerofill", INTEGERS),
        ("decimal(20,0)", [*INTEGERS, *LARGE]),
        ("decimal(10,3)", [*INTEGERS, *FRACTIONS]),
        ("decimal(30,8) unsigned", [*LARGE, *FRACTIONS]),
        ("decimal(65,0)", [*LARGE, "1e50", "-1e50", "1e64"]),
        ("decimal(8,3) zerofill", ["0", "1.5", "12345.678"]),
        ("float", [*INTEGERS, *FRACTIONS, *HUGE]),
        ("double", [*LARGE, *FRACTIONS, *HUGE, *WIDE]),
        ("float(7,3)", FRACTIONS),
        ("double(12,4)", [*INTEGERS, *FRACTIONS]),
        ("float unsigned", FRACTIONS),
        ("double unsigned", [*FRACTIONS, *HUGE]),
        ("bit(1)", ["0", "1"]),
        ("bit(9)", ["0", "1", "97", "256", "511"]),
        ("bit(64)", ["0", "1", "12", "101112", "9223372036854775808", "18446744073709551615"]),
        ("year", ["0", "1901", "1970", "1999", "2000", "2069", "2155"]),
        ("date", dates),
        *((kind, times) for kind in ("time", "time(3)", "time(6)")),
        *((kind, moments) for kind in ("datetime", "datetime(3)", "datetime(6)")),
        *((kind, stamps) for kind in ("timestamp NULL", "timestamp(6) NULL")),
        ("varchar(40) charset latin1", [*texts, *_quoted(LETTERS[2:4])]),
        ("varchar(40) charset utf8mb4", [*texts, *_quoted(LETTERS)]),
        ("char(36) charset utf8mb4", [*texts[:40], *_quoted(LETTERS)]),
        ("varchar(40) charset ucs2", [*texts[:60], *_quoted(LETTERS)]),
        ("text charset utf8mb3", [*texts[:30], *_quoted(LETTERS[2:])]),
        ("longtext charset utf8mb4", [*texts[::3], *_quoted(LETTERS)]),
        ("varchar(40) charset cp1251", [*texts[::5], "'Ж'", "'€'"]),
        ("varchar(10) charset gbk", ["'日本'", "'a'", "'12'"]),
        ("varbinary(20)", [*hexes, *texts[:30]]),
        ("binary(6)", hexes),
        ("blob", [*hexes, *texts[:70]]),
        ("enum('a','b','12','c') charset utf8mb4", [*_quoted(LABELS), "''"]),
        ("enum('é','ß','a') charset latin1", ["'é'", "'a'", "'ß'"]),
        ("set('a','b','c') charset utf8mb4", ["''", "'a'", "'b'", "'c'", "'a,b'", "'a,b,c'"]),
        ("set('x','12','a') charset utf8mb4", ["'x'", "'12'", "'x,a'"]),
    ]
    return found if flavour == "mariadb" else [*found, ("json", _quoted(DOCUMENTS))]


OTHER_TARGETS = [
    "int unsigned zerofill", "decimal(5,2)", "decimal(5,2) unsigned", "decimal(65,30)",
    "float(10,2)", "double(5,1)", "bit(4)", "bit(33)", "timestamp(3) NULL",
    "char(3) charset latin1", "varchar(5) charset utf8mb3", "varchar(12) charset utf16",
    "tinytext charset latin1", "mediumtext charset utf8mb4", "tinyblob", "varbinary(5)",
    "binary(3)", "set('b') charset utf8mb4", "enum('b','x') charset utf8mb4",
    "enum('1','2','é') charset latin1", "enum('2001','1999','2000-01-01') charset utf8mb4",
    "longblob", "varchar(30) charset ascii", "int NOT NULL",
    "varchar(40) charset utf8mb4 NOT NULL", "datetime NOT NULL", "timestamp NOT NULL",
    "enum('b','a') NOT NULL",
    "decimal(9,2) NOT NULL", "date NOT NULL", "bit(8) NOT NULL", "blob NOT NULL",
]  # fmt: skip


def family(kind: str) -> str:
    """The family of a type as SQL writes it."""
    return FAMILIES[kind.partition("(")[0].split()[0]]


def statements(flavour: str) -> list[str]:
    """A table for each type, filled and altered. Text that becomes JSON is left out: most of it is
    none."""
    made = []
    kinds = [kind for kind, _ in sources(flavour)] + OTHER_TARGETS
    engine = "MyISAM" if flavour == "mariadb" else "InnoDB"
    for number, (source, literals) in enumerate(sources(flavour)):
        wanted = [
            kind
            for kind in kinds
            if (family(source), family(kind)) in ROUTES[flavour]
            and (family(kind) != "json" or family(source) == "json")
        ]
        columns = ", ".join(f"c{at} {source}" for at in range(len(wanted)))
        rows = ", ".join(
            f"({row}{f', {literal}' * len(wanted)})"
            for row, literal in enumerate(["NULL", *literals], 1)
        )
        changes = ", ".join(f"MODIFY c{at} {kind}" for at, kind in enumerate(wanted))
        made += [
            f"CREATE TABLE m{number} (id INT, {columns}) ENGINE={engine}",
            f"INSERT INTO m{number} VALUES {rows}",
            f"ALTER TABLE m{number} {changes}",
        ]
    return made
