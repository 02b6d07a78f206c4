"""The language of mtr scripts (mysqltest), as far as it decides which SQL is sent: commands,
blocks, variables, sourced files.

What needs a server to be known (`let $x = `SELECT …``, query_get_value) leaves its variable unset,
and what uses an unset variable is left out. Written after the manual of mysqltest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST_STATEMENTS = 6000
MOST_ROUNDS = 60
"""Of a while loop."""
MOST_DEPTH = 6
"""Of files that source files."""

COMMANDS = frozenset(
    """append_file assert cat_file change_user character_set chmod connect connection copy_file
    copy_files_wildcard dec delimiter die diff_files dirty_close disconnect echo end end_timer error
    eval evalp exec exec_in_background execw exit expr file_exists force-cpdir force-rmdir
    horizontal_results inc let list_files list_files_append_file list_files_write_file
    lowercase_result mkdir move_file optimizer_trace output partially_sorted_result perl ping
    ps_command query query_attributes query_get_value query_horizontal query_vertical quit
    real_sleep reap remove_file remove_files_wildcard replace_column replace_numeric_round
    replace_regex replace_result require reset_connection result_format rmdir save_master_pos send
    send_eval send_quit send_shutdown shutdown_server skip sleep sorted_result source start_timer
    sync_slave_with_master sync_slave_sql_with_master sync_with_master system timer_start
    vertical_results wait_for_slave_to_stop write_file write_line""".split()
)
_SWITCH = re.compile(r"(dis|en)able_\w+")
_HEREDOCS = frozenset({"perl", "write_file", "append_file"})
_WORD = re.compile(r"[\w-]*")
_BLOCK = re.compile(r"(while|if)\s*\(", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_COMPARISON = re.compile(r"(\S+)\s*(==|!=|<=|>=|<|>)\s*(\S+)")
_OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}
_OF_A_REPLICA = re.compile(r"slave|server_[2-9]|replica|node_[2-9]", re.IGNORECASE)
_INCLUDES_LEFT_OUT = re.compile(
    r"(have_|not_|no_|wait|count_sessions|master-slave|rpl_|sync_|save_|stop|start_|restart|shutdown|kill|big_test|assert|diff_tables|"
    r"show_|check|default_|turn_|force|expect|begin_|end_|install|uninstall|elide|linux|windows|only_|require|search_pattern|"
    r"mysqlbinlog|grep|print|write_|uniq|get_|mtr_|is_|running|allow|read_|set_binlog_format|long_test|maybe|ndb|add_|dedicated)",
    re.IGNORECASE,
)
"""Files of include/ that ask for a server's features, wait, restart or look at a second server."""


@dataclass(frozen=True)
class ScriptCommand:
    """A command of mysqltest, or with the word "sql" a statement."""

    word: str
    text: str


@dataclass(frozen=True)
class ScriptBlock:
    """while or if."""

    word: str
    condition: str
    body: list[ScriptCommand | ScriptBlock] = field(default_factory=list)


class ScriptReader:
    """Cuts a script into commands and blocks."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.delimiter = ";"

    def read(self) -> list[ScriptCommand | ScriptBlock]:
        """Everything up to the end of the block or of the script."""
        found: list[ScriptCommand | ScriptBlock] = []
        while (item := self._next()) is not None:
            if isinstance(item, ScriptBlock) or item.word:
                found.append(item)
        return found

    def _next(self) -> ScriptCommand | ScriptBlock | None:
        """The next command; one without a word says nothing. None at the end of the block or of the
        script."""
        self._skip_blank()
        if self.at >= len(self.text):
            return None
        if self.text.startswith("#", self.at):
            self._line()
            return ScriptCommand("", "")
        if self.text.startswith("--", self.at):
            self.at += 2
            while self.text.startswith((" ", "\t"), self.at):
                self.at += 1
            return (
                self._block()
                if _BLOCK.match(self.text, self.at)
                else self._command(self._line().strip(), sql=False)
            )
        if self.text[self.at] == "}":
            self.at += 1
            return None
        if _BLOCK.match(self.text, self.at):
            return self._block()
        return self._command(self._statement(), sql=True)

    def _skip_blank(self) -> None:
        while self.at < len(self.text) and (
            self.text[self.at].isspace() or self.text.startswith(self.delimiter, self.at)
        ):
            self.at += len(self.delimiter) if self.text.startswith(self.delimiter, self.at) else 1

    def _line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line, self.at = self.text[self.at : end], end + 1
        return line

    def _command(self, text: str, *, sql: bool) -> ScriptCommand:
        word = _WORD.match(text)[0].lower()  # type: ignore[index]
        rest = text[len(word) :].strip()
        if word == "delimiter":
            self.delimiter = rest.removesuffix(self.delimiter).strip() or ";"
            return ScriptCommand("", "")
        if word in _HEREDOCS:
            self._skip_heredoc(word, rest.split())
            return ScriptCommand("", "")
        if word in COMMANDS or _SWITCH.fullmatch(word):
            return ScriptCommand(word, rest)
        return ScriptCommand("sql" if sql and text else "", text)

    def _skip_heredoc(self, word: str, arguments: list[str]) -> None:
        place = 0 if word == "perl" else 1
        end = (arguments[place] if len(arguments) > place else "EOF").rstrip(";") or "EOF"
        if self.text.startswith("\n", self.at):
            self.at += 1
        while self.at < len(self.text) and self._line().strip() != end:
            pass

    def _block(self) -> ScriptBlock:
        match = _BLOCK.match(self.text, self.at)
        assert match is not None
        start = at = match.end()
        depth = 1
        while at < len(self.text) and depth:
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            at += 1
        block = ScriptBlock(match[1].lower(), self.text[start : at - 1])
        self.at = at
        self._skip_blank()
        if self.text.startswith("{", self.at):
            self.at += 1
        block.body.extend(self.read())
        return block

    def _statement(self) -> str:
        """Text up to the delimiter that stands outside of quotes; lines that are comments are left
        out."""
        kept: list[str] = []
        quote = ""
        line_starts = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if not quote and line_starts and self.text.startswith(("#", "--"), self.at):
                self._line()
                continue
            if not quote and self.text.startswith(self.delimiter, self.at):
                self.at += len(self.delimiter)
                break
            if quote and char == "\\" and quote != "`":
                kept.append(char)
                self.at += 1
                char = self.text[self.at : self.at + 1]
            elif char == quote:
                quote = ""
            elif not quote and char in "'\"`":
                quote = char
            kept.append(char)
            line_starts = char == "\n" or (line_starts and char.isspace())
            self.at += 1
        return "".join(kept).strip()


class ScriptInterpreter:
    """Goes through a script and the files that it sources; `statements` has the SQL that would be
    sent to the first server.

    Scripts are read as latin1, which keeps every byte. `roots` are the folders that sourced files
    are looked for in.
    """

    def __init__(self, roots: list[Path], std_data: Path) -> None:
        self.statements: list[str] = []
        self._roots = roots
        self._std_data = str(std_data)
        self._variables = dict.fromkeys(("ENGINE", "engine", "engine_type", "TABLE_TYPE"), "InnoDB")
        self._variables |= {
            "MYSQLTEST_VARDIR": str(std_data.parent),
            "MYSQL_TEST_DIR": str(std_data.parent),
        }
        self._connection = "default"
        self._parsing = True
        self._depth = 0
        self._commands: dict[str, Callable[[str, Path], None]] = {
            "sql": lambda text, _: self._send(text),
            "eval": lambda text, _: self._evaluate(text),
            "evalp": lambda text, _: self._evaluate(text),
            "let": lambda text, _: self._let(text),
            "inc": lambda text, _: self._count(text, 1),
            "dec": lambda text, _: self._count(text, -1),
            "connect": lambda text, _: self._connect(text),
            "connection": lambda text, _: self._use(text),
            "sync_slave_with_master": lambda *_: self._use("slave"),
            "sync_slave_sql_with_master": lambda *_: self._use("slave"),
            "source": self._source,
        }

    def file(self, path: Path) -> None:
        """Reads a script."""
        if self._depth >= MOST_DEPTH:
            return
        self._depth += 1
        self._carry_out(ScriptReader(path.read_bytes().decode("latin1")).read(), path)
        self._depth -= 1

    def _carry_out(self, items: list[ScriptCommand | ScriptBlock], path: Path) -> None:
        for item in items:
            if len(self.statements) >= MOST_STATEMENTS:
                return
            if isinstance(item, ScriptBlock):
                for _ in self._rounds(item):
                    self._carry_out(item.body, path)
            elif item.word in ("disable_parsing", "enable_parsing"):
                self._parsing = item.word == "enable_parsing"
            elif self._parsing and item.word in self._commands:
                self._commands[item.word](item.text, path)

    def _rounds(self, block: ScriptBlock) -> Iterator[int]:
        """How often a block is gone through; once where the condition of a loop cannot be known,
        never for an if."""
        for number in range(MOST_ROUNDS if block.word == "while" else 1):
            holds = self._holds(block.condition)
            if holds is False or (holds is None and (number or block.word == "if")):
                return
            yield number

    def _holds(self, condition: str) -> bool | None:
        """None: only a server knows."""
        condition = condition.strip()
        compared = _COMPARISON.fullmatch(condition)
        if compared is not None:
            left, right = self._expand(compared[1]), self._expand(compared[3])
            if left is None or right is None:
                return None
            sides = [side.strip("'\"") for side in (left, right)]
            numbers = [int(side) for side in sides if re.fullmatch(r"-?\d+", side)]
            return _OPERATORS[compared[2]](*(numbers if len(numbers) == 2 else sides))
        wanted = not condition.startswith("!")
        name = re.fullmatch(r"!?\s*\$(\w+)", condition)
        if name is None:
            return None
        value = self._variables.get(name[1], "").strip()
        return (value not in ("", "0")) == wanted

    def _expand(self, text: str) -> str | None:
        """The text with its variables' values, None when one is not set."""
        names = [match[1] or match[2] for match in _VARIABLE.finditer(text)]
        if any(name not in self._variables for name in names):
            return None
        return _VARIABLE.sub(lambda match: self._variables[match[1] or match[2]], text)

    def _evaluate(self, text: str) -> None:
        sql = self._expand(text)
        if sql is not None:
            self._send(sql)

    def _let(self, text: str) -> None:
        match = re.match(r"\$?(\w+)\s*=\s*(.*)", text, re.DOTALL)
        if match is None:
            return
        value = (
            None
            if match[2].startswith(("`", "query_get_value", "convert_error"))
            else self._expand(match[2].strip())
        )
        if value is None:
            self._variables.pop(match[1], None)
        else:
            self._variables[match[1]] = value

    def _count(self, text: str, step: int) -> None:
        name = text.strip().lstrip("$")
        if re.fullmatch(r"-?\d+", self._variables.get(name, "0").strip()):
            self._variables[name] = str(int(self._variables.get(name, "0")) + step)

    def _connect(self, text: str) -> None:
        match = re.match(r"\(?\s*([\w$]+)", text)
        self._connection = match[1] if match else self._connection

    def _use(self, text: str) -> None:
        self._connection = text.strip()

    def _source(self, text: str, path: Path) -> None:
        name = (self._expand(text) or "").strip().rstrip(";").strip()
        base = Path(name).name
        if base.startswith(("sync_slave_sql_with_master", "sync_to_replica")):
            self._connection = "slave"
        elif base == "rpl_connection.inc":
            self._connection = self._variables.get("rpl_connection_name", "master")
        elif name and not (
            "include/" in name and ("include/rpl/" in name or _INCLUDES_LEFT_OUT.match(base))
        ):
            found = next(
                (
                    root / name
                    for root in (*self._roots, path.parent, path.parent.parent)
                    if (root / name).is_file()
                ),
                None,
            )
            if found is not None:
                self.file(found)

    def _send(self, sql: str) -> None:
        if not _OF_A_REPLICA.search(self._connection):
            for folder in ("../../std_data_ln", "../../std_data", "../std_data_ln"):
                sql = sql.replace(folder, self._std_data)
            self.statements.append(sql)
