"""Where a record of the replica is kept: one Protocol, a file or a row of a table behind it.

As in the server a record is read once, at the start, and written on every flush from then on;
whether a flush writes and syncs is the table in `checkpoints.sync_rules`. A repository whose
content cannot be read refuses to be written, so that a bad start loses nothing.
"""

from __future__ import annotations

from typing import Generic, Protocol

from checkpoints.disk import Disk, read_file
from checkpoints.errors import CheckpointError
from checkpoints.info import R, RelayLogInfo, SourceInfo, WorkerInfo
from checkpoints.info_files import InfoFile, encode, parse
from checkpoints.info_rows import from_row, key_columns, to_row
from checkpoints.sync_rules import Flush, Occasion, RecordStorage, Subject, SyncCounter, rule_of
from checkpoints.table_store import Key, TableStore

SUBJECTS: dict[type, Subject] = {
    RelayLogInfo: Subject.RELAY_LOG_INFO,
    SourceInfo: Subject.SOURCE_INFO,
    WorkerInfo: Subject.WORKER_INFO,
}


class Repository(Protocol[R]):
    """Keeps one record. `counter` says when a flush writes and syncs; its period may be changed at
    any time."""

    counter: SyncCounter

    @property
    def place(self) -> str:
        """For messages: the file, or the table and the key."""
        ...

    @property
    def kept(self) -> RecordStorage:
        """In what kind of place: a file, or a table that takes part in transactions or does not."""

    def read(self) -> R | None:
        """What is kept, None when there is nothing. Raises InfoError for what is no record."""
        ...

    def flush(self, record: R, occasion: Occasion) -> Flush:
        """Writes and syncs as the rules say for this occasion, and tells which of it was done."""
        ...

    def remove(self) -> None:
        """RESET REPLICA: there is nothing kept any more."""
        ...


class FileRepository(Generic[R]):
    """An info file. Overwritten in place, never cut; a crash between its creation and the first
    write leaves it empty.

    Implements `Repository`.
    """

    def __init__(
        self,
        disk: Disk,
        record: type[R],
        server: str,
        period: int,
        *,
        number: int | None = None,
        name: str | None = None,
        as_server: bool = False,
    ) -> None:
        """`number` is that of a worker, from 1; `name` stands in for the usual file name;
        `as_server` reads damage as a server would."""
        self.counter = SyncCounter(rule_of(SUBJECTS[record], RecordStorage.FILE, server), period)
        self._disk = disk
        self._record = record
        self._server = server
        self._as_server = as_server
        self._name = (name or record.fields.file_name) + ("" if number is None else f".{number}")
        self._readable = False

    @property
    def place(self) -> str:
        return self._name

    @property
    def kept(self) -> RecordStorage:
        return RecordStorage.FILE

    def read(self) -> R | None:
        found = self.read_file()
        return None if found is None else found.record

    def read_file(self) -> InfoFile[R] | None:
        """The record with what else the file tells: its count and what an older text left
        behind."""
        self._readable = False
        data = read_file(self._disk, self._name)
        found = (
            None
            if data is None
            else parse(self._record, data, self._server, file=self._name, as_server=self._as_server)
        )
        self._readable = True
        return found

    def flush(self, record: R, occasion: Occasion) -> Flush:
        _refuse_unread(self._readable, self._name)
        if record.channel_name:
            raise CheckpointError(
                f"{self._name}: channel {record.channel_name!r} cannot be kept in a file",
                file=self._name,
                hint=(
                    "use TABLE, as the server demands of all channels but the default one (error"
                    " 3077)"
                ),
            )
        data = encode(record, self._server)
        done = self.counter.flush(occasion)
        if done.writes:
            file = self._disk.open(self._name, create=True)
            try:
                file.write(0, data)
                if done.syncs:
                    file.fsync()
            finally:
                file.close()
        return done

    def remove(self) -> None:
        if self._name in self._disk.names():
            self._disk.remove(self._name)
        self._readable = True


class TableRepository(Generic[R]):
    """A row of an info table, found by channel (and worker) from 5.7 on, by id in 5.6;
    slave_master_info of 5.6 has one row only.

    Implements `Repository`.
    """

    def __init__(
        self,
        store: TableStore,
        record: type[R],
        server: str,
        period: int,
        *,
        channel: str = "",
        number: int | None = None,
    ) -> None:
        self.counter = SyncCounter(rule_of(SUBJECTS[record], kept_in(store), server), period)
        self._store = store
        self._record = record
        self._server = server
        self._channel = channel
        self._number = number
        self._readable = False
        if channel and "Channel_name" not in key_columns(record, server):
            raise CheckpointError(
                f"MySQL {server} has no channels",
                hint="leave the channel out; channels came with 5.7",
            )

    @property
    def place(self) -> str:
        key = ", ".join(f"{column}={value!r}" for column, value in self._key().items())
        return f"mysql.{self._record.fields.table}" + (f" ({key})" if key else "")

    @property
    def kept(self) -> RecordStorage:
        return kept_in(self._store)

    def read(self) -> R | None:
        self._readable = False
        key = self._key()
        rows = [
            row
            for row in self._store.rows(self._record.fields.table)
            if all(row.get(name) == value for name, value in key.items())
        ]
        if len(rows) > 1:
            raise CheckpointError(
                f"{self.place}: {len(rows)} rows instead of one",
                hint="remove the rows that are too many; nothing was written",
            )
        found = from_row(self._record, rows[0], self._server) if rows else None
        self._readable = True
        return found

    def flush(self, record: R, occasion: Occasion) -> Flush:
        _refuse_unread(self._readable, self.place)
        row = to_row(record, self._server)
        key = self._key()
        wrong = [column for column, value in key.items() if row[column] != value]
        if wrong:
            raise CheckpointError(
                f"{self.place}: the record's {wrong[0]} is {row[wrong[0]]!r}", column=wrong[0]
            )
        done = self.counter.flush(occasion)
        if done.writes:
            self._store.write(self._record.fields.table, key, row)
        return done

    def remove(self) -> None:
        self._store.delete(self._record.fields.table, self._key())
        self._readable = True

    def _key(self) -> Key:
        values = {"Channel_name": self._channel, "Id": 1 if self._number is None else self._number}
        return {
            column: values[column]
            for column in key_columns(self._record, self._server)
            if column in values
        }


def kept_in(store: TableStore) -> RecordStorage:
    """What sort of table a store keeps."""
    return RecordStorage.TABLE if store.transactional else RecordStorage.NONTRANSACTIONAL_TABLE


def _refuse_unread(readable: bool, place: str) -> None:
    if not readable:
        raise CheckpointError(
            f"{place} was not read, or not with success",
            hint="read it first, or remove it if it is worth nothing",
        )
