"""LOAD DATA in statement format: the file that came in the log, cut into fields as the server's
READ_INFO does (sql/sql_load.cc)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from applier.binlog.charsets import charset
from applier.tables.catalog import Tables
from applier.tables.dml.row_writer import Assignment, StatementSession
from applier.tables.dml.statements import Statement
from applier.tables.expressions.operands import Operand, OperandKind, constant, unsupported
from applier.tables.sql.sql_text import Parser

_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
IGNORE, REPLACE = 1, 2
"""duplicate_handling of an EXECUTE_LOAD_QUERY event."""


def load_data(
    tables: Tables,
    sql: str,
    database: str,
    data: bytes,
    session: StatementSession,
    duplicates: int | None = None,
) -> int:
    """LOAD DATA INFILE … INTO TABLE over the file that the log carried along. `duplicates` is the
    event's word on them.

    Raises ReplicationError: the server's number for what the server refuses too, 1235 for what is
    not exact here.
    """
    statement = Statement(tables, sql, database, session)
    return statement.carried_out(lambda: _load(statement, data, duplicates))


def _load(statement: Statement, data: bytes, duplicates: int | None) -> int:
    parser = statement.parser
    if not parser.accept("LOAD", "DATA"):
        raise unsupported(parser.sql[:60])
    words = parser.skip_until("INTO").upper().split()
    if duplicates is None:
        duplicates = (
            REPLACE
            if "REPLACE" in words
            else IGNORE
            if "IGNORE" in words or "LOCAL" in words
            else 0
        )
    parser.expect("INTO", "TABLE")
    replacing = duplicates == REPLACE
    statement.rows.ignore = duplicates == IGNORE
    table = statement.table("INSERT", "DELETE") if replacing else statement.table("INSERT")
    options = LoadOptions.read(parser)
    _refuse_variables(parser)
    columns = statement.column_list(table.definition)
    if not parser.done:
        raise unsupported(f"LOAD DATA … {parser.word()}")
    rows: list[list[Assignment]] = []
    for fields in options.records(data):
        if len(fields) < len(columns):
            raise unsupported(
                f"LOAD DATA of a line with {len(fields)} fields for {len(columns)} columns"
            )
        operands = [options.operand(field) for field in fields]
        rows.append(
            [
                (at, statement.rows.writer(table.definition.columns[at], operand))
                for at, operand in zip(columns, operands, strict=False)
            ]
        )
    return statement.rows.insert(table, rows, replacing=replacing, on_duplicate=[])


def _refuse_variables(parser: Parser) -> None:
    if any(
        token.kind == "word" and token.value.startswith("@") for token in parser.tokens[parser.at :]
    ):
        raise unsupported("LOAD DATA into variables")


@dataclass
class LoadOptions:
    """FIELDS and LINES of the statement. A field is text, None for NULL."""

    terminated: str = "\t"
    enclosed: str = ""
    escaped: str = "\\"
    starting: str = ""
    ending: str = "\n"
    skipped: int = 0
    charset: str | None = None

    @classmethod
    def read(cls, parser: Parser) -> LoadOptions:
        """The options at the cursor. Raises ReplicationError 1235 for combinations that are not
        read here."""
        options = cls()
        while True:
            if parser.accept("CHARACTER", "SET") or parser.accept("CHARSET"):
                options.charset = parser.name().lower()
            elif parser.accept_any("FIELDS", "COLUMNS"):
                while word := parser.accept_any("TERMINATED", "OPTIONALLY", "ENCLOSED", "ESCAPED"):
                    if word != "OPTIONALLY":
                        parser.expect("BY")
                        setattr(options, word.lower(), parser.text())
            elif parser.accept("LINES"):
                while word := parser.accept_any("STARTING", "TERMINATED"):
                    parser.expect("BY")
                    setattr(options, "starting" if word == "STARTING" else "ending", parser.text())
            elif parser.accept("IGNORE"):
                options.skipped = parser.integer()
                parser.accept_any("LINES", "ROWS")
            else:
                break
        if (
            not options.terminated
            or not options.ending
            or len(options.enclosed) > 1
            or len(options.escaped) > 1
        ):
            raise unsupported("LOAD DATA with empty terminators")
        if options.terminated == options.ending or (
            options.enclosed and options.enclosed in options.terminated + options.ending
        ):
            raise unsupported("LOAD DATA with delimiters that are alike")
        return options

    def operand(self, field: str | None) -> Operand:
        """A field as the statement's columns take it."""
        if field is None:
            return constant(OperandKind.NULL, None, sql="NULL")
        own = charset(self.charset or "utf8mb4")
        if self.charset == "binary":
            return constant(OperandKind.BINARY, field.encode("latin-1"), sql="a field")
        return constant(
            OperandKind.TEXT, field, sql=f"'{field[:40]}'", collation=own.default_collation
        )

    def text(self, data: bytes) -> str:
        """The file's text. Without a word on its character set only ASCII is one."""
        if self.charset is not None and charset(self.charset).name == "binary" != self.charset:
            raise unsupported(f"LOAD DATA in the character set {self.charset}")
        if self.charset is None and not data.isascii():
            raise unsupported("LOAD DATA of other than ASCII without CHARACTER SET")
        if self.charset == "binary":
            return data.decode("latin-1")
        text = charset(self.charset or "utf8mb4").decode(data)
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise unsupported(f"LOAD DATA of bytes that are no {self.charset}")
        return text

    def records(self, data: bytes) -> Iterator[list[str | None]]:
        """The lines of the file as lists of fields."""
        reader = FieldReader(self.text(data), self)
        for _ in range(self.skipped):
            reader.skip_line()
        while reader.find_start():
            yield reader.line()


class FieldReader:
    """A cursor over the text of the file."""

    def __init__(self, text: str, options: LoadOptions) -> None:
        self.text = text
        self.options = options
        self.at = 0

    def skip_line(self) -> None:
        """Passes everything up to the next line's start."""
        end = self.text.find(self.options.ending, self.at)
        self.at = len(self.text) if end < 0 else end + len(self.options.ending)

    def find_start(self) -> bool:
        """Passes STARTING BY; False when no line comes."""
        prefix = self.options.starting
        if prefix:
            found = self.text.find(prefix, self.at)
            self.at = len(self.text) if found < 0 else found + len(prefix)
            return found >= 0 and self.at < len(self.text)
        return self.at < len(self.text)

    def line(self) -> list[str | None]:
        """The fields up to the end of the line, which is passed."""
        fields: list[str | None] = []
        while True:
            field, ended = self._field()
            fields.append(field)
            if ended:
                return fields

    def _field(self) -> tuple[str | None, bool]:
        """A field, and whether the line ends behind it."""
        text, options = self.text, self.options
        enclosed = bool(options.enclosed) and text.startswith(options.enclosed, self.at)
        self.at += enclosed
        found: list[str] = []
        null = False
        while self.at < len(text):
            char = text[self.at]
            if char == options.escaped and self.at + 1 < len(text):
                following = text[self.at + 1]
                if options.escaped != options.enclosed or following == char:
                    null = null or (following == "N" and not found)
                    found.append(_ESCAPED.get(following, following))
                    self.at += 2
                    continue
            if enclosed and char == options.enclosed:
                ended = self._closed(found)
                if ended is not None:
                    return "".join(found), ended
                continue
            if not enclosed and text.startswith(options.ending, self.at):
                self.at += len(options.ending)
                return self._plain(found, null=null), True
            if not enclosed and text.startswith(options.terminated, self.at):
                self.at += len(options.terminated)
                return self._plain(found, null=null), False
            found.append(char)
            self.at += 1
        if enclosed:
            raise unsupported("LOAD DATA of a field whose enclosing character does not come again")
        return self._plain(found, null=null), True

    def _closed(self, found: list[str]) -> bool | None:
        """Behind the enclosing character: whether the line ends; None where it was part of the
        field."""
        options = self.options
        self.at += 1
        if self.text.startswith(options.enclosed, self.at):
            found.append(options.enclosed)
            self.at += 1
            return None
        for mark, ended in ((options.terminated, False), (options.ending, True)):
            if self.text.startswith(mark, self.at):
                self.at += len(mark)
                return ended
        if self.at == len(self.text):
            return True
        found.append(options.enclosed)
        return None

    def _plain(self, found: list[str], *, null: bool) -> str | None:
        field = "".join(found)
        if (null and field == "N") or (self.options.enclosed and field == "NULL"):
            return None
        return field
