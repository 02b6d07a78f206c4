"""The session of a dump: what its SET statements say, as far as rows or definitions hang on it.

mysqldump saves a variable in @OLD_…, sets it, and puts it back at the end; both are followed.
Variables that change no row are kept too, since a later statement may put them back, and are never
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from applier.binlog.charsets import ALIASES, CHARSETS
from applier.error_codes import Code
from applier.errors import InputError
from applier.tables.sql.sql_mode_flags import SqlModeFlag
from applier.tables.sql.sql_text import Lexis, Parser

DEFAULTS: dict[str, Any] = {
    "foreign_key_checks": 1,
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "sql_mode": "",
    "time_zone": "SYSTEM",
}
COMBINED_MODES = {
    "ANSI": (
        "REAL_AS_FLOAT",
        "PIPES_AS_CONCAT",
        "ANSI_QUOTES",
        "IGNORE_SPACE",
        "ONLY_FULL_GROUP_BY",
    ),
    "DB2": ("PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"),
    "MAXDB": ("PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"),
    "MSSQL": ("PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"),
    "ORACLE": ("PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"),
    "POSTGRESQL": ("PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"),
}
"""Modes that stand for others (sql/sys_vars.cc, `expand_sql_mode`); --compatible of mysqldump sets
one of them."""
UNSAFE_CLIENTS = frozenset({"big5", "cp932", "gbk", "sjis", "gb18030"})
"""Character sets whose second byte may be a backslash or a quote: bytes cannot be cut into
statements without decoding them."""
_SCOPES = ("GLOBAL", "SESSION", "LOCAL", "PERSIST", "PERSIST_ONLY")
_NOT_VARIABLES = ("TRANSACTION", "PASSWORD", "ROLE", "DEFAULT", "RESOURCE", "STATEMENT")
_OFF = ("0", "OFF", "FALSE")
UNKNOWN = object()
"""The value of an expression that is not carried out here."""


@dataclass
class DumpSession:
    """System variables by name in lower case, user variables with their @."""

    variables: dict[str, Any] = field(default_factory=lambda: dict(DEFAULTS))

    def apply(self, sql: str) -> None:
        """Carries out a SET statement. Raises InputError for a value that is needed and cannot be
        read."""
        parser = Parser(sql)
        parser.expect("SET")
        if parser.word() in _NOT_VARIABLES:
            return
        while not parser.done:
            self._assignment(parser)
            if not parser.accept(","):
                break

    @property
    def foreign_key_checks(self) -> bool:
        """Whether a row needs its parent."""
        return str(self._needed("foreign_key_checks")).upper() not in _OFF

    @property
    def explicit_defaults_for_timestamp(self) -> bool | None:
        """None where the dump does not say it."""
        value = self.variables.get("explicit_defaults_for_timestamp")
        return None if value in (None, UNKNOWN) else str(value).upper() not in _OFF

    @property
    def sql_mode(self) -> frozenset[str]:
        """The modes, combined ones with those that they stand for."""
        modes = {
            word.strip().upper()
            for word in str(self._needed("sql_mode")).split(",")
            if word.strip()
        }
        return frozenset(modes.union(*(COMBINED_MODES.get(mode, ()) for mode in modes)))

    @property
    def ansi_quotes(self) -> bool:
        """Whether "x" is a name."""
        return "ANSI_QUOTES" in self.sql_mode

    @property
    def mode_flags(self) -> SqlModeFlag:
        """The modes that change what a statement does to rows."""
        flags = SqlModeFlag(0)
        for mode in self.sql_mode:
            flags |= SqlModeFlag.__members__.get(mode, SqlModeFlag(0))
        return flags

    @property
    def lexis(self) -> Lexis:
        """How the dump's text is read."""
        return Lexis.of(self.mode_flags, client=self.client)

    @property
    def client(self) -> str:
        """The character set that the dump is written in."""
        return str(self._needed("character_set_client"))

    @property
    def time_zone(self) -> str:
        """The zone that TIMESTAMP values are written in; SYSTEM where the dump does not say it."""
        return str(self._needed("time_zone"))

    def check_client(self, sql: bytes) -> None:
        """Raises InputError for text that cannot be cut or decoded for sure."""
        if self.client in UNSAFE_CLIENTS and not sql.isascii():
            raise InputError(
                f"text in {self.client}, whose characters may hold the byte of a backslash",
                code=Code.SCHEMA_SQL,
                hint="take the dump with --default-character-set=utf8mb4",
            )
        if SqlModeFlag.NO_BACKSLASH_ESCAPES in self.mode_flags and b"\\" in sql:
            raise InputError(
                "a backslash under sql_mode NO_BACKSLASH_ESCAPES",
                code=Code.SCHEMA_SQL,
                hint="take the dump without this mode",
            )

    def _needed(self, name: str) -> Any:
        value = self.variables.get(name, DEFAULTS[name])
        if value is UNKNOWN:
            raise InputError(
                f"the value that the dump sets {name} to is not known here",
                code=Code.SCHEMA_SQL,
                hint=f"write the value of {name} as a plain literal",
            )
        return DEFAULTS[name] if value is None else value

    def _assignment(self, parser: Parser) -> None:
        if parser.accept("NAMES"):
            name = self._charset_name(parser)
            self.variables |= {"character_set_client": name, "character_set_connection": name}
            if parser.accept("COLLATE"):
                parser.next()
            return
        if parser.accept("CHARACTER", "SET") or parser.accept("CHARSET"):
            self.variables["character_set_client"] = self._charset_name(parser)
            return
        is_global = parser.word() in ("GLOBAL", "PERSIST", "PERSIST_ONLY")
        if parser.word() in _SCOPES and parser.op(1) != "=":
            parser.at += 1
        name = self._variable(parser)
        if not (parser.accept("=") or parser.accept(":=")):
            raise parser.refuse("expected = in a SET statement")
        value = self._value(parser, name)
        if not is_global and not name.startswith("@@global"):
            self.variables[_bare(name)] = value

    def _variable(self, parser: Parser) -> str:
        name = parser.next().value.lower()
        while parser.accept("."):
            name += "." + parser.next().value.lower()
        return name

    def _charset_name(self, parser: Parser) -> Any:
        token = parser.next()
        if token.kind == "word" and token.value.upper() == "DEFAULT":
            return str(DEFAULTS["character_set_client"])
        if token.value.startswith("@"):
            return self.variables.get(token.value.lower())
        return _known(token.value)

    def _value(self, parser: Parser, name: str) -> Any:
        """The value of an expression that is one word, literal or variable, or IFNULL of two;
        UNKNOWN for any other."""
        start = parser.at
        token = parser.next()
        value: Any = token.value
        if token.value == "-" and token.kind == "op":
            value = "-" + parser.next().value
        elif token.kind == "word" and token.value.startswith("@"):
            parser.at = start
            other = self._variable(parser)
            value = self.variables.get(
                _bare(other),
                DEFAULTS.get(_bare(other), UNKNOWN if other.startswith("@@") else None),
            )
        elif token.kind == "word" and token.value.upper() == "DEFAULT":
            value = DEFAULTS.get(_bare(name))
        elif token.kind == "word" and token.value.upper() == "IFNULL" and parser.op() == "(":
            value = self._first_not_null(Parser(parser.parenthesized()), name)
        if parser.done or parser.op() == ",":
            return _known(value) if _bare(name) == "character_set_client" else value
        parser.skip_until(",")
        return UNKNOWN

    def _first_not_null(self, parser: Parser, name: str) -> Any:
        """Of the two in IFNULL(@OLD_…, …), with which HeidiSQL puts a variable back."""
        first = self._value(parser, name)
        parser.expect(",")
        second = self._value(parser, name)
        return second if first is None else first


def _known(charset: Any) -> Any:
    """The character set of that name, UNKNOWN when there is none here."""
    name = ALIASES.get(str(charset).lower(), str(charset).lower())
    return name if name in CHARSETS or charset is None else UNKNOWN


def _bare(name: str) -> str:
    """A system variable without its @@ and scope; a user variable as it is."""
    if not name.startswith("@@"):
        return name
    return (
        name.removeprefix("@@")
        .removeprefix("session.")
        .removeprefix("local.")
        .removeprefix("global.")
    )
