"""Character sets and collations by the numbers that the log carries.

Numbers and names are those of MySQL 5.6 to 9.7 (INFORMATION_SCHEMA.COLLATIONS) and MariaDB 10.11,
whose NO PAD collations are the base number plus 1024 and whose UCA 14.0.0 collations start at 2048.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from applier.binlog.charset_tables import (
    ABSENT,
    DOUBLE,
    NOTHING,
    OTHERWISE,
    PREFERRED,
    SINGLE,
    TWICE,
    USER_DEFINED,
    double_characters,
    double_codes,
    single_codes,
)


@dataclass(frozen=True, slots=True)
class Charset:
    """`codec` names Python's codec; `pad` is the space in this character set; `max_bytes` per
    character."""

    name: str
    codec: str
    max_bytes: int
    default_collation: str
    pad: bytes = b" "

    def decode(self, data: bytes) -> str:
        """Text; what is no character survives as surrogates."""
        return self._text(data, "keep")

    def shown(self, data: bytes) -> str:
        """Text as a server shows it: a code without a character is a question mark. Bytes that are
        no code survive as surrogates."""
        return self._text(data, "show" if self.codec in _PARTIAL else "keep")

    def _text(self, data: bytes, errors: str) -> str:
        if self.name in SINGLE:
            return data.decode("latin-1").translate(_single_characters(self.name, errors))
        if any(code in data for code in TWICE.get(self.name, ())):
            return "".join(
                TWICE[self.name].get(code) or self._plain(code, errors) for code in _codes(data)
            )
        return self._plain(data, errors)

    def _plain(self, data: bytes, errors: str) -> str:
        own = self.name in DOUBLE or self.name in USER_DEFINED
        errors = "surrogates" if self.name in _UNITS else f"{errors}-{self.name}" if own else errors
        text = data.decode(self.codec, f"binlag-{errors}")
        if self.name == "ucs2" and not text.isascii():
            text = _ASTRAL.sub(lambda pair: "".join(map(_escaped, _units(pair[0]))), text)
        return text.translate(_OTHERWISE[self.name]) if self.name in _OTHERWISE else text

    def encode(self, text: str) -> bytes:
        """Raises UnicodeEncodeError when the character set lacks a character."""
        data = self._encode(text)
        if self.name not in _LIKENED or text.isascii():
            return data
        if self.decode(data) != text or not ABSENT.get(self.name, frozenset()).isdisjoint(text):
            raise UnicodeEncodeError(self.codec, text, 0, len(text), "a character that is like it")
        return data

    def _encode(self, text: str) -> bytes:
        preferred = PREFERRED.get(self.name)
        if preferred is not None and not preferred.keys().isdisjoint(text):
            return b"".join(preferred.get(char) or self._encode(char) for char in text)
        if self.name == "latin1":
            return (
                b"".join(_latin1_byte(char) for char in text)
                if not text.isascii()
                else text.encode("ascii")
            )
        if self.name in SINGLE:
            return text.translate(_single_bytes(self.name)).encode("latin-1")
        if self.name in _BACK:
            text = text.translate(_BACK[self.name])
        if (
            self.name in ("utf8mb3", "ucs2")
            and not text.isascii()
            and (astral := _ASTRAL.search(text))
        ):
            raise UnicodeEncodeError(
                self.codec,
                text,
                astral.start(),
                astral.end(),
                "beyond the Basic Multilingual Plane",
            )
        own = self.name in DOUBLE or self.name in USER_DEFINED
        errors = (
            f"binlag-keep-{self.name}"
            if own
            else "surrogateescape"
            if self.codec in _ESCAPING
            else "strict"
        )
        return text.encode(self.codec, errors)

    def cut(self, data: bytes, characters: int) -> bytes:
        """The first characters of a text; where it does not decode, at most the bytes that they may
        have."""
        if self.max_bytes == 1 or (self.codec == "utf-8" and data.isascii()):
            return data[:characters]
        if self.name in _UNITS:
            return data[: characters * self.max_bytes]
        text = self.decode(data)
        if len(text) <= characters:
            return data
        try:
            first = self._encode(text[:characters])
        except UnicodeEncodeError:
            first = b""
        return first if first and data.startswith(first) else data[: characters * self.max_bytes]

    def whole(self, data: bytes, most_bytes: int) -> bytes:
        """The whole characters among the first `most_bytes` of a text that is longer."""
        if self.max_bytes == 1:
            return data[:most_bytes]
        size = 0
        for char in self.decode(data):
            next_size = size + len(self._encode(char))
            if next_size > most_bytes:
                break
            size = next_size
        return data[:size]


def _codes(data: bytes) -> Iterator[bytes]:
    """The codes of big5 and eucjpms, one by one."""
    at = 0
    while at < len(data):
        size = 1 if data[at] < 0x80 else 3 if data[at] == _THREE_BYTES else 2
        yield data[at : at + size]
        at += size


def _latin1_byte(char: str) -> bytes:
    try:
        return char.encode("cp1252")
    except UnicodeEncodeError:
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:
            return bytes([code - 0xDC00])
        if code in _LATIN1_CONTROLS:
            return bytes([code])
        raise


_LATIN1_CONTROLS = frozenset({0x81, 0x8D, 0x8F, 0x90, 0x9D})
"""Codes that cp1252 leaves open and the servers' latin1 does not."""
_LIKENED = frozenset({"big5", "cp932", "eucjpms", "sjis", "ujis"})
"""Character sets whose codec in Python also takes characters that only look like one of theirs, of
which a server makes question marks."""
_UNITS = frozenset({"ucs2", "utf32"})
"""Character sets in which every character has the same number of bytes, more than one."""
LONE_SURROGATE = re.compile("\udced[\udca0-\udcbf][\udc80-\udcbf]")
"""`Charset.decode` of a surrogate that stands alone in ucs2 or utf32."""
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_ESCAPING = frozenset({"ascii", "utf-8"})


_PARTIAL = frozenset({
    "big5", "euc_jp", "shift_jis", "cp949", "gb2312", "gbk", "cp932", "iso8859-8", "cp1251",
    "cp1250", "cp1257", "hp-roman8",
    "iso8859-7", "cp1256", "cp874", "ascii", "gb18030",
})  # fmt: skip
"""Codecs of character sets in which well-formed codes may have no character."""
_OTHERWISE = {name: str.maketrans(characters) for name, characters in OTHERWISE.items()}
_BACK = {
    name: str.maketrans({theirs: own for own, theirs in OTHERWISE[name].items()})
    for name in ("sjis", "eucjpms", "gb18030")
}


@cache
def _single_characters(name: str, errors: str) -> dict[int, str]:
    """Code -> character for all that Latin 1 has in another place."""
    codec, other = CHARSETS[name].codec, single_codes(name)
    found = {}
    for code in range(256):
        char = other.get(code) or bytes([code]).decode(codec, "replace")
        if char == NOTHING or (char == "\ufffd" and code not in other):
            char = "?" if errors == "show" else chr(0xDC00 + code)
        found[code] = char
    return found


@cache
def _single_bytes(name: str) -> dict[int, str]:
    """Character -> code as a character of Latin 1; what it lacks becomes one that Latin 1 lacks,
    too."""
    codes = {
        ord(char): chr(code) for code, char in reversed(_single_characters(name, "keep").items())
    }
    return {**dict.fromkeys(range(256), NOTHING), **codes}


def _keep(error: UnicodeError) -> tuple[str, int]:
    """Undefined bytes: cp1252's five holes are MySQL's latin1 control characters, all else becomes
    surrogates."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    if error.encoding in ("charmap", "cp1252"):
        return wrong.decode("latin-1"), error.end
    return "".join(chr(0xDC00 + byte) if byte >= 0x80 else chr(byte) for byte in wrong), error.end


def _escaped(code: int) -> str:
    """A surrogate that stands alone is text in ucs2, and in utf32 up to 5.7.

    A server shows the three bytes that UTF-8 would have for it.
    """
    return "".join(chr(0xDC00 + byte) for byte in chr(code).encode("utf-8", "surrogatepass"))


def _units(pair: str) -> tuple[int, int]:
    high, low = pair.encode("utf-16-be")[:2], pair.encode("utf-16-be")[2:]
    return int.from_bytes(high), int.from_bytes(low)


def _keep_surrogates(error: UnicodeError) -> tuple[str, int]:
    """For `_UNITS`."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    size = 2 if error.encoding.startswith("utf-16") else 4
    code = int.from_bytes(error.object[error.start : error.start + size])
    if 0xD800 <= code <= 0xDFFF and error.start + size <= len(error.object):
        return _escaped(code), error.start + size
    return _keep(error)


def _show(error: UnicodeError) -> tuple[str, int]:
    """A code without a character is a question mark."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, at = error.object, error.start
    if error.encoding in ("charmap", "ascii"):
        return "?", error.end
    if error.encoding == "gb18030":  # its codes of two bytes all have a character
        return ("?", at + 4) if _FOUR_BYTES.match(data, at) else _keep(error)
    size = 3 if data[at] == _THREE_BYTES and error.encoding == "euc_jp" else 2
    return ("?", at + size) if at + size <= len(data) else _keep(error)


def _with(
    name: str, otherwise: Callable[[UnicodeError], tuple[str, int]]
) -> Callable[[UnicodeError], tuple[str | bytes, int]]:
    """An error handler that knows the codes of `double_codes`."""

    def handle(error: UnicodeError) -> tuple[str | bytes, int]:
        if isinstance(error, UnicodeEncodeError):
            code = double_characters(name).get(error.object[error.start])
            if code is None:
                raise error
            return code, error.start + 1
        if isinstance(error, UnicodeDecodeError):
            for size in (2, 3):
                char = double_codes(name).get(bytes(error.object[error.start : error.start + size]))
                if char is not None:
                    return char, error.start + size
        return otherwise(error)

    return handle


_THREE_BYTES = 0x8F
"""In ujis and eucjpms, the first of three."""
_FOUR_BYTES = re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]")
"""A code of gb18030 that has so many."""
codecs.register_error("binlag-surrogates", _keep_surrogates)
for _name, _handler in (("keep", _keep), ("show", _show)):
    codecs.register_error(f"binlag-{_name}", _handler)
    for _own in {*DOUBLE, *USER_DEFINED}:
        codecs.register_error(f"binlag-{_name}-{_own}", _with(_own, _handler))

_TABLE = """
big5 big5 2 big5_chinese_ci
latin2 iso8859-2 1 latin2_general_ci
dec8 ascii 1 dec8_swedish_ci
cp850 cp850 1 cp850_general_ci
latin1 cp1252 1 latin1_swedish_ci
hp8 hp-roman8 1 hp8_english_ci
koi8r koi8-r 1 koi8r_general_ci
swe7 ascii 1 swe7_swedish_ci
ascii ascii 1 ascii_general_ci
ujis euc_jp 3 ujis_japanese_ci
sjis shift_jis 2 sjis_japanese_ci
hebrew iso8859-8 1 hebrew_general_ci
tis620 cp874 1 tis620_thai_ci
euckr cp949 2 euckr_korean_ci
latin7 iso8859-13 1 latin7_general_ci
koi8u koi8-u 1 koi8u_general_ci
cp1251 cp1251 1 cp1251_general_ci
gb2312 gb2312 2 gb2312_chinese_ci
greek iso8859-7 1 greek_general_ci
cp1250 cp1250 1 cp1250_general_ci
gbk gbk 2 gbk_chinese_ci
cp1257 cp1257 1 cp1257_general_ci
latin5 iso8859-9 1 latin5_turkish_ci
armscii8 ascii 1 armscii8_general_ci
utf8mb3 utf-8 3 utf8mb3_general_ci
ucs2 utf-16-be 2 ucs2_general_ci
cp866 cp866 1 cp866_general_ci
keybcs2 ascii 1 keybcs2_general_ci
macce mac-latin2 1 macce_general_ci
macroman mac-roman 1 macroman_general_ci
cp852 cp852 1 cp852_general_ci
utf8mb4 utf-8 4 utf8mb4_0900_ai_ci
utf16 utf-16-be 4 utf16_general_ci
utf16le utf-16-le 4 utf16le_general_ci
cp1256 cp1256 1 cp1256_general_ci
utf32 utf-32-be 4 utf32_general_ci
binary latin-1 1 binary
geostd8 ascii 1 geostd8_general_ci
cp932 cp932 2 cp932_japanese_ci
eucjpms euc_jp 3 eucjpms_japanese_ci
gb18030 gb18030 4 gb18030_chinese_ci
"""
_PADS = {"ucs2": b"\0 ", "utf16": b"\0 ", "utf16le": b" \0", "utf32": b"\0\0\0 "}

CHARSETS: dict[str, Charset] = {
    name: Charset(name, codec, int(most), collation, _PADS.get(name, b" "))
    for name, codec, most, collation in (line.split() for line in _TABLE.split("\n") if line)
}
ALIASES = {"utf8": "utf8mb3"}

_FIRST = """
big5_chinese_ci latin2_czech_cs dec8_swedish_ci cp850_general_ci latin1_german1_ci hp8_english_ci
koi8r_general_ci latin1_swedish_ci latin2_general_ci swe7_swedish_ci ascii_general_ci
ujis_japanese_ci sjis_japanese_ci cp1251_bulgarian_ci latin1_danish_ci hebrew_general_ci -
tis620_thai_ci euckr_korean_ci latin7_estonian_cs latin2_hungarian_ci koi8u_general_ci
cp1251_ukrainian_ci gb2312_chinese_ci greek_general_ci cp1250_general_ci latin2_croatian_ci
gbk_chinese_ci cp1257_lithuanian_ci latin5_turkish_ci latin1_german2_ci armscii8_general_ci
utf8mb3_general_ci cp1250_czech_cs ucs2_general_ci cp866_general_ci keybcs2_general_ci
macce_general_ci macroman_general_ci cp852_general_ci latin7_general_ci latin7_general_cs macce_bin
cp1250_croatian_ci utf8mb4_general_ci utf8mb4_bin latin1_bin latin1_general_ci latin1_general_cs
cp1251_bin cp1251_general_ci cp1251_general_cs macroman_bin utf16_general_ci utf16_bin
utf16le_general_ci cp1256_general_ci cp1257_bin cp1257_general_ci utf32_general_ci utf32_bin
utf16le_bin binary armscii8_bin ascii_bin cp1250_bin cp1256_bin cp866_bin dec8_bin greek_bin
hebrew_bin hp8_bin keybcs2_bin koi8r_bin koi8u_bin utf8mb3_tolower_ci latin2_bin latin5_bin
latin7_bin cp850_bin cp852_bin swe7_bin utf8mb3_bin big5_bin euckr_bin gb2312_bin gbk_bin sjis_bin
tis620_bin ucs2_bin ujis_bin geostd8_general_ci geostd8_bin latin1_spanish_ci cp932_japanese_ci
cp932_bin eucjpms_japanese_ci eucjpms_bin cp1250_polish_ci
""".split()
"""The collations 1 to 99."""
_UCA = """
unicode icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish
lithuanian slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian unicode_520
vietnamese
""".split()
_UCA_STARTS = {101: "utf16", 128: "ucs2", 160: "utf32", 192: "utf8mb3", 224: "utf8mb4"}
_UCA_900 = "- de_pb is lv ro sl pl et es sv tr cs da lt sk es_trad la . eo hu hr . vi".split()
"""From 255 on without accents, from 278 on with them; a dot is a number without a collation."""
_REST_900 = """
ja_0900_as_cs ja_0900_as_cs_ks 0900_as_ci ru_0900_ai_ci ru_0900_as_cs zh_0900_as_cs 0900_bin
nb_0900_ai_ci nb_0900_as_cs nn_0900_ai_ci nn_0900_as_cs sr_latn_0900_ai_ci sr_latn_0900_as_cs
bs_0900_ai_ci bs_0900_as_cs bg_0900_ai_ci bg_0900_as_cs gl_0900_ai_ci gl_0900_as_cs
mn_cyrl_0900_ai_ci mn_cyrl_0900_as_cs
""".split()
"""From 303 on."""
_MARIADB_STARTS = {576: "utf8mb3", 608: "utf8mb4", 640: "ucs2", 672: "utf16", 736: "utf32"}
_UCA_1400 = ["", *(f"{name}_" for name in _UCA[1:21]), ".", ".", "vietnamese_", "croatian_"]
_1400_STARTS = {2048: "utf8mb3", 2304: "utf8mb4", 2560: "ucs2", 2816: "utf16", 3072: "utf32"}
_1400_ENDS = [
    f"{pad}{ends}" for pad in ("", "nopad_") for ends in ("ai_ci", "ai_cs", "as_ci", "as_cs")
]
_NO_PAD = 1024
"""MariaDB: what the number of a collation that does not pad is greater by."""


def _collations() -> Iterator[tuple[int, str]]:
    yield from enumerate(_FIRST, 1)
    for start, name in _UCA_STARTS.items():
        yield from ((at, f"{name}_{language}_ci") for at, language in enumerate(_UCA, start))
    yield from (
        (at, f"{name}_general_mysql500_ci") for at, name in ((159, "ucs2"), (223, "utf8mb3"))
    )
    gb18030 = ("chinese_ci", "bin", "unicode_520_ci")
    yield from ((at, f"gb18030_{name}") for at, name in enumerate(gb18030, 248))
    for start, ends in ((255, "0900_ai_ci"), (278, "0900_as_cs")):
        for at, language in enumerate(_UCA_900, start):
            yield (
                at,
                language if language == "." else f"utf8mb4_{language}_{ends}".replace("-_", ""),
            )
    yield from ((at, f"utf8mb4_{name}") for at, name in enumerate(_REST_900, 303))
    for start, name in _MARIADB_STARTS.items():
        own = ("croatian_ci", "myanmar_ci", "thai_520_w2")
        yield from ((at, f"{name}_{language}") for at, language in enumerate(own, start))
    for start, name in _1400_STARTS.items():
        for language in _UCA_1400:
            for at, ends in enumerate(_1400_ENDS, start):
                yield at, "." if language == "." else f"{name}_uca1400_{language}{ends}"
            start += len(_1400_ENDS)


COLLATION_NAMES = {number: name for number, name in _collations() if name not in "-."}
_CROATIAN_MARIADB = {number + _UCA.index("croatian") for number in _UCA_STARTS}
"""Where MariaDB has MySQL's Croatian collation, beside one of its own."""


def charset(name: str | None) -> Charset:
    """The character set of that name; utf8mb4 where none is said, binary where it is not known."""
    if name is None:
        return CHARSETS["utf8mb4"]
    name = name.lower()
    return CHARSETS.get(ALIASES.get(name, name), CHARSETS["binary"])


@cache
def charset_of_collation(number: int) -> Charset:
    """The character set of a collation number; binary when it is not known."""
    return charset(charset_of_collation_name(collation_name(number)))


def collation_name(number: int, *, mariadb: bool = False) -> str:
    """The name of a collation by its number, utf8mb3 in full; binary when it is not known."""
    name = COLLATION_NAMES.get(number)
    if name is None and _NO_PAD < number < 2 * _NO_PAD:
        head, _, end = COLLATION_NAMES.get(number - _NO_PAD, "binary").rpartition("_")
        name = f"{head}_nopad_{end}" if head else None
    if mariadb and number in _CROATIAN_MARIADB:
        return f"{charset_of_collation(number).name}_croatian_mysql561_ci"
    return name or "binary"


def charset_of_collation_name(collation: str) -> str:
    """The character set that a collation's name starts with ("utf8mb4_bin" -> "utf8mb4")."""
    name = collation.lower().split("_")[0]
    return ALIASES.get(name, name)


# statements

_AS_ASCII = frozenset({"binary", "swe7"})
"""Clients of these send quotes, backticks and names as ASCII and UTF-8 have them: the server reads
a statement byte by byte."""


def statement_text(number: int, sql: bytes) -> str:
    """A statement of a client whose collation has this number; what does not decode survives."""
    own = charset_of_collation(number)
    return sql.decode("utf-8", "surrogateescape") if own.name in _AS_ASCII else own.decode(sql)


def has_wide_backslash(client: str, sql: bytes) -> bool:
    """Whether a statement has the backslash of two bytes that ujis and sjis know: it is no escape,
    and `statement_text` cannot tell it from one."""
    wide = {own for own, theirs in OTHERWISE.get(client, {}).items() if theirs == "\\"}
    return bool(wide) and not wide.isdisjoint(sql.decode(CHARSETS[client].codec, "replace"))


def literal_bytes(client: str, text: str) -> bytes:
    """The bytes that a piece of `statement_text` had."""
    return (
        text.encode("utf-8", "surrogateescape")
        if client in _AS_ASCII
        else charset(client).encode(text)
    )
