"""SQL text into tokens: quoting, comments and version comments as MySQL and MariaDB read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from applier.binlog.charsets import charset
from applier.binlog.selection.name_case import lower_case
from applier.error_codes import Code
from applier.errors import InputError, ReplicationError
from applier.tables.sql.quoting import quoted, text_inside, without_end
from applier.tables.sql.sql_mode_flags import SqlModeFlag


def _token_pattern(single: str, double: str, space: str, letter: str) -> re.Pattern[str]:
    """`single` and `double`: the inside of a string literal, up to its quote. `space` and `letter`:
    classes of characters, without [ ]."""
    return re.compile(
        rf"""(?P<space>[{space}]+|\#[^\n]*|--(?=[{space}\x00-\x1f]|$)[^\n]*|/\*(?!M?!).*?\*/|\*/)
    |(?P<version>/\*M?!(?:\d{{5,6}})?)
    |(?P<quoted>`[^`]*(?:``[^`]*)*`)
    |(?P<string>[nN]?'{single}'|"{double}")
    |(?P<hex>0x[0-9a-fA-F]+(?![{letter}])|[xX]'[0-9a-fA-F]*')
    |(?P<bit>0b[01]+(?![{letter}])|[bB]'[01]*')
    |(?P<open>[nN]?['"`].*|/\*(?!M?!).*)
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![{letter}])|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<word>@{{0,2}}[{letter}]+)
    |(?P<op><=>|<<|>>|<=|>=|<>|!=|:=|->>|->|\|\||&&|.)""",
        re.VERBOSE | re.DOTALL,
    )


_STRINGS = {
    False: (r"[^'\\]*(?:(?:''|\\.)[^'\\]*)*", r"[^\"\\]*(?:(?:\"\"|\\.)[^\"\\]*)*"),
    True: (r"[^']*(?:''[^']*)*", r"[^\"]*(?:\"\"[^\"]*)*"),
}
_NO_LETTERS = r"\x00-#%-/:-@\[-^`{-\x7f\ud800-\udfff"
_CHARACTERS = {
    False: (r" \t-\r", rf"^{_NO_LETTERS}"),
    True: (r" \t-\r\xa0", rf"^{_NO_LETTERS}\xa0"),
}
"""Whether a no-break space is a space -> the spaces, and the letters of names: all characters but a
few, since a class that lists what is left out compiles ten times as fast. Any character beyond
ASCII is a letter, a dash or an ideographic space too (seen on 5.7.29, 9.7.4, MariaDB 10.11.18).
With character sets of one byte per character some are not, but servers refuse them, so no log has
them."""


@cache
def _token(no_backslash_escapes: bool, no_break_space_is_space: bool) -> re.Pattern[str]:
    """Each alternative takes time in proportion to what it passes over, also where it fails: SQL
    out of a log may be made to be slow."""
    return _token_pattern(*_STRINGS[no_backslash_escapes], *_CHARACTERS[no_break_space_is_space])


_OUTSIDE_NAMES = re.compile("[\U00010000-\U0010ffff]")
AS_A_FILE = "#mysql50#"
_FILE_NAME = re.compile(r"(?:[0-9A-Za-z_]|@[0-9a-f]{4})+")
_ESCAPED_CHARACTER = re.compile(r"@([0-9a-f]{4})")
"""MySQL keeps names in utf8mb3, where these become question marks (seen on 5.7.29 and 9.7.4;
MariaDB refuses them)."""
NO_SERVERS = "/*M!999999"
"""A comment for every server that there is ("enable the sandbox mode" at the head of MariaDB's
dumps)."""
MOST_TOKENS = 4_000_000
"""Of one statement: a server takes far fewer (it has 4,096 columns and 64 MiB of SQL), and each
costs some 200 bytes here."""


UNREADABLE = (ValueError, ArithmeticError, RecursionError)
"""What SQL with absurd values, or nested to absurd depths, may raise anywhere: a number of 5,000
digits, a year of 10,000."""


def reason(error: Exception) -> str:
    """What was wrong, for the message of the error that takes its place."""
    if isinstance(error, RecursionError):
        return "the SQL is nested too deeply"
    return str(getattr(error, "message", error)) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: word, quoted, string, hex, bit, number, op, open. `value`: word as it is written,
    name, or unescaped text. Offsets in the SQL.

    "open" is all that follows a quote or comment that nobody closes; no grammar takes it.
    """

    kind: str
    value: str
    start: int
    end: int


class ReadsSql(Protocol):
    """What a session says of how it reads SQL."""

    @property
    def sql_mode(self) -> int:
        """Bits of it."""

    @property
    def client(self) -> str:
        """The character set of its statements."""

    @property
    def mariadb(self) -> bool:
        """Whether it is MariaDB's."""

    @property
    def comment_version(self) -> int | None:
        """Whose version comments are read; None: all."""

    @property
    def lower_case_names(self) -> bool:
        """lower_case_table_names=1."""


@dataclass(frozen=True, slots=True)
class Lexis:
    """How a session reads SQL text: bits of its sql_mode, and which version comments are for its
    server.

    `version` is the server's number as version comments write it (50744, 101118); None takes every
    version comment in.
    """

    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    mariadb: bool = False
    version: int | None = None
    pipes_as_concat: bool = False
    empty_string_is_null: bool = False
    no_break_space_is_space: bool = False
    """With character sets of one byte per character; in others it is a letter of names."""
    lower_case_names: bool = False
    """lower_case_table_names=1: names of tables and databases are read in lower case."""

    @classmethod
    def of(
        cls,
        sql_mode: int,
        *,
        client: str = "utf8mb4",
        mariadb: bool = False,
        version: int | None = None,
        lower_case_names: bool = False,
    ) -> Lexis:
        """The reading of a session with this sql_mode. `client`: the character set of its
        statements."""
        mode = SqlModeFlag(sql_mode)
        return cls(
            ansi_quotes=SqlModeFlag.ANSI_QUOTES in mode,
            no_backslash_escapes=SqlModeFlag.NO_BACKSLASH_ESCAPES in mode,
            mariadb=mariadb,
            version=version,
            pipes_as_concat=SqlModeFlag.PIPES_AS_CONCAT in mode,
            empty_string_is_null=mariadb and SqlModeFlag.EMPTY_STRING_IS_NULL in mode,
            no_break_space_is_space=charset(client).max_bytes == 1,
            lower_case_names=lower_case_names,
        )

    @classmethod
    def of_dialect(cls, dialect: ReadsSql) -> Lexis:
        """The reading of a session that says so."""
        return cls.of(
            dialect.sql_mode,
            client=dialect.client,
            mariadb=dialect.mariadb,
            version=dialect.comment_version,
            lower_case_names=dialect.lower_case_names,
        )

    def file_name(self, name: str) -> str:
        """What `#mysql50#` and the name of a table's file stand for, up to 5.7 and in MariaDB: the
        table (`filename_to_tablename`, sql/sql_table.cc)."""
        file = name.removeprefix(AS_A_FILE)
        is_modern = not self.mariadb and (self.version is None or self.version >= 80_000)
        if is_modern or not _FILE_NAME.fullmatch(file):
            return name
        return _ESCAPED_CHARACTER.sub(lambda code: chr(int(code[1], 16)), file)

    @property
    def is_plain(self) -> bool:
        """Whether no mode changes what a text means."""
        return not (
            self.ansi_quotes
            or self.no_backslash_escapes
            or self.pipes_as_concat
            or self.empty_string_is_null
        )

    def executes(self, comment: str) -> bool:
        """Whether the server reads what stands in a version comment that begins so ("/*!50100",
        "/*M!").

        MariaDB passes over those of MySQL 5.7 and later, MySQL over all of MariaDB's
        (sql/sql_lex.cc, 9.7 and 10.11).
        """
        if self.version is None:
            return comment != NO_SERVERS
        mine, digits = comment[2] == "M", comment.partition("!")[2]
        if not digits:
            return self.mariadb or not mine
        asked = int(digits)
        if not self.mariadb:
            return not mine and asked <= self.version
        return asked <= self.version and (mine or not 50700 <= asked <= 99999)


DEFAULT_LEXIS = Lexis()


_COMMENT_MARK = re.compile(r"/\*|\*/")


def _comment_end(sql: str, at: int) -> int:
    """Behind the version comment whose inside begins at `at`; comments in it go along."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(sql, at):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)


def tokenize(sql: str, lexis: Lexis = DEFAULT_LEXIS) -> list[Token]:
    """Version comments (/*!50100 ... */ and /*M! ... */) that are for this server are read as if
    they were no comments.

    Raises InputError for what is no SQL, or more of it than anybody writes.
    """
    tokens, sql = [], without_end(sql)
    pattern, at = _token(lexis.no_backslash_escapes, lexis.no_break_space_is_space), 0
    while (match := pattern.match(sql, at)) is not None:
        at = match.end()
        kind = match.lastgroup or "op"
        if kind == "space":
            continue
        text = match[0]
        if kind == "version":
            at = at if lexis.executes(text) else _comment_end(sql, at)
            continue
        value = text
        if kind == "quoted":
            value = text[1:-1].replace("``", "`")
        elif kind == "string":
            body = text.lstrip("nN")
            mark = body[0]
            value = text_inside(body[1:-1], mark, escapes=not lexis.no_backslash_escapes)
            if mark == '"' and lexis.ansi_quotes:
                kind = "quoted"
        if kind in ("word", "quoted") and not value.isascii():
            value = _OUTSIDE_NAMES.sub("?", value)
        tokens.append(Token(kind, value, match.start(), match.end()))
        if len(tokens) > MOST_TOKENS:
            raise InputError(
                f"a statement of more than {MOST_TOKENS:,} words: {sql[:60]!r}",
                code=Code.SCHEMA_SQL,
            )
    return tokens


_NAMES = ("word", "quoted", "string")
"""Kinds of tokens that are names where one is expected."""


class Parser:
    """A cursor over tokens with what a recursive-descent parser asks for. Raises InputError showing
    where it stands."""

    def __init__(self, sql: str, lexis: Lexis = DEFAULT_LEXIS) -> None:
        self.sql = without_end(sql)
        self.lexis = lexis
        self.tokens = tokenize(sql, lexis)
        self.at = 0

    def word(self, ahead: int = 0) -> str:
        """The upper-case word at the cursor, "" when something else stands there."""
        at = self.at + ahead
        if at < len(self.tokens) and self.tokens[at].kind == "word":
            return self.tokens[at].value.upper()
        return ""

    def op(self, ahead: int = 0) -> str:
        """The operator that stands `ahead` tokens from here, "" when it is none."""
        at = self.at + ahead
        return (
            self.tokens[at].value if at < len(self.tokens) and self.tokens[at].kind == "op" else ""
        )

    @property
    def done(self) -> bool:
        """Whether all of the statement was read."""
        return self.at >= len(self.tokens) or (self.op() == ";" and self.at == len(self.tokens) - 1)

    def accept(self, *words: str) -> bool:
        """Steps over the words (or operators) when they stand there in this order."""
        tokens = self.tokens
        for at, wanted in enumerate(words, self.at):
            if at >= len(tokens):
                return False
            token = tokens[at]
            if token.kind not in ("word", "op") or token.value.upper() != wanted:
                return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str:
        """Steps over one of the words; "" when none stands there."""
        word = self.word() or self.op()
        if word and word in words:
            self.at += 1
            return word
        return ""

    def expect(self, *words: str) -> None:
        """Passes these words. Raises InputError when others stand there."""
        if not self.accept(*words):
            raise self.refuse(f"expected {' '.join(words)}")

    def after(self, *words: str) -> Parser:
        """The parser itself, behind words that must stand there."""
        self.expect(*words)
        return self

    def rest(self) -> str:
        """The SQL from the cursor on. Raises InputError at the end."""
        if self.at >= len(self.tokens):
            raise self.refuse("more was expected")
        return self.sql[self.tokens[self.at].start :]

    def raw_name(self) -> str:
        """A name as it is written, quotes and all."""
        start = self.at
        self.name()
        return self.sql[self.tokens[start].start : self.tokens[start].end]

    def refuse(self, why: str) -> InputError:
        """The error of a statement that cannot be read, with the text where it ends."""
        near = (
            self.sql[self.tokens[self.at].start :][:60] if self.at < len(self.tokens) else "the end"
        )
        return InputError(f"SQL that cannot be read: {why} near {near!r}", code=Code.SCHEMA_SQL)

    def next(self) -> Token:
        """Passes a token and returns it. Raises InputError at the end."""
        if self.at >= len(self.tokens):
            raise self.refuse("more was expected")
        self.at += 1
        return self.tokens[self.at - 1]

    def name(self) -> str:
        """Passes a name, in quotes or not. Raises InputError."""
        token = self.next()
        if token.kind not in _NAMES:
            self.at -= 1
            raise self.refuse("expected a name")
        return token.value

    def column_name(self) -> str:
        """[[database.]table.]column; a point may lead."""
        self.accept(".")
        name = self.name()
        while self.accept("."):
            name = self.name()
        return name

    def at_alias(self, clauses: frozenset[str]) -> bool:
        """Whether a name stands here that is none of these words."""
        if self.at >= len(self.tokens) or self.tokens[self.at].kind not in _NAMES:
            return False
        return self.word() not in clauses

    def dotted_name(self) -> list[str]:
        """a, a.b, a.b.c; a star behind the last dot is passed over."""
        parts = [self.name()]
        while self.accept("."):
            if self.accept("*"):
                break
            parts.append(self.name())
        return parts

    def table_name(self, database: str) -> tuple[str, str]:
        """[database.]table; `.table` is the same as `table`."""
        self.accept(".")
        first = self.object_name()
        if self.op() == ".":
            self.at += 1
            return first, self.object_name()
        return database, first

    def object_name(self) -> str:
        """The name of a database, or of a table in one, as the server keeps it."""
        name = self.name()
        if name.startswith(AS_A_FILE):
            name = self.lexis.file_name(name)
        return lower_case(name) if self.lexis.lower_case_names else name

    def text(self) -> str:
        """A string literal; neighbours are joined. Raises InputError."""
        token = self.next()
        if token.kind != "string":
            self.at -= 1
            raise self.refuse("expected a string")
        value = token.value
        while self.at_string():
            value += self.next().value
        return value

    def at_string(self, ahead: int = 0) -> bool:
        """Whether a string literal stands here, or so many tokens ahead."""
        at = self.at + ahead
        return at < len(self.tokens) and self.tokens[at].kind == "string"

    def integer(self) -> int:
        """Passes an unsigned integer. Raises InputError."""
        token = self.next()
        if token.kind != "number" or not token.value.isdigit():
            self.at -= 1
            raise self.refuse("expected a number")
        return int(token.value)

    def size(self) -> int:
        """The length of a type: of 10.3 the server takes 10 (`field_length`, sql/sql_yacc.yy).
        Raises InputError."""
        token = self.next()
        whole = token.value.partition(".")[0]
        if token.kind != "number" or not whole.isdigit():
            self.at -= 1
            raise self.refuse("expected a number")
        return int(whole)

    def parenthesized(self) -> str:
        """The SQL between a balanced pair of parentheses, which is stepped over."""
        self.expect("(")
        start = self.tokens[self.at - 1].end
        depth = 1
        while depth:
            token = self.next()
            if token.kind == "op":
                depth += (token.value == "(") - (token.value == ")")
        return self.sql[start : self.tokens[self.at - 1].start].strip()

    def accept_kinds(self, *kinds: str) -> bool:
        """Steps over a token of one of these kinds."""
        found = self.at < len(self.tokens) and self.tokens[self.at].kind in kinds
        self.at += found
        return found

    def text_since(self, start: int) -> str:
        """The SQL from token `start` up to the cursor, spelled as a session without modes reads
        it."""
        if not self.tokens[start : self.at]:
            return ""
        if self.lexis.is_plain:
            return self.sql[self.tokens[start].start : self.tokens[self.at - 1].end]
        return " ".join(map(self._plain, self.tokens[start : self.at]))

    def _plain(self, token: Token) -> str:
        if token.kind == "quoted":
            return quoted(token.value)
        if token.kind == "string":
            if not token.value and self.lexis.empty_string_is_null:
                return "NULL"
            return "'" + token.value.replace("\\", "\\\\").replace("'", "''") + "'"
        if token.value == "||" and self.lexis.pipes_as_concat:
            raise ReplicationError(
                1235,
                "|| as CONCAT in an expression of a table is not supported in memory",
                hint="skip it with --skip-errors 1235, or replay into a test DB",
            )
        return self.sql[token.start : token.end]

    def expression_in_parentheses(self) -> str:
        """As `parenthesized`, spelled as a session without modes reads it."""
        start = self.at + 1
        self.parenthesized()
        self.at -= 1
        text = self.text_since(start)
        self.at += 1
        return text

    def skip_until(self, *ends: str) -> str:
        """Steps up to one of `ends` outside of parentheses (or to the end); returns the SQL passed
        over."""
        start = self.tokens[self.at].start if self.at < len(self.tokens) else len(self.sql)
        while self.at < len(self.tokens):
            if (self.word() or self.op()) in ends:
                break
            if self.op() == "(":
                self.parenthesized()
            else:
                self.at += 1
        end = self.tokens[self.at].start if self.at < len(self.tokens) else len(self.sql)
        return self.sql[start:end].strip()
