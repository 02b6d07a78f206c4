"""What finding the rows of one event costs on average, in closed form: a formula for each way of
finding them (`lookup.strategies`). What they take for granted is said in `lookup.cost`."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lookup.chances import furthest, touched, unread_by_chance, unread_of_group
from lookup.search import ReadCosts, engine_read_costs
from lookup.table_shape import NULLABLE_UNIQUE, ORDERS, OTHER, PRIMARY, EventShape, TableShape
from lookup.versions import ServerRules


@dataclass(frozen=True, slots=True)
class ExpectedCounters:
    """Mean handler calls; the names are those of `lookup.handler.Counters`."""

    read_first: float = 0.0
    read_key: float = 0.0
    read_next: float = 0.0
    read_rnd: float = 0.0
    read_rnd_next: float = 0.0
    write: float = 0.0
    update: float = 0.0
    delete: float = 0.0

    def as_dict(self) -> dict[str, float]:
        """Mean calls by the name of their counter."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def plus(self, other: ExpectedCounters) -> ExpectedCounters:
        """The calls of both."""
        return ExpectedCounters(
            *(getattr(self, field.name) + getattr(other, field.name) for field in fields(self))
        )

    def times(self, factor: float) -> ExpectedCounters:
        """The calls of `factor` such events."""
        return ExpectedCounters(*(getattr(self, field.name) * factor for field in fields(self)))

    @property
    def rows_read(self) -> float:
        """As `Counters.rows_read`: rows and misses that the engine was asked for."""
        return (
            max(self.read_key - self.read_rnd - self.read_first, 0.0)
            + self.read_next
            + self.read_rnd
            + self.read_rnd_next
        )

    @property
    def rows_changed(self) -> float:
        """Mean rows that are changed or deleted."""
        return self.update + self.delete


@dataclass(frozen=True, slots=True)
class Draw:
    """An event's rows in their table, in numbers. Places are those of the scan: rows, and free
    slots where they are read."""

    table: TableShape
    event: EventShape
    costs: ReadCosts
    rows: float
    """Rows of the table, at least those that the event finds in it."""
    copies: float
    places: float
    window: float
    """Places that the rows are drawn from; they lie behind `start` others."""
    start: float
    shrinks: bool
    """A deleted row is not read again."""

    @property
    def deletes(self) -> bool:
        """The rows are deleted, not updated."""
        return self.event.kind == "delete"

    @property
    def originally(self) -> float:
        """Rows of the table before the missing ones went missing."""
        return max(self.rows + self.event.rows * self.event.missing, 1.0)

    @property
    def ahead(self) -> float:
        """The share of pairs of the event's rows whose earlier one stands first in the table."""
        return ORDERS[self.event.order]

    @property
    def share_before(self) -> float:
        """How much of the rest of the table stands before one of the event's rows, on average."""
        return (self.start + (self.window - 1) / 2) / (self.places - 1) if self.places > 1 else 0.5

    @property
    def share_behind(self) -> float:
        """How much of the rest of the table stands behind all places that the rows are drawn
        from."""
        return (
            (self.places - self.start - self.window) / (self.places - 1) if self.places > 1 else 0.0
        )


def draw_of(table: TableShape, event: EventShape, rules: ServerRules) -> Draw:
    """The rows of an event, drawn from a table under a server's rules."""
    slots = table.fixed and table.engine.lower() == "myisam" and rules.counts_free_slots
    found = event.rows * (1 - event.missing)
    rows = max(table.rows, found)
    copies = (
        min(table.identical_rows, rows / found)
        if found > 1
        else min(table.identical_rows, max(rows, 1.0))
    )
    places = rows + (table.free_slots if slots else 0.0)
    window = min(places, max((event.last - event.first) * places, found))
    start = min(event.first * places, places - window)
    costs = engine_read_costs(table.traits, rules)
    return Draw(
        table=table,
        event=event,
        costs=costs,
        rows=rows,
        copies=copies,
        places=places,
        window=window,
        start=start,
        shrinks=event.kind == "delete" and not slots,
    )


# one row at a time


def unique_reads(draw: Draw, rules: ServerRules) -> ExpectedCounters:
    """A read for each row; of InnoDB's primary key also the position that it is read by."""
    rows, costs = draw.event.rows, draw.costs
    if draw.table.key != PRIMARY:
        return ExpectedCounters(read_key=rows)
    return ExpectedCounters(read_rnd=rows * costs.primary_rnd, read_key=rows * costs.primary_key)


def table_reads(draw: Draw, rules: ServerRules) -> ExpectedCounters:
    """Each row from the top; a missing row costs all rows that are left and the end, as often as
    the server tries."""
    rows, missing, passes = draw.event.rows, draw.event.missing, rules.table_scan_passes
    found, pairs = rows * (1 - missing), rows * (rows - 1) / 2
    position = draw.start + (draw.window + 1) / (draw.copies + 1)
    to_rows, to_end = found * position, rows * missing * (draw.places + 1)
    if draw.shrinks:
        to_rows -= draw.ahead * pairs * (1 - missing) ** 2
        to_end -= pairs * missing * (1 - missing)
    scans = found + passes * rows * missing
    return ExpectedCounters(
        read_first=scans * draw.costs.scan_first,
        read_key=scans * draw.costs.scan_key,
        read_rnd_next=max(to_rows, found) + passes * max(to_end, 0.0),
    )


def key_reads(draw: Draw, rules: ServerRules) -> ExpectedCounters:
    """A key read for each row, then steps over the rows of its value that stand ahead of it."""
    to_end = rules.steps_to_index_end or rules.find_row
    steps = 0.0
    for group in _groups(draw):
        if group.nulls or draw.table.key != NULLABLE_UNIQUE:
            steps += group.share * draw.event.rows * _steps(draw, group.rows, to_end=to_end)
    return ExpectedCounters(read_key=draw.event.rows, read_next=steps)


@dataclass(frozen=True, slots=True)
class _Group:
    """Key values that stand in as many rows each: the share of the table's rows that have them, the
    rows of one value."""

    share: float
    rows: float
    nulls: bool = False


def _groups(draw: Draw) -> list[_Group]:
    """The values of the key: NULL, if any row has it, and the others."""
    table, total = draw.table, draw.originally
    groups = []
    if table.null_share > 0:
        groups.append(_Group(table.null_share, max(table.null_share * total, 1.0), nulls=True))
    if table.null_share < 1:
        repeated = table.rows_per_value if table.key == OTHER else 1.0
        groups.append(_Group(1 - table.null_share, min(repeated, total)))
    return groups


def _companions(draw: Draw, group: float) -> float:
    """How many other rows of the event have the same key value."""
    event, copies = draw.event, draw.copies
    if event.distinct_values is not None:
        return event.rows / event.distinct_values - 1
    kinds = draw.originally / copies
    return max((event.rows - 1) * (group / copies - 1) / (kinds - 1), 0.0) if kinds > 1 else 0.0


def _steps(draw: Draw, group: float, *, to_end: bool) -> float:
    """Mean steps behind the first entry of a value that stood in `group` rows."""
    event, missing = draw.event, draw.event.missing
    others, deleted = _companions(draw, group), (1 - missing) if draw.deletes else 0.0
    position = ((group + 1) / (draw.copies + 1) - 1) * 2 * draw.share_before
    gone_before = min((others + 1) * event.statement_events, max(group, others + 1)) - 1
    steps = position - (others * missing + gone_before * deleted * draw.ahead) / 2
    if not missing:
        return max(steps, 0.0)
    gone = others * (missing + deleted / 2)
    left = max(group - 1 - gone, 0.0)
    if not to_end:
        return (1 - missing) * max(steps, 0.0) + missing * left
    standing = draw.rows - (deleted * (event.rows - 1) / 2)
    any_left = min(group - 1, 1.0) * (1 - (gone / (group - 1)) ** (group - 1)) if group > 1 else 0.0
    return (1 - missing) * max(steps, 0.0) + missing * any_left * (standing + left) / 2


# all rows of an event at once


def hash_over_table_reads(draw: Draw, rules: ServerRules) -> ExpectedCounters:
    """To the row that empties the hash; to the end when a row is missing, and often once more (the
    read position left behind)."""
    rows, missing = draw.event.rows, draw.event.missing
    none_missing = (1 - missing) ** rows
    reads = none_missing * (draw.start + furthest(rows, draw.window, draw.copies))
    reads += (1 - none_missing) * (draw.places + 1)
    again, deleted = _second_scan(draw)
    reads += again * (draw.places + 1) - (deleted if draw.shrinks else 0.0)
    scans = 1 + again
    return ExpectedCounters(
        read_first=scans * draw.costs.scan_first,
        read_key=scans * draw.costs.scan_key,
        read_rnd_next=reads,
    )


def _second_scan(draw: Draw) -> tuple[float, float]:
    """(How often there is a second scan; rows deleted before it, times that).

    With rows missing the event is read on behind the row that matched last, and what follows is
    hashed and scanned for again: there is no second scan when the event ends with the row that
    stands furthest, or when no row matched.
    """
    rows, missing = draw.event.rows, draw.event.missing
    if rows <= 1 or not missing:
        return 0.0, 0.0
    if draw.event.order == "scan":
        return missing - missing**rows, missing * (rows - 1) * (1 - missing)
    all_found = (1 - missing) ** rows
    some, found = 1 - all_found - missing**rows, rows * (1 - missing) - rows * all_found
    if draw.event.order == "random":
        return some * (1 - 1 / rows), found * (1 - 1 / rows)
    only_last = (1 - missing) * missing ** (rows - 1)
    return some - only_last, found - only_last


def hash_over_index_reads(draw: Draw, rules: ServerRules) -> ExpectedCounters:
    """Every distinct value is read to its end but the last, which is left at the row that empties
    the hash.

    With rows missing it is left nowhere, and each failing read beyond the values counts; the sum is
    the same as if those rows were there (a value that is gone altogether costs its key read and one
    step).
    """
    rows, missing = draw.event.rows, draw.event.missing
    none_missing = (1 - missing) ** rows
    values, entries, unread = _values(draw)
    return ExpectedCounters(
        read_key=values, read_next=max(entries - 1 - none_missing * unread, 0.0)
    )


def _values(draw: Draw) -> tuple[float, float, float]:
    """(Distinct values of the event, entries that have them, entries behind the row that empties
    the hash)."""
    event, table = draw.event, draw.table
    groups = _groups(draw)
    if event.distinct_values is not None:
        rows = sum(group.share * group.rows for group in groups)
        each = event.rows / event.distinct_values
        behind = (rows - 1) * draw.share_behind
        inside = 1 + (rows - 1) * (draw.window - 1) / max(draw.places - 1, 1.0)
        return (
            event.distinct_values,
            event.distinct_values * rows,
            behind + max(inside - furthest(each, max(inside, each), draw.copies), 0.0),
        )
    total, copies = draw.originally, draw.copies
    values = entries = unread = 0.0
    only_nulls = (
        1 - touched(total, total * (1 - table.null_share), event.rows) if table.null_share else 0.0
    )
    for group in groups:
        hit = (
            group.share
            * total
            / group.rows
            * touched(total / copies, group.rows / copies, event.rows)
        )
        values, entries = values + hit, entries + hit * group.rows
        if group.nulls:
            unread += only_nulls * max(group.rows - furthest(event.rows, group.rows, copies), 0.0)
        else:
            unread += (1 - only_nulls) * _unread(draw, group.rows)
    return max(values, 1.0), entries, unread


def _unread(draw: Draw, group: float) -> float:
    """Entries of the last value behind the last row of the event that has it."""
    event, copies = draw.event, draw.copies
    if group <= 1:
        return 0.0
    behind = (group - 1) * draw.share_behind
    inside = 1 + (group - 1) * (draw.window - 1) / max(draw.places - 1, 1.0)
    if copies > 1:
        return behind + max(inside - furthest(1 + _companions(draw, group), inside, copies), 0.0)
    if draw.window < draw.places:
        return behind + unread_by_chance(inside, min(event.rows / max(draw.window, 1.0), 1.0))
    return unread_of_group(group, draw.originally, event.rows)


# whether every event of a shape costs the same


def always(draw: Draw) -> bool:
    """A key that leads to the row: nothing is left to chance but whether the row is there."""
    return True


def _all_differ(draw: Draw) -> bool:
    return not draw.event.missing and draw.table.identical_rows <= 1


def _every_place(draw: Draw) -> bool:
    """All rows of a part that begins at a row: within one, the rows read are a mean of two."""
    whole = abs(draw.start - round(draw.start)) < 1e-9
    return _all_differ(draw) and whole and abs(draw.window - draw.event.rows) < 1e-9


def exact_table(draw: Draw) -> bool:
    """All rows of a part of the table; where deletes make it shorter, in an order that is known."""
    return _every_place(draw) and (not draw.shrinks or draw.event.order != "random")


def exact_hash_over_table(draw: Draw) -> bool:
    """All rows of a part of the table."""
    return _every_place(draw)


def exact_key(draw: Draw) -> bool:
    """No value stands in several rows, NULL neither."""
    table = draw.table
    alone = table.key != OTHER or table.rows_per_value <= 1
    return _all_differ(draw) and not table.null_share and alone


def exact_hash_over_index(draw: Draw) -> bool:
    """Likewise, or all rows of each value, or all rows of the table."""
    event, table = draw.event, draw.table
    if exact_key(draw):
        return True
    if not _all_differ(draw) or table.null_share:
        return False
    whole = (
        event.distinct_values is not None
        and abs(event.distinct_values * table.rows_per_value - event.rows) < 1e-9
    )
    return whole or abs(event.rows - draw.rows) < 1e-9
