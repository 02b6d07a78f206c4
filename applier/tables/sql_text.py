"""SQL text into tokens: quoting, comments and version comments as MySQL and MariaDB read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from applier.error_codes import Code
from applier.errors import InputError

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*|--(?=[\s\x00-\x1f]|$)[^\n]*|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/)
    |(?P<quoted>`[^`]*(?:``[^`]*)*`)
    |(?P<string>[nN]?'[^'\\]*(?:(?:''|\\.)[^'\\]*)*'|"[^"\\]*(?:(?:""|\\.)[^"\\]*)*")
    |(?P<hex>0x[0-9a-fA-F]+|[xX]'[0-9a-fA-F]*')
    |(?P<bit>0b[01]+|[bB]'[01]*')
    |(?P<open>[nN]?['"`].*|/\*(?!M?!).*)
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w$])|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<word>@{0,2}[\w$]+)
    |(?P<op><=>|<<|>>|<=|>=|<>|!=|:=|->>|->|\|\||&&|.)""",
    re.VERBOSE | re.DOTALL,
)
"""Each alternative takes time in proportion to what it passes over, also where it fails: SQL out of a log may be made to be slow."""
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SKIPPED = re.compile(r"\s+|#[^\n]*|--(?=\s|\Z)[^\n]*|/\*M?!\d*|\*/|\(")
_WORD = re.compile(r"\w+")
_NO_SERVERS = "/*M!999999"
"""A comment for every server that there is ("enable the sandbox mode" at the head of MariaDB's dumps)."""
MOST_TOKENS = 4_000_000
"""Of one statement: a server takes far fewer (it has 4,096 columns and 64 MiB of SQL), and each costs some 200 bytes here."""
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


UNREADABLE = (ValueError, ArithmeticError, RecursionError)
"""What SQL with absurd values, or nested to absurd depths, may raise anywhere: a number of 5,000 digits, a year of 10,000."""


def reason(error: Exception) -> str:
    """What was wrong, for the message of the error that takes its place."""
    if isinstance(error, RecursionError):
        return "the SQL is nested too deeply"
    return str(getattr(error, "message", error)) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: word, quoted, string, hex, bit, number, op, open. `value`: upper-case word, name, or unescaped text. Offsets in the SQL.

    "open" is all that follows a quote or comment that nobody closes; no grammar takes it.
    """

    kind: str
    value: str
    start: int
    end: int


def unescape(body: str) -> str:
    """The text of a string literal's inside, backslash escapes resolved; \\% and \\_ stay as they are."""
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda match: match[0] if match[1] in "%_" else _ESCAPED.get(match[1], match[1]), body)


def hex_bytes(literal: str) -> bytes:
    """The bytes of 0x… or x'…'; an odd digit counts as the low half of the first byte."""
    digits = literal[2:].rstrip("'")
    return bytes.fromhex("0" * (len(digits) % 2) + digits)


def statement_kind(sql: str) -> str:
    """The first word of a statement in upper case; comments, and parentheses before a SELECT, are passed over."""
    at = 0
    while True:
        if sql.startswith("/*", at) and (sql.startswith(_NO_SERVERS, at) or not sql.startswith(("/*!", "/*M!"), at)):
            end = sql.find("*/", at + 2)
            if end < 0:
                return ""
            at = end + 2
            continue
        skipped = _SKIPPED.match(sql, at)
        if skipped is None:
            break
        at = skipped.end()
    word = _WORD.match(sql, at)
    return word[0].upper() if word else ""


def tokenize(sql: str, *, ansi_quotes: bool = False) -> list[Token]:
    """Version comments (/*!50100 ... */ and /*M! ... */) are read as if they were no comments.

    Raises InputError for what is no SQL, or more of it than anybody writes.
    """
    tokens = []
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "op"
        if kind == "space":
            continue
        text = match[0]
        value = text
        if kind == "word":
            value = text
        elif kind == "quoted":
            value = text[1:-1].replace("``", "`")
        elif kind == "string":
            body = text.lstrip("nN")
            mark = body[0]
            value = unescape(body[1:-1].replace(mark * 2, mark))
            if mark == '"' and ansi_quotes:
                kind = "quoted"
        tokens.append(Token(kind, value, match.start(), match.end()))
        if len(tokens) > MOST_TOKENS:
            raise InputError(f"a statement of more than {MOST_TOKENS:,} words: {sql[:60]!r}", code=Code.SCHEMA_SQL)
    return tokens


class Parser:
    """A cursor over tokens with what a recursive-descent parser asks for. Raises InputError showing where it stands."""

    def __init__(self, sql: str, *, ansi_quotes: bool = False) -> None:
        self.sql = sql
        self.tokens = tokenize(sql, ansi_quotes=ansi_quotes)
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
        return self.tokens[at].value if at < len(self.tokens) and self.tokens[at].kind == "op" else ""

    @property
    def done(self) -> bool:
        """Whether all of the statement was read."""
        return self.at >= len(self.tokens) or (self.op() == ";" and self.at == len(self.tokens) - 1)

    def accept(self, *words: str) -> bool:
        """Steps over the words (or operators) when they stand there in this order."""
        for ahead, wanted in enumerate(words):
            if self.word(ahead) != wanted and self.op(ahead) != wanted:
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
        near = self.sql[self.tokens[self.at].start :][:60] if self.at < len(self.tokens) else "the end"
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
        if token.kind not in ("word", "quoted", "string"):
            self.at -= 1
            raise self.refuse("expected a name")
        return token.value

    def table_name(self, database: str) -> tuple[str, str]:
        """[database.]table"""
        first = self.name()
        if self.op() == ".":
            self.at += 1
            return first, self.name()
        return database, first

    def text(self) -> str:
        """A string literal; neighbours are joined. Raises InputError."""
        token = self.next()
        if token.kind != "string":
            self.at -= 1
            raise self.refuse("expected a string")
        value = token.value
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "string":
            value += self.next().value
        return value

    def integer(self) -> int:
        """Passes an unsigned integer. Raises InputError."""
        token = self.next()
        if token.kind != "number" or not token.value.isdigit():
            self.at -= 1
            raise self.refuse("expected a number")
        return int(token.value)

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

    def skip_until(self, *ends: str) -> str:
        """Steps up to one of `ends` outside of parentheses (or to the end); returns the SQL passed over."""
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
