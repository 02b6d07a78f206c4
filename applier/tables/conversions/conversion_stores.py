"""The new value of a conversion: what a column holds of a number, a text or a moment
(`Field::store`, sql/field.cc).

What does not fit is cut, clipped or zero, as where the SQL mode lets it pass; where it does not,
the statement is not in a log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from applier.binlog.charsets import charset
from applier.binlog.types import ValueRefused, from_sql, json
from applier.binlog.types.numbers import (
    TWO_POINTS,
    float_codec,
    float_limit,
    integer_range,
    rounded_float,
)
from applier.binlog.types.texts import MAX_BYTES, strip_pad
from applier.tables.collations.collation import sort_key
from applier.tables.collations.weight_keys import Incomparable
from applier.tables.conversions.conversion_moments import MOMENTS_OF
from applier.tables.conversions.conversion_rules import ConversionRules, MakeStore, Store, raw_text
from applier.tables.conversions.recoding import WIDE_CHARSETS, encoded, well_formed, with_questions
from lookup.table import Column

_NUMBER = re.compile(r"[ \t\n\v\f\r]*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")
_SIGNED = re.compile(r"[ \t\n\v\f\r]*[-+]?[0-9]{1,21}\Z")
_UNSIGNED = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,21})\Z")
_ENUM_DIGITS = 5


# numbers


def _clipped(write: Store) -> Store:
    """A writer of SQL values that takes the closest one for what does not fit."""

    def store(value: Any) -> Any:
        try:
            return write(value)
        except ValueRefused as refused:
            return refused.closest

    return store


def _integer(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    low, high = integer_range(new)
    return lambda value: min(max(value, low), high)


def _real(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    """(M,D) rounds and limits."""
    pack, most, rounded = float_codec(new).pack, float_limit(new), rounded_float(new)

    def store(value: Any) -> bytes:
        number = float(value)
        if new.unsigned and number < 0:
            number = 0.0
        return pack(min(max(rounded(number), -most), most))

    return store


def _decimal(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    write = _clipped(from_sql(new))
    zero = Decimal(0)

    def store(value: Any) -> Any:
        if new.unsigned and value < 0:
            value = zero
        return write(value)

    return store


def _bit(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    """More than the column's bits is all of them; a negative number has 64."""
    most = (1 << (new.length or 1)) - 1

    def store(value: Any) -> int:
        number = int(value) & (1 << 64) - 1
        return min(number, most)

    return store


def _year(_old: Column, _new: Column, _rules: ConversionRules) -> Store:
    def store(value: Any) -> int:
        return _year_number(int(value), zero_is_2000=False)

    return store


def _year_number(number: int, *, zero_is_2000: bool) -> int:
    if number < 0 or 100 <= number <= 1900 or number > 2155:
        return 0
    if number == 0 and not zero_is_2000:
        return 0
    return number + 100 if number < 70 else number if number < 100 else number - 1900


def _year_of_moment(_old: Column, _new: Column, _rules: ConversionRules) -> Store:
    return lambda moment: _year_number(moment.parts[0], zero_is_2000=False)


def _year_of_text(old: Column, _new: Column, rules: ConversionRules) -> Store:
    """Four bytes that make zero are the year 0000, fewer or more the year 2000."""
    encode = _encoder(old)

    def store(value: Any) -> int:
        text = raw_text(value)
        if _NUMBER.match(text) is None:
            return 0
        return _year_number(_parsed_integer(text, rules), zero_is_2000=len(encode(value)) != 4)

    return store


def _number_of_text(make: MakeStore, parse: Callable[[str], Any]) -> MakeStore:
    def made(old: Column, new: Column, rules: ConversionRules) -> Store:
        store = make(old, new, rules)
        return lambda value: store(parse(raw_text(value)))

    return made


def text_number(text: str) -> Decimal:
    """What a text begins with, as a number."""
    match = _NUMBER.match(text)
    return Decimal(match[1]) if match else Decimal(0)


def _parsed_integer(text: str, rules: ConversionRules) -> int:
    """Rounded half away from zero (`my_strntoull10rnd`): in 5.x and MariaDB, a second point makes
    it forget the first one."""
    twice = TWO_POINTS.match(text)
    if twice is not None and rules.flavour != "8.0+":
        return int(twice[1] + twice[2] + twice[3])
    number = text_number(text)
    if number and number.adjusted() > 40:
        return -(10**40) if number < 0 else 10**40
    return int(number.to_integral_value("ROUND_HALF_UP"))


def _integer_of_text(_old: Column, new: Column, rules: ConversionRules) -> Store:
    """Up to 5.7, what 64 bits do not hold is the greatest number of an unsigned column, even if it
    is negative."""
    low, high = integer_range(new)
    turns = new.unsigned and rules.flavour == "5.x"

    def store(value: Any) -> int:
        number = _parsed_integer(raw_text(value), rules)
        if turns and number <= -(1 << 64):
            return high
        return min(max(number, low), high)

    return store


def _parsed_real(text: str) -> float:
    match = _NUMBER.match(text)
    return float(match[1]) if match else 0.0


# text


def _encoder(old: Column) -> Callable[[Any], bytes]:
    """The bytes of a text as the old column has them."""
    own = charset(old.charset or ("utf8mb4" if old.type == "json" else "latin1"))
    return lambda value: value if isinstance(value, bytes) else encoded(own, value)


def _text(old: Column, new: Column, rules: ConversionRules) -> Store:
    own, is_char = charset(new.charset), new.type == "char"
    limit, most = (
        (new.length, None) if new.type in ("char", "varchar") else (None, MAX_BYTES[new.type])
    )

    def store(value: Any) -> bytes:
        if isinstance(value, bytes) and rules.flavour == "mariadb":
            value = with_questions(own, value)
        if isinstance(value, bytes):
            unit = len(own.pad)
            data = well_formed(
                own,
                value if len(value) % unit == 0 else b"\0" * (unit - len(value) % unit) + value,
                rules,
            )
        else:
            data = encoded(own, value)
        if limit is not None:
            data = own.cut(data, limit)
        if most is not None and len(data) > most:
            data = own.whole(data, most)
        return strip_pad(data, own.pad) if is_char else data

    return store


def _binary(old: Column, new: Column, _rules: ConversionRules) -> Store:
    encode, fixed = _encoder(old), new.type == "binary"
    most = new.length if new.type in ("binary", "varbinary") else MAX_BYTES[new.type]

    def store(value: Any) -> bytes:
        data = encode(value)[:most]
        return data.rstrip(b"\0") if fixed else data

    return store


# ENUM, SET, JSON


def _label_key(new: Column) -> Callable[[str | bytes], Any]:
    """What two texts have in common that are the same label in the column's collation.

    Bytes of a binary column are taken as they stand in the new character set; None where they are
    not text in it.
    """
    own = charset(new.charset)
    pad = "" if own.name == "binary" else " "
    key = sort_key(Column("", "varchar", charset=new.charset, collation=new.collation)) or bytes

    def of(label: str | bytes) -> Any:
        try:
            return key(
                label.rstrip(pad.encode())
                if isinstance(label, bytes)
                else encoded(own, label.rstrip(pad))
            )
        except Incomparable:
            return None

    return of


def _enum(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    return lambda value: value if 0 < value <= len(new.labels) else 0


def _set(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    everything = (1 << len(new.labels)) - 1
    return lambda value: value & everything


def _enum_of_text(_old: Column, new: Column, _rules: ConversionRules) -> Store:
    """A label, or its number in at most five digits."""
    key = _label_key(new)
    places = {key(label): at for at, label in reversed(list(enumerate(new.labels, 1)))}

    def store(value: Any) -> int:
        text = raw_text(value)
        found = places.get(key(value if isinstance(value, bytes) else text))
        if found is not None:
            return found
        number = _UNSIGNED.match(text) if len(text) <= _ENUM_DIGITS else None
        return int(number[1]) if number is not None and int(number[1]) <= len(new.labels) else 0

    return store


def _set_of_text(old: Column, new: Column, rules: ConversionRules) -> Store:
    """Labels that the new column lacks are left out; spaces count but at the text's end
    (`find_set`, sql/strfunc.cc)."""
    key, pad = _label_key(new), "" if new.charset == "binary" else " "
    places = {key(label): 1 << at for at, label in reversed(list(enumerate(new.labels)))}
    everything, signs = (1 << len(new.labels)) - 1, old.charset not in WIDE_CHARSETS

    def store(value: Any) -> int:
        text = raw_text(value)
        mask = 0
        labels: Sequence[str | bytes] = (
            value.rstrip(pad.encode()).split(b",")
            if isinstance(value, bytes)
            else text.rstrip(pad).split(",")
        )
        for label in labels:
            spaced = bool(pad) and label[-1:] in (" ", b" ")
            mask |= 0 if spaced else places.get(key(label), 0)
        if rules.flavour == "mariadb" and signs and not mask and _SIGNED.match(text):
            return int(text) & everything if abs(int(text)) < 1 << 64 else 0
        number = _UNSIGNED.match(text) if signs or text[:1] != "+" else None
        if not mask and number is not None and int(number[1]) <= everything:
            return int(number[1])
        return mask

    return store


def _json_of_text(_old: Column, _new: Column, _rules: ConversionRules) -> Store:
    return lambda value: json.encode(json.parse_text(raw_text(value)))


TEXT_STORES: dict[str, MakeStore] = {
    **MOMENTS_OF["text"],
    "text": _text,
    "binary": _binary,
    "clob": _text,
    "blob": _binary,
    "enum": _enum_of_text,
    "set": _set_of_text,
    "json": _json_of_text,
}
STORES: dict[str, dict[str, MakeStore]] = {
    "integer": {
        "integer": _integer,
        "real": _real,
        "decimal": _decimal,
        "bit": _bit,
        "year": _year,
        **MOMENTS_OF["integer"],
        "enum": _enum,
        "set": _set,
    },
    "real": {"real": _real, "year": _year},
    "decimal": {"decimal": _decimal, **MOMENTS_OF["decimal"]},
    "text": {
        "integer": _integer_of_text,
        "real": _number_of_text(_real, _parsed_real),
        "decimal": _number_of_text(_decimal, text_number),
        "year": _year_of_text,
        **TEXT_STORES,
    },
    "bits": {"bit": _bit},
    "signed": {"real": _real},
    "moment": {"year": _year_of_moment, **MOMENTS_OF["moment"]},
    "time": MOMENTS_OF["time"],
    "number": TEXT_STORES,
}
"""Route -> family of the new type -> what stores it."""
