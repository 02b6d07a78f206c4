"""Where the servers' character sets differ from Python's codecs: what CONVERT(… USING utf8mb4) said
for every code of each.

5.7.29, 9.7.4 and MariaDB 10.11.18 agree. A code that no character belongs to is U+FFFFF here; a
server shows a question mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

Runs = Sequence[tuple[int, str]]
"""(first code, characters of the codes from there on)"""
NOTHING = "\U000fffff"

SINGLE: dict[str, Runs] = {
    "dec8": (
        (
            0x80,
            (
                "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97"
                "\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0¡¢£"
            ),
        ),
        (0xA5, "¥"),
        (0xA7, "§¤©ª«"),
        (0xB0, "°±²³"),
        (0xB5, "µ¶·"),
        (0xB9, "¹º»¼½"),
        (0xBF, "¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ"),
        (0xD1, "ÑÒÓÔÕÖŒØÙÚÛÜŸ"),
        (0xDF, "ßàáâãäåæçèéêëìíîï"),
        (0xF1, "ñòóôõöœøùúûüÿ"),
    ),
    "swe7": (
        (0x40, "É"),
        (0x5B, "ÄÖÅÜ"),
        (0x60, "é"),
        (0x7B, "äöåü\U000fffff"),
    ),
    "hebrew": ((0xAF, "‾"),),
    "tis620": (
        (
            0x80,
            (
                "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97"
                "\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\ufffd"
            ),
        ),
        (0xDB, "\ufffd\ufffd\ufffd\ufffd"),
        (0xFC, "\ufffd\ufffd\ufffd\ufffd"),
    ),
    "koi8u": ((0x95, "•"),),
    "greek": (
        (0xA1, "ʽʼ"),
        (0xA4, "\U000fffff\U000fffff"),
        (0xAA, "\U000fffff"),
    ),
    "armscii8": (
        (
            0x80,
            (
                "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97"
                "\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0❁§։)(»«—.՝,-՟…՜"
                "՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻի"
                "ԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշ"
                "ՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփ"
                "ՔքՕօՖֆ’'"
            ),
        ),
    ),
    "cp866": ((0xFC, "ⁿ²"),),
    "keybcs2": (
        (
            0x80,
            (
                "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚ"
                "ýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»"
                "░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟"
                "╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
                "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈"
                "°∙·√ⁿ²■\xa0"
            ),
        ),
    ),
    "cp1256": (
        (0x8A, "\U000fffff"),
        (0x8F, "\U000fffff"),
        (0x98, "\U000fffff"),
        (0x9A, "\U000fffff"),
        (0x9F, "\U000fffff"),
        (0xAA, "\U000fffff"),
        (0xC0, "\U000fffff"),
        (0xFF, "\U000fffff"),
    ),
    "geostd8": (
        (0x80, "€"),
        (0x82, "‚"),
        (0x84, "„…†‡"),
        (0x89, "‰"),
        (0x8B, "‹"),
        (0x91, "‘’“”•–—"),
        (0x9B, "›"),
        (0xA0, "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³´µ¶·¸¹º»¼½¾¿აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ"),
        (0xFD, "№"),
    ),
}
"""Codes of one byte."""

DOUBLE: dict[str, Runs] = {
    "eucjpms": (
        (0xADA1, "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ"),
        (0xADC0, "㍉㌔㌢㍍㌘㌧㌃㌶㍑㍗㌍㌦㌣㌫㍊㌻㎜㎝㎞㎎㎏㏄㎡"),
        (0xADDF, "㍻〝〟№㏍℡㊤㊥㊦㊧㊨㈱㈲㈹㍾㍽㍼≒≡∫∮∑√⊥∠∟⊿∵∩∪"),
        (0x8FF3F3, "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ"),
        (
            0x8FF4A1,
            (
                "ⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇匤﨎咊坙﨏塚"
                "增寬峵嵓﨑德悅愠敎昻晥晴朗栁﨓﨔橫櫢淸淲瀨凞猪甁"
                "皂皞益礰礼神祥福竧靖精綠緖羽荢﨟薰蘒﨡蠇諸譿賴赶"
                "﨣﨤逸郞都鄕﨧﨨閒隆﨩霻靍靑飯飼館馞髙魲鶴黑"
            ),
        ),
    ),
    "big5": ((0xF9D6, "碁銹裏墻恒粧嫺"),),
}
"""Codes of two or three bytes that Python's codec lacks."""

OTHERWISE: dict[str, dict[str, str]] = {
    "ujis": {"＼": "\\"},
    "eucjpms": {"〜": "～", "‖": "∥", "−": "－", "¢": "￠", "£": "￡", "¬": "￢", "¦": "￤"},
    "big5": {"╴": "\ufffd", "￣": "\ufffd", "ˍ": "\ufffd"},
    "gb18030": {"\ue7c7": "ḿ", "ḿ": "\ue7c7"},
    "sjis": {"＼": "\\"},
}
"""Characters of Python's codec -> the servers' for the same code."""

TWICE: dict[str, dict[bytes, str]] = {
    "big5": dict.fromkeys((b"\xa1\xfe", b"\xa2\x40", b"\xa2\xcc", b"\xa2\xce"), "\ufffd"),
    "eucjpms": {b"\x8f\xa2\xb7": "～"},
}
"""Codes that Python's codec gives a character which another code has, too, and which the servers
give one of its own."""

PREFERRED: dict[str, dict[str, bytes]] = {
    "cp932": {
        code.decode("cp932"): code
        for code in (
            bytes([first, second])
            for first in range(0xFA, 0xFD)
            for second in (*range(0x40, 0x7F), *range(0x80, 0xFD))
            if first < 0xFC or second < 0x4C
        )
        if code.decode("cp932").encode("cp932")[:1] in b"\xed\xee"
    },
    "eucjpms": {"№": b"\xad\xe2"},
}
"""Characters with several codes, of which the servers take another one than Python's codec."""

ABSENT = {"cp932": frozenset("\x80\uf8f0\uf8f1\uf8f2\uf8f3")}
"""Characters of Python's codec that the servers' lacks."""

USER_DEFINED: dict[str, tuple[tuple[int, int], ...]] = {
    "ujis": ((0xF5A1, 0xE000), (0x8FF5A1, 0xE3AC)),
    "eucjpms": ((0xF5A1, 0xE000), (0x8FF5A1, 0xE3AC)),
}
"""First code of ten rows of 94 -> first character of the private use area."""
ROWS, CELLS = 10, 94


def single_codes(name: str) -> dict[int, str]:
    """Code -> character of a character set of single bytes, as far as it differs from Python's
    codec."""
    return {code: char for first, text in SINGLE[name] for code, char in enumerate(text, first)}


@cache
def double_codes(name: str) -> dict[bytes, str]:
    """Code -> character that Python's codec lacks."""
    found = {
        _octets(code): char
        for first, text in DOUBLE.get(name, ())
        for code, char in enumerate(text, first)
    }
    for first, char in USER_DEFINED.get(name, ()):
        for place in range(ROWS * CELLS):
            row, cell = divmod(place, CELLS)
            found[_octets(first + row * 256 + cell)] = chr(char + place)
    return found


@cache
def double_characters(name: str) -> dict[str, bytes]:
    """Character -> code, `double_codes` backwards; the first of two codes is meant."""
    return {char: code for code, char in reversed(double_codes(name).items())}


def _octets(code: int) -> bytes:
    return code.to_bytes(3 if code > 0xFFFF else 2, "big")
