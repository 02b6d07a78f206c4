"""The table in memory against plain lists: changes, transactions, and every position that it tells
without stepping."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from applier.tables.catalog import Tables
from applier.tables.engine import MemoryTable
from lookup.handler import Counters, DuplicateKey, Ref
from lookup.table import Column, Key, KeyPart, TableDefinition
from tests.oracle.cases import definitions, rows_of
from tests.oracle.engine import (
    RECORD_DELETED,
    Duplicate,
    HandlerError,
    NaiveHandler,
    NaiveTable,
    Record,
    compare_keys,
)

STEPS = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck))
QUICK = settings(suppress_health_check=list(HealthCheck))


class TableMachine(RuleBasedStateMachine):
    """Does the same to a table of a set of tables and to lists; looks at either through whatever
    view there is."""

    fast: MemoryTable
    naive: NaiveTable

    @initialize(definition=definitions())
    def create(self, definition: TableDefinition) -> None:
        self.tables = Tables()
        self.fast = self.tables.create(definition)
        self.naive = NaiveTable(definition)
        self.saved: dict[str, list[Record | None]] = {}
        self.commit()

    def _refs(self) -> list[Ref]:
        return [ref for ref, _ in self.fast.scan()]

    def _records(self) -> list[Record]:
        return [record for record in self.naive.records if record is not None]

    def _same(self, fast: Any, naive: Any) -> None:
        """Both changes go through, or both are refused by the same key."""
        try:
            naive()
        except Duplicate as duplicate:
            with pytest.raises(DuplicateKey) as refused:
                fast()
            assert refused.value.key is duplicate.key
            assert self.fast.get(refused.value.ref) == duplicate.record.row
        else:
            fast()

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        row = data.draw(rows_of(self.fast.definition))
        self._same(lambda: self.fast.insert(row), lambda: self.naive.insert(row))

    @precondition(lambda self: len(self.fast) > 0)
    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.fast) - 1))
        row = data.draw(rows_of(self.fast.definition))
        ref, record = self._refs()[at], self._records()[at]
        self._same(lambda: self.fast.update(ref, row), lambda: self.naive.update(record, row))

    @precondition(lambda self: len(self.fast) > 0)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.fast) - 1))
        record = self._records()[at]
        self.fast.delete(self._refs()[at])
        self.naive.delete(record)

    # transactions; MyISAM has none

    def _keep(self) -> list[Record | None]:
        return copy.deepcopy(self.naive.records)

    def _put_back(self, records: list[Record | None]) -> None:
        if not self.naive.is_myisam:
            self.naive.records = copy.deepcopy(records)

    @rule()
    def commit(self) -> None:
        self.tables.commit()
        self.saved = {"": self._keep()}

    @rule()
    def rollback(self) -> None:
        self.tables.rollback()
        self._put_back(self.saved[""])
        self.saved = {"": self.saved[""]}

    @rule(name=st.sampled_from("ab"))
    def savepoint(self, name: str) -> None:
        self.tables.savepoint(name)
        self.saved.pop(name, None)
        self.saved[name] = self._keep()

    @rule(data=st.data())
    def rollback_to(self, data: st.DataObject) -> None:
        names = [name for name in self.saved if name]
        if names:
            name = data.draw(st.sampled_from(names))
            self.tables.rollback_to(name)
            self._put_back(self.saved[name])
            for later in names[names.index(name) + 1 :]:
                del self.saved[later]

    @rule()
    def continue_with_a_copy(self) -> None:
        """The copy goes on without the transaction; the original stays as it was."""
        before = self.fast.stored_rows()
        self.commit()
        old, self.tables = self.tables, self.tables.copy()
        self.fast = self.tables["d.t"]
        if before:
            self.fast.delete(self._refs()[0])
            self.naive.delete(self._records()[0])
            self.commit()
        assert old["d.t"].stored_rows() == before

    # what it says

    @invariant()
    def rows_in_scan_order(self) -> None:
        assert self.fast.stored_rows() == self.naive.rows()
        assert [row for _, row in self.fast.scan()] == self.naive.rows()
        assert len(self.fast) == len(self.naive.rows())

    @rule()
    def scan_positions(self) -> None:
        counters = Counters()
        handler = NaiveHandler(self.naive, counters, mariadb=False)
        handler.rnd_init()
        refs = self._refs()
        ends = []
        for _ in refs:
            read_one(handler)
            ends.append(counters.read_rnd_next)
        read_one(handler)
        for at, ref in enumerate(refs):
            assert self.fast.reads_to(ref) == ends[at]
            assert self.fast.reads_to(ref, free_slots=False) == at + 1
            assert [self.fast.reads_to(later, ref) for later in refs[at + 1 :]] == [
                end - ends[at] for end in ends[at + 1 :]
            ]
            assert self.fast.reads_to_end(ref) == counters.read_rnd_next - ends[at]
        assert self.fast.reads_to_end() == counters.read_rnd_next
        assert self.fast.reads_to_end(free_slots=False) == len(refs) + 1

    @rule(data=st.data())
    def key_positions(self, data: st.DataObject) -> None:
        keys = [key for key in self.fast.definition.keys if key.kind == "btree"]
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        wanted = data.draw(rows_of(self.fast.definition))
        everything = tuple(range(len(wanted)))
        view = self.fast.ordered(key)
        value = view.value_of(wanted, everything)
        handler = NaiveHandler(self.naive, Counters(), mariadb=False)
        handler.index_init(key)
        entries = handler._entries()
        orders = [
            compare_keys(self.naive.definition, key, record.row, wanted) for record in entries
        ]
        assert view.group(value) == (orders.count(-1), orders.count(-1) + orders.count(0))
        assert len(view) == len(entries)
        ref_of = dict(zip(map(id, self._records()), self._refs(), strict=True))
        for at, record in enumerate(entries):
            own = view.value_of(record.row, everything)
            assert view.rank(own, ref_of[id(record)]) == at
            assert view.rank_after(own, ref_of[id(record)]) == at + 1
        assert view.distinct() == len({view.value_of(record.row, everything) for record in entries})

    @rule(data=st.data())
    def matches(self, data: st.DataObject) -> None:
        wanted = data.draw(rows_of(self.fast.definition))
        columns = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(wanted))), min_size=1))))
        image = tuple(wanted[column] for column in columns)
        refs = [
            ref
            for ref, row in self.fast.scan()
            if tuple(row[column] for column in columns) == image
        ]
        assert list(self.fast.matches(columns, image)) == refs
        assert self.fast.first_match(columns, image) == (refs[0] if refs else None)
        for at, ref in enumerate(refs):
            assert self.fast.next_match(columns, image, ref) == (
                refs[at + 1] if at + 1 < len(refs) else None
            )

    @rule(data=st.data())
    def unique_lookups(self, data: st.DataObject) -> None:
        definition = self.fast.definition
        wanted = data.draw(rows_of(definition))
        everything = tuple(range(len(wanted)))
        for key in definition.keys:
            if not key.unique:
                continue
            by_primary = key is definition.primary
            find = (
                self.fast.primary_lookup(everything)
                if by_primary
                else self.fast.unique_lookup(key, everything)
            )
            found = find(wanted)
            same = [
                record.row
                for record in self._records()
                if compare_keys(definition, key, record.row, wanted) == 0
                and all(wanted[column] is not None for column in key.columns)
            ]
            assert ([] if found is None else [self.fast.get(found)]) == same


def read_one(handler: NaiveHandler) -> None:
    """rnd_next until it gives a row or the end of the file."""
    while True:
        try:
            handler.rnd_next()
        except HandlerError as error:
            if error.code == RECORD_DELETED:
                continue
        return


def test_table_in_memory_is_a_table() -> None:
    run_state_machine_as_test(TableMachine, settings=STEPS)


@QUICK
@given(definition=definitions(), data=st.data())
def test_rows_per_value_follow_the_table(definition: TableDefinition, data: st.DataObject) -> None:
    table = MemoryTable(definition)
    rows = data.draw(st.lists(rows_of(definition), max_size=8))
    for row in rows:
        try:
            table.insert(row)
        except DuplicateKey:
            continue
        for key in definition.keys:
            if key.kind == "btree":
                values = {
                    table.ordered(key).value_of(held, tuple(range(len(held))))
                    for held in table.stored_rows()
                }
                assert table.rows_per_value(key) == len(table) / len(values)


def int_table(*keys: Key, engine: str = "InnoDB") -> MemoryTable:
    columns = (Column("a", "int", nullable=False), Column("b", "int"))
    return MemoryTable(TableDefinition("d", "t", columns, keys, engine=engine))


def test_rows_per_value_of_a_table_that_became_empty_is_zero() -> None:
    key = Key("b", (KeyPart(1),))
    table = int_table(key)
    ref = table.insert((1, 1))
    assert table.rows_per_value(key) == 1
    table.delete(ref)
    assert table.rows_per_value(key) == 0


def test_a_descending_primary_key_orders_the_entries_of_another_key() -> None:
    key = Key("b", (KeyPart(1),))
    table = int_table(Key("PRIMARY", (KeyPart(0, descending=True),), unique=True), key)
    table.load([(1, 7), (2, 7), (3, 8)])
    view = table.ordered(key)
    assert table.stored_rows() == [(3, 8), (2, 7), (1, 7)]
    assert view.group(view.value_of((0, 7), (0, 1))) == (0, 2)
    assert view.distinct() == 2


def test_a_free_slot_of_fixed_length_is_read_and_filled_again() -> None:
    table = int_table(engine="MyISAM")
    refs = [table.insert((number, None)) for number in range(3)]
    table.delete(refs[1])
    assert table.reads_to(refs[2]) == 3
    assert table.reads_to(refs[2], free_slots=False) == 2
    assert table.insert((9, None)) == refs[1]
    assert table.stored_rows() == [(0, None), (9, None), (2, None)]
