"""What a statement of a dump is about: its kind, the names in it, and the same statement with
databases renamed.

The kinds are those of the objects that mysqldump, mydumper and MySQL Shell write. Names are found
where the grammar has them; in the bodies of views and programs a database is a name before a table,
function or procedure, or the first of three names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from applier.dumps.patterns import IDENTIFIER, QUOTED_IDENTIFIER
from applier.tables.sql.quoting import quoted
from applier.tables.sql.sql_text import DEFAULT_LEXIS, Lexis, Parser, Token, tokenize

NAME_BYTES = rb"(?:" + IDENTIFIER + rb"|" + QUOTED_IDENTIFIER + rb"|[\w$\x80-\xff]++)"
INSERT_HEAD = re.compile(
    rb"(?P<verb>INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*(?:INTO\s+)?"
    rb"(?:(?P<database>" + NAME_BYTES + rb")\s*\.\s*)?(?P<table>" + NAME_BYTES + rb")\s*"
    rb"(?:\((?P<columns>[^()]*+)\)\s*)?VALUES?\s*(?=\()",
    re.IGNORECASE,
)
"""Up to the first row; not for INSERT … SET or SELECT."""
KINDS: dict[str, str] = {
    "DATABASE": "database", "SCHEMA": "database",
    "TABLE": "table", "TABLES": "table", "INDEX": "table", "SEQUENCE": "table",
    "VIEW": "view",
    "TRIGGER": "trigger", "EVENT": "event",
    **dict.fromkeys(("PROCEDURE", "FUNCTION", "PACKAGE", "LIBRARY"), "routine"),
    **dict.fromkeys(("USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "UNDO", "RESOURCE"),
        "account"),
}  # fmt: skip
"""The object of a CREATE, ALTER, DROP or RENAME -> what kind of statement that is."""
VERBS: dict[str, str] = {
    **dict.fromkeys(("CREATE", "ALTER", "DROP", "RENAME"), "object"),
    **dict.fromkeys(("INSERT", "REPLACE", "UPDATE", "DELETE", "TRUNCATE", "LOAD"), "rows"),
    "LOCK": "lock", "UNLOCK": "lock", "USE": "use", "SET": "set",
    **dict.fromkeys(("GRANT", "REVOKE", "INSTALL", "UNINSTALL"), "account"),
}  # fmt: skip
PROGRAMS = ("trigger", "event", "routine")
_SKIPPED = frozenset(
    "LOW_PRIORITY DELAYED HIGH_PRIORITY IGNORE INTO QUICK FROM TABLE TABLES ONLINE OFFLINE".split()
)
_BEFORE_NAME = frozenset(
    "FROM JOIN STRAIGHT_JOIN INTO UPDATE TABLE REFERENCES ON CALL TRUNCATE VIEW USING".split()
)
"""Words before the name of a table or program in a body."""


@dataclass(frozen=True)
class DumpName:
    """A name that may have a database before it; `at` is the place of that database in the SQL."""

    database: str | None
    name: str
    at: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class About:
    """What a statement says. `names`: the tables (databases, programs) that it makes, changes or
    fills."""

    verb: str
    kind: str
    names: tuple[DumpName, ...] = ()
    references: tuple[DumpName, ...] = field(default=())
    """Names with a database elsewhere in the statement: of foreign keys, in the bodies of views and
    programs."""
    on_table: DumpName | None = None
    """The table of a trigger."""


def about(text: str, lexis: Lexis = DEFAULT_LEXIS) -> About:
    """Reads a statement as far as its names need. Raises InputError for what is no SQL."""
    parser = Parser(text, lexis)
    while parser.accept("("):
        pass
    verb = parser.word()
    if not verb:
        if parser.tokens:
            raise parser.refuse("expected a statement")
        return About("", "other")
    kind = VERBS.get(verb, "other")
    parser.at += 1
    if kind == "use":
        token = parser.next()
        return About(verb, kind, (DumpName(None, token.value, (token.start, token.end)),))
    if kind == "object":
        return _object(parser, verb)
    if kind == "rows":
        if verb == "LOAD":
            parser.skip_until("TABLE")
        return About(verb, kind, tuple(_listed(parser, 1)))
    if kind == "lock":
        return About(verb, kind, tuple(_locked(parser)))
    return About(verb, kind)


def _object(parser: Parser, verb: str) -> About:
    """CREATE, ALTER, DROP, RENAME: the first word that is the name of a kind says it; what stands
    before are its options."""
    while not parser.done and parser.word() not in KINDS:
        parser.at += 1
    what = parser.word()
    kind = KINDS.get(what, "other")
    parser.at += 1
    while (
        parser.accept("IF", "NOT", "EXISTS")
        or parser.accept("IF", "EXISTS")
        or parser.accept("BODY")
    ):
        pass
    if kind == "account" or kind == "other":
        return About(verb, kind)
    if kind == "database":
        token = parser.next()
        return About(verb, kind, (DumpName(None, token.value, (token.start, token.end)),))
    if what == "INDEX":
        parser.skip_until("ON")
        parser.accept("ON")
    names = tuple(_listed(parser, 1_000_000 if verb in ("DROP", "RENAME") else 1))
    on_table = None
    if kind == "trigger" and verb == "CREATE":
        parser.skip_until("ON")
        parser.accept("ON")
        on_table = next(_listed(parser, 1), None)
        names = tuple(DumpName(one.database, one.name, one.at) for one in names)
    return About(verb, kind, names, tuple(_references(parser)), on_table)


def _listed(parser: Parser, most: int) -> Iterator[DumpName]:
    """name [, name] … ; RENAME has TO between two names."""
    while parser.word() in _SKIPPED and _is_bare(parser):
        parser.at += 1
    while (
        most
        and parser.at < len(parser.tokens)
        and parser.tokens[parser.at].kind in ("word", "quoted")
    ):
        yield _name(parser)
        most -= 1
        if not (parser.accept(",") or parser.accept("TO")):
            return


def _is_bare(parser: Parser) -> bool:
    return parser.tokens[parser.at].kind == "word" and parser.op(1) != "."


def _locked(parser: Parser) -> Iterator[DumpName]:
    """LOCK TABLES name READ, name WRITE"""
    parser.accept_any("TABLE", "TABLES")
    while parser.at < len(parser.tokens) and parser.tokens[parser.at].kind in ("word", "quoted"):
        yield _name(parser)
        parser.skip_until(",")
        if not parser.accept(","):
            return


def _name(parser: Parser) -> DumpName:
    first = parser.next()
    if parser.op() != ".":
        return DumpName(None, first.value)
    parser.at += 1
    return DumpName(first.value, parser.next().value, (first.start, first.end))


def _references(parser: Parser) -> Iterator[DumpName]:
    tokens = parser.tokens
    for at in range(parser.at, len(tokens) - 2):
        if (
            tokens[at].kind in ("word", "quoted")
            and _dot(tokens, at + 1)
            and not _dot(tokens, at - 1)
            and _is_database(tokens, at)
        ):
            yield DumpName(
                tokens[at].value, tokens[at + 2].value, (tokens[at].start, tokens[at].end)
            )


def _dot(tokens: list[Token], at: int) -> bool:
    return 0 <= at < len(tokens) and tokens[at].kind == "op" and tokens[at].value == "."


def _is_database(tokens: list[Token], at: int) -> bool:
    """Whether the first of two or three names joined by dots is a database, not a table."""
    behind = tokens[at + 3] if at + 3 < len(tokens) else None
    if behind is not None and behind.kind == "op" and behind.value in (".", "("):
        return True
    before = at - 1
    while before > 0 and tokens[before].kind == "op" and tokens[before].value == "(":
        before -= 1
    return tokens[before].kind == "word" and tokens[before].value.upper() in _BEFORE_NAME


def renamed(text: str, said: About, rewrite: Mapping[str, str]) -> str:
    """The statement with the databases of `rewrite` under their new names."""
    spots = [
        (one.at, one.database)
        for one in (*said.names, *said.references)
        if one.database is not None
    ]
    if said.on_table is not None and said.on_table.database is not None:
        spots.append((said.on_table.at, said.on_table.database))
    if said.kind in ("database", "use"):
        spots += [(one.at, one.name) for one in said.names]
    for (start, end), name in sorted(set(spots), reverse=True):
        if name in rewrite:
            text = text[:start] + quoted(rewrite[name]) + text[end:]
    return text


def in_backticks(text: str) -> str:
    """SQL under ANSI_QUOTES with its names in backticks: defaults and generated columns are read
    again without that mode."""
    for token in reversed(tokenize(text, Lexis(ansi_quotes=True))):
        if token.kind == "quoted" and text[token.start] == '"':
            text = text[: token.start] + quoted(token.value) + text[token.end :]
    return text


def unquoted(name: bytes) -> str:
    """A name as INSERT_HEAD finds it, without its quotes."""
    mark = name[:1]
    if mark in (b"`", b'"'):
        name = name[1:-1].replace(mark * 2, mark)
    return name.decode("utf-8", "surrogateescape")
