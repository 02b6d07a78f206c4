"""Info records as files: relay-log.info, master.info, worker-relay-log.info.N, byte for byte.

A server writes an info file from offset 0 and never cuts it (sql/rpl_info_file.cc,
do_prepare_info_for_write): when the new text is shorter, the end of the old one stays behind it. So
the first line says how many lines count, and a reader must not look further. relay-log.info's count
leaves the first line out, master.info's includes it.

`parse` is strict: whatever no server would have written is refused. With `as_server` it reads what
a server would read: digits before garbage are a number, a last line without its line feed is no
line (my_b_gets), what is no number is 0 (MariaDB refuses it), and a missing line is its default
where the server has one (init_intvar_from_file and its like). Real 5.6.24 and 5.7.29 were seen to
read damaged files just so.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, Generic, NoReturn

from checkpoints.bitmap import MAX_BYTES
from checkpoints.errors import CheckpointError, InfoError
from checkpoints.fields import (
    END_MARKER,
    REFUSED,
    SCANNING,
    VERSIONS,
    Field,
    Fields,
    column_of,
    product,
)
from checkpoints.info import R
from checkpoints.kinds import BITMAP

RESTORE = (
    "put back a good copy, or remove the file and give the position again with CHANGE REPLICATION"
    " SOURCE TO; nothing was written"
)
_COUNT_DIGITS, _LOG_NAME_BYTES = 9, 512
_OTHER_FILE = "name a file that the server wrote, or the version that wrote it; nothing was written"


@dataclass(frozen=True, slots=True)
class InfoFile(Generic[R]):
    """What a file says: its `record`, as `version` writes it.

    `stale` is what an older, longer text left behind; `count` is the first line, None in a file
    without one.
    """

    record: R
    version: str
    count: int | None
    stale: bytes

    def encode(self) -> bytes:
        """The file again, with all lines that its version writes."""
        return encode(self.record, self.version) + self.stale


class _Lines:
    """A reader that knows which line it is at."""

    def __init__(self, data: bytes, file: str | None, as_server: bool, scans: bool = False) -> None:
        self._data = data
        self.scans = scans
        self.file = file
        self.as_server = as_server
        self.offset = 0
        self.number = 0

    def next(self) -> bytes | None:
        """The next line without its line feed; None at the end of the file, for a server also when
        the last line has none."""
        self.number += 1
        if self.offset >= len(self._data):
            return None
        end = self._data.find(b"\n", self.offset)
        if end < 0 and self.as_server:
            return None
        if end < 0:
            self.refuse(
                "the last line has no end: the file was cut off in the middle of a line", RESTORE
            )
        line = self._data[self.offset : end]
        self.offset = end + 1
        return line.split(b"\0", 1)[0] if self.as_server else line

    def raw(self, size: int) -> bytes:
        """The next bytes, however many lines they are."""
        self.number += 1
        if len(self._data) - self.offset < size:
            self.refuse(
                f"the bitmap should have {size} bytes and has {len(self._data) - self.offset}: the"
                " file was cut off",
                RESTORE,
            )
        self.offset += size
        return self._data[self.offset - size : self.offset]

    def skip(self, expected: bytes) -> None:
        """Passes over a line that may be there, and otherwise is not this version's but an older
        text's."""
        if self._data.startswith(expected, self.offset):
            self.offset += len(expected)

    def rest(self) -> bytes:
        return self._data[self.offset :]

    def refuse(self, message: str, hint: str) -> NoReturn:
        raise InfoError(message, file=self.file, line=self.number, hint=hint)


def parse(
    record: type[R], data: bytes, server: str, *, file: str | None = None, as_server: bool = False
) -> InfoFile[R]:
    """Reads a file that this server version wrote, or an older one did.

    Raises InfoError for a file that is no such record, naming file and line, and CheckpointError
    where the version has no such file.
    """
    return _parsed(record, data, server, file, as_server)


@functools.lru_cache(maxsize=1024)
def _parsed(
    record: type[R], data: bytes, server: str, file: str | None, as_server: bool
) -> InfoFile[R]:
    """Remembered, since crash tests restart on the same few texts thousands of times, and what
    comes out never changes."""
    version = column_of(server)
    table = record.fields
    if version not in table.files_in:
        raise CheckpointError(
            f"{product(server)} has no {table.file_name}",
            file=file,
            hint=f"read the table mysql.{table.table}, or name the version of the file",
        )
    lines = _Lines(data, file, as_server, version in SCANNING)
    if not data:
        lines.number = 1
        lines.refuse(
            "the file is empty: the server was killed between creating and writing it", RESTORE
        )
    count, first, fields = _head(table, version, lines)
    values: dict[str, Any] = {}
    for number, field in enumerate(fields):
        line = first if number == 0 and first is not None else None
        values[field.name] = _value(field, lines, line, values)
    values.pop("", None)
    if count == table.counts[version]:
        values |= _keyed(table.keyed.get(version, ()), lines)
    for field in table.uncounted(version, count):
        lines.skip(field.kind.to_line(field.missing) + b"\n")
    return InfoFile(_build(record, values, lines), version, count, lines.rest())


def _head(
    table: Fields, version: str, lines: _Lines
) -> tuple[int | None, bytes | None, tuple[Field, ...]]:
    """The count, the first line when it is no count, and the fields that follow."""
    if not table.counted_from:
        return None, None, table.of(version)
    first = lines.next() or b""
    if first.isdigit() and len(first) <= _COUNT_DIGITS and int(first) >= table.counted_from:
        return int(first), None, table.announced(version, int(first))
    if first and not lines.as_server and (b"." not in first or len(first) > _LOG_NAME_BYTES):
        lines.refuse(
            "the first line is neither a number of lines nor the name of a log: this is no"
            f" {table.file_name}",
            _OTHER_FILE,
        )
    return None, first, table.fields[: table.uncounted_fields]


def _value(field: Field, lines: _Lines, line: bytes | None, before: dict[str, Any]) -> Any:
    if field.kind is BITMAP:
        size = before["checkpoint_group_size"]
        if size > MAX_BYTES:
            lines.refuse(f"a bitmap of {size} bytes is larger than any server's", RESTORE)
        return lines.raw(size)
    if line is None:
        line = lines.next()
    if line is None:
        if lines.as_server and field.missing is not REFUSED:
            return field.missing
        lines.refuse(f"the file ends before the line of {field.column}", RESTORE)
    try:
        if not lines.as_server:
            return field.kind.from_line(line)
        return (field.kind.scan if lines.scans else field.kind.convert or field.kind.scan)(line)
    except ValueError as error:
        lines.refuse(f"the line of {field.column} is garbled: {error}", RESTORE)


def _keyed(fields: tuple[Field, ...], lines: _Lines) -> dict[str, Any]:
    """The key=value lines. A server takes them in any order, the first of a key, and passes over
    others; END_MARKER ends them, or the file."""
    found: dict[str, Any] = {}
    if not lines.as_server:
        for field in fields:
            line = lines.next() or b""
            key = field.name.encode() + b"="
            if not line.startswith(key):
                lines.refuse(f"the line of {field.column} does not begin with {key!r}", RESTORE)
            found[field.name] = _value(field, lines, line.removeprefix(key), found)
        if fields and lines.next() != END_MARKER:
            lines.refuse(f"{END_MARKER.decode()} is missing", RESTORE)
        return found
    known = {field.name.encode(): field for field in fields}
    while known and (text := lines.next()) is not None and text != END_MARKER:
        key, equals, value = text.partition(b"=")
        if equals and key in known and known[key].name not in found:
            found[known[key].name] = _value(known[key], lines, value, found)
    return {field.name: field.missing for field in fields} | found


def _build(record: type[R], values: dict[str, Any], lines: _Lines) -> R:
    try:
        return build(record, values)
    except ValueError as error:
        lines.refuse(str(error), RESTORE)


def build(record: type[R], values: dict[str, Any]) -> R:
    """A record of values by field name, some of which it may compute itself (the size of a bitmap);
    those must agree. Raises ValueError."""
    own = _own_names(record)
    built = record(**{name: value for name, value in values.items() if name in own})
    for name in values.keys() - own:
        if getattr(built, name) != values[name]:
            raise ValueError(f"{name} is {values[name]}, but {getattr(built, name)} fits the rest")
    return built


@functools.cache
def _own_names(record: type[R]) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(record))  # type: ignore[arg-type]


def encode(record: R, server: str) -> bytes:
    """What this server version writes at the beginning of the file. Raises CheckpointError for what
    the version does not have."""
    version = column_of(server)
    table = record.fields
    if version not in table.files_in:
        raise CheckpointError(
            f"{product(server)} writes no {table.file_name}",
            hint=f"use the table mysql.{table.table}: files were taken away in 8.3",
        )
    refuse_inexpressible(record, version)
    count = table.counts[version]
    for field in table.uncounted(version, count):
        if getattr(record, field.name) != field.missing:
            raise CheckpointError(
                f"MySQL {version} keeps only the default channel in {table.file_name}",
                column=field.column,
                hint=f"keep channels in mysql.{table.table}, as the server demands (error 3077)",
            )
    parts = [] if count is None else [b"%d\n" % count]
    for field in table.of(version):
        parts.append(_line_of(field, record))
        if field.kind is not BITMAP:
            parts.append(b"\n")
    keyed = table.keyed.get(version, ())
    for field in keyed:
        parts.append(b"%s=%s\n" % (field.name.encode(), _line_of(field, record)))
    if keyed:
        parts.append(END_MARKER + b"\n")
    return b"".join(parts)


def _line_of(field: Field, record: Any) -> bytes:
    try:
        return field.kind.to_line(getattr(record, field.name) if field.name else None)
    except ValueError as error:
        raise CheckpointError(str(error), column=field.column) from None


def refuse_inexpressible(record: Any, version: str) -> None:
    """A field that the version does not have must not silently be lost. Raises CheckpointError."""
    table: Fields = record.fields
    usual = type(record)()
    for field in table.unknown_to(version):
        if getattr(record, field.name) != getattr(usual, field.name):
            raise CheckpointError(
                f"{product(version)} has no {field.column}, which is"
                f" {getattr(record, field.name)!r}",
                column=field.column,
                hint="name a newer version, or leave it at its default",
            )


def versions_of(record: type[R], data: bytes, *, file: str | None = None) -> tuple[str, ...]:
    """The versions that may have written a file, judged by its first line and its key=value lines;
    5.6 and 5.7 both count 7 in relay-log.info."""
    table = record.fields
    if not table.counted_from:
        return table.files_in
    lines = _Lines(data, file, as_server=False)
    count, _, _ = _head(table, VERSIONS[0], lines)
    has_keys = b"\n" + END_MARKER + b"\n" in data
    exact = tuple(
        version
        for version in table.versions_with(count)
        if (version in table.keyed) is (has_keys and bool(table.keyed))
    )
    return (
        exact
        or tuple(
            version
            for version in table.files_in
            if count is not None and (table.counts[version] or 0) > count
        )[:1]
    )
