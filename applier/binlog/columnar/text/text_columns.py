"""The part of the text kernel that writes the value of a column, by its kind."""

from __future__ import annotations

from applier.binlog.columnar.memory import kernel, load1, load8
from applier.binlog.columnar.text.text_control import TextBlock, TextColumn, TextKind
from applier.binlog.columnar.text.text_doubles import load_float, put_double
from applier.binlog.columnar.text.text_json import put_json
from applier.binlog.columnar.text.text_values import (
    FIRST_YEAR,
    put_date,
    put_datetime,
    put_decimal,
    put_hex,
    put_number,
    put_signed,
    put_text,
    put_time,
    put_timestamp,
    signed,
)
from applier.binlog.columnar.value_kernels import big, little


@kernel
def put_binary(control: int, at: int, kind: int, start: int, end: int) -> int:
    """A value whose text takes some work: a binary fraction, or a document."""
    tens = load8(control + 8 * TextBlock.TENS)
    if kind == TextKind.DOUBLE:
        return put_double(at, load8(start), tens)
    if kind == TextKind.FLOAT:
        return put_double(at, load_float(start), tens)
    if kind == TextKind.JSON:
        frames = load8(control + 8 * TextBlock.FRAMES)
        return put_json(at, start, end, frames, load8(control + 8 * TextBlock.PRINTABLE), tens)
    return 0


@kernel
def put_value(control: int, at: int, column: int, start: int, end: int) -> int:
    """The value whose bytes are [start, end)."""
    kind = load8(column + 8 * TextColumn.KIND)
    first = load8(column + 8 * TextColumn.FIRST)
    if kind == TextKind.TEXT:
        return put_text(at, start, end, first * load8(control + 8 * TextBlock.PRINTABLE))
    if kind == TextKind.SIGNED:
        return put_signed(at, signed(little(start, end - start), end - start))
    if kind == TextKind.UNSIGNED:
        return put_number(at, little(start, end - start))
    if kind == TextKind.BITS:
        return put_number(at, big(start, end - start))
    if kind == TextKind.HEX:
        return put_hex(at, start, end, first)
    if kind == TextKind.DECIMAL:
        return put_decimal(at, start, first, load8(column + 8 * TextColumn.SECOND))
    if kind == TextKind.DATE:
        return put_date(at, little(start, 3))
    if kind == TextKind.DATETIME:
        return put_datetime(at, start, first)
    if kind == TextKind.TIMESTAMP:
        return put_timestamp(at, start, first)
    if kind == TextKind.TIME:
        return put_time(at, start, first)
    if kind == TextKind.YEAR:
        return put_number(at, FIRST_YEAR + load1(start) if load1(start) else 0)
    return put_binary(control, at, kind, start, end)
