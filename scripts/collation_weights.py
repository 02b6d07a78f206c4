"""Writes applier/tables/collations/weights.zip: asks real servers for the weights of all characters
in all collations.

    python scripts/collation_weights.py FOLDER [--output FILE]

FOLDER keeps the answers (WEIGHT_STRING of each character, a line each; weights of pairs that
contract), so that a second run only asks for what is not there. It takes about an hour on two
cores. 9.7 is asked for everything; MariaDB for its UCA 14 collations, and whether the others are
the same. The form of the tables is described in applier/tables/collations/weights.py.
"""

from __future__ import annotations

import argparse
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docker")]

from servers.server import Server  # noqa: E402

from applier.tables.collations.collation import UNICODE, full_name  # noqa: E402
from applier.tables.collations.weight_keys import number_of  # noqa: E402
from tests.tables.collation_characters import characters_of  # noqa: E402

OUTPUT = ROOT / "applier" / "tables" / "collations" / "weights.zip"
Levels = tuple[str, ...]
"""Hexadecimal digits of the weights at each level."""
NOT_BY_CHARACTER = frozenset(
    {"cp1250_czech_cs", "latin2_czech_cs", "tis620_thai_ci", "thai_520_w2", "myanmar_ci"}
)
"""Collations whose weights are no sum of the weights of characters and contractions."""
DISPUTED = {"croatian_ci": ("lJ", "nJ", "dŽ")}
"""Contractions of MySQL that MariaDB's collation of the same name does not have."""
BY_CODE = "big5_chinese_ci"
"""It compares characters of two bytes by these, though WEIGHT_STRING goes by strokes (seen on 9.7.4
and 10.11.18)."""
WHOLE = ("unicode_ci", "unicode_520_ci", "0900", "uca1400", "general_ci", "bg_0900", "zh_0900")
"""Tables that are written whole; the others by what they have of their own."""
_SEVERAL = re.compile(r"(.*(?:0900|uca1400(?:_\w+?)?))_as_cs(?:_ks)?")
LATIN = [*range(0x41, 0x5B), *range(0x61, 0x7B)]
MARKS = range(0x300, 0x370)
EUROPE = [*range(0x20, 0x250), *range(0x370, 0x530), *range(0x1E00, 0x1F00)]


def base_of(table: str) -> str | None:
    """The table that another one is written as a difference to."""
    if table in WHOLE:
        return None
    bases = {"ru_0900": "bg_0900", "mn_cyrl_0900": "bg_0900"}
    words = (
        ("uca1400", "uca1400"),
        ("0900", "0900"),
        ("general", "general_ci"),
        ("tolower", "general_ci"),
    )
    return bases.get(table) or next((base for word, base in words if word in table), "unicode_ci")


class Asked:
    """A server and a folder of its answers."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o777)  # the server writes there
        self._server = Server(
            name,
            options={"secure_file_priv": "", "innodb_flush_log_at_trx_commit": 0, "sync_binlog": 0},
        )
        self._server.start()
        self._connection = self._server.connect(autocommit=True)
        for statement in (
            "SET sql_log_bin = 0, sql_mode = ''",
            "CREATE DATABASE weights",
            "USE weights",
        ):
            self.query(statement)
        self._filled: str | None = None

    def close(self) -> None:
        self._connection.close()
        self._server.close()

    def query(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return tuple(cursor.fetchall())

    def collations(self) -> list[str]:
        """Full names, those by the bytes left out."""
        table = "full_collation_name FROM information_schema.collation_character_set_applicability"
        if self.name != "mariadb":
            table = "collation_name FROM information_schema.collations"
        names = (full_name(row[0], "") for row in self.query(f"SELECT {table}"))
        return sorted(
            name
            for name in names
            if not name.endswith("_bin") and name != "binary" and "nopad" not in name
        )

    def weights(self, collation: str) -> dict[bytes, str]:
        """Each character of the character set -> its WEIGHT_STRING."""
        file = self.folder / collation
        if not file.exists():
            self._fill(collation.partition("_")[0])
            self.query(
                f"SELECT HEX(c), HEX(WEIGHT_STRING(c COLLATE {collation})) INTO OUTFILE '{file}' "
                "FROM characters ORDER BY n"
            )
        pairs = (line.split("\t") for line in file.read_text().splitlines())
        return {bytes.fromhex(character): weights for character, weights in pairs}

    def _fill(self, charset: str) -> None:
        if self._filled == charset:
            return
        self._filled = charset
        self.query("DROP TABLE IF EXISTS characters")
        self.query(
            "CREATE TABLE characters (n int PRIMARY KEY AUTO_INCREMENT, c varchar(2) "
            f"CHARACTER SET {charset})"
        )
        characters = list(characters_of(charset))
        for start in range(0, len(characters), 10_000):
            rows = ", ".join(
                f"({start + at + 1}, 0x{one.hex()})"
                for at, one in enumerate(characters[start : start + 10_000])
            )
            self.query(f"INSERT IGNORE INTO characters VALUES {rows}")
            wrong = ", ".join(
                f"({start + at + 1}, '{one.hex()}')"
                for at, one in enumerate(characters[start : start + 10_000])
            )
            self.query(
                f"DELETE FROM characters WHERE n > {start} AND (n, LOWER(HEX(c))) NOT IN ({wrong})"
            )

    def levels(self, table: str) -> dict[bytes, Levels]:
        """Each code point's weights at each level of a table of Unicode."""
        if "uca1400" in table:  # MariaDB writes level behind level, with nothing between
            one, two, three = (
                self.weights(f"utf8mb4_{table}_{kind}") for kind in ("ai_ci", "as_ci", "ai_cs")
            )
            return {
                char: (first, two[char][len(first) :], three[char][len(first) :])
                for char, first in one.items()
            }
        if "0900" in table:
            collation = f"utf8mb4_{table}_as_cs" + "_ks" * table.startswith("ja")
            return {char: split(weights) for char, weights in self.weights(collation).items()}
        charset = "utf8mb3" if "tolower" in table or "mysql500" in table else "utf8mb4"
        return {char: (weights,) for char, weights in self.weights(f"{charset}_{table}").items()}

    def contractions(
        self, table: str, own: Iterable[int], levels: dict[bytes, Levels]
    ) -> dict[str, Levels]:
        """Texts of two or three characters that weigh something else than their characters do.
        `own`: code points to try, too."""
        groups = {
            "latin": set(LATIN),
            "europe": {*EUROPE, *own},
            "marks": {*MARKS, *range(0x3099, 0x30A0), *range(0x30FB, 0x3100)},
        }
        for name, codes in groups.items():
            self._group(name, codes, levels)
        found: dict[str, Levels] = {}
        for first, second, where in (
            ("latin", "europe", "1"),
            ("europe", "marks", "1"),
            ("europe", "europe", "a.n >> 7 = b.n >> 7"),
        ):
            found.update(
                self._contracted(
                    table, f"{first} a STRAIGHT_JOIN {second} b ON {where}", ("a", "b")
                )
            )
        if found:
            three = self._contracted(
                table, "latin a STRAIGHT_JOIN latin b STRAIGHT_JOIN latin c", ("a", "b", "c")
            )
            found.update(
                {
                    text: weights
                    for text, weights in three.items()
                    if weights != in_parts(text, found, levels)
                }
            )
        return found

    def _group(self, name: str, codes: Iterable[int], levels: dict[bytes, Levels]) -> None:
        self.query(f"DROP TABLE IF EXISTS `{name}`")
        columns = ", ".join(f"w{at} varbinary(80)" for at in range(4))
        self.query(
            f"CREATE TABLE `{name}` (n int PRIMARY KEY, c varchar(1) CHARACTER SET utf8mb4, "
            f"{columns})"
        )
        rows = []
        for code in sorted(codes):
            char = chr(code).encode()
            weights = (*levels[char], "", "", "")[:4]
            rows.append(
                f"({code}, 0x{char.hex()}, {', '.join(f'UNHEX({level!r})' for level in weights)})"
            )
        self.query(f"INSERT INTO `{name}` VALUES {', '.join(rows)}")

    def _contracted(self, table: str, source: str, names: tuple[str, ...]) -> dict[str, Levels]:
        text = f"CONCAT({', '.join(f'{name}.c' for name in names)})"
        parts = [
            "CONCAT(" + ", ".join(f"{name}.w{level}" for name in names) + ")" for level in range(4)
        ]
        kinds, between = (
            (("ai_ci", "as_ci", "ai_cs"), "") if "uca1400" in table else (("as_cs",), "0000")
        )
        if table.startswith("ja"):
            kinds = ("as_cs_ks",)
        collations = (
            [f"utf8mb4_{table}_{kind}" for kind in kinds]
            if "uca1400" in table or "0900" in table
            else [f"utf8mb4_{table}"]
        )
        count = (
            3
            if len(collations) == 3
            else 4
            if table.startswith("ja")
            else 3
            if "0900" in table
            else 1
        )
        joined = f", {between!r}, ".join(f"HEX({part})" for part in parts[:count])
        whole = f"CONCAT({joined})"
        if count == 4:  # without kana there is no fourth level
            whole = f"IF(LENGTH({parts[3]}), {whole}, LEFT({whole}, LENGTH({whole}) - 4))"
        last = collations[0] if len(collations) == 1 else f"utf8mb4_{table}_as_cs"
        asked = ", ".join(f"HEX(WEIGHT_STRING({text} COLLATE {name}))" for name in collations)
        codes = ", ".join(f"{name}.n" for name in names)
        found = {}
        for row in self.query(
            f"SELECT {codes}, {asked} FROM {source} WHERE HEX(WEIGHT_STRING({text} COLLATE "
            f"{last})) <> {whole}"
        ):
            weights = row[len(names) :]
            levels = split(weights[0]) if count > 1 else (weights[0],)
            if len(weights) == 3:
                levels = (weights[0], weights[1][len(weights[0]) :], weights[2][len(weights[0]) :])
            found["".join(map(chr, row[: len(names)]))] = levels
        return found


def split(weights: str) -> Levels:
    """Levels that stand one behind the other with a zero between. A zero that comes first is a
    weight (Lithuanian, 9.7.4)."""
    first = "0000" if weights.startswith("00000000") and len(weights) > 16 else ""
    units = re.findall("....", weights[len(first) :])
    found = [""]
    for unit in units:
        if unit == "0000":
            found.append("")
        else:
            found[-1] += unit
    return (first + found[0], *found[1:])


def in_parts(text: str, contractions: dict[str, Levels], levels: dict[bytes, Levels]) -> Levels:
    """What three characters weigh when two of them may contract."""
    one, two, three = (levels[char.encode()] for char in text)
    if text[:2] in contractions:
        return joined(contractions[text[:2]], three)
    if text[1:] in contractions:
        return joined(one, contractions[text[1:]])
    return joined(one, two, three)


def joined(*weights: Levels) -> Levels:
    return tuple("".join(level) for level in zip(*weights, strict=False))


# writing


def ranges(weights: Iterable[tuple[int, Levels]]) -> Iterator[str]:
    """Lines of a table: codes that follow one another, with weights that are alike or grow by
    one."""
    end, first, count, step = 0, 0, 0, 0
    last: Levels = ()
    for code, levels in sorted(weights):
        alike = (
            count
            and code == first + count
            and levels[1:] == last[1:]
            and len(levels[0]) == len(last[0])
        )
        grown = int(levels[0] or "0", 16) - int(last[0] or "0", 16) if alike else -1
        if alike and grown == (step * count if count > 1 else min(max(grown, 0), 1)):
            step = grown if count == 1 else step
            count += 1
            continue
        if count:
            yield f"{first - end} {count} {step} {','.join(last)}"
            end = first + count
        first, count, step, last = code, 1, 0, levels
    yield from [f"{first - end} {count} {step} {','.join(last)}"] if count else []


def member(
    unit: int,
    base: str | None,
    weights: Iterable[tuple[int, Levels]],
    contractions: dict[str, Levels],
    context: bool = False,
) -> str:
    lines = [f"unit {unit} base {base or '-'}{' context' * context}", *ranges(weights)]
    for text, levels in sorted(contractions.items()):
        lines.append(f"+ {' '.join(f'{ord(char):X}' for char in text)} {','.join(levels)}")
    return "\n".join(lines) + "\n"


def tables_of(collations: Iterable[str]) -> dict[str, str]:
    """Name of a table -> a collation that it is made from."""
    found: dict[str, str] = {}
    for collation in collations:
        charset, _, rest = collation.partition("_")
        name = rest if charset in UNICODE else collation
        several = _SEVERAL.fullmatch(name)
        if several is None and ("0900" in name or "uca1400" in name):
            continue  # fewer levels of the same table
        name = several[1] if several else name
        if name not in NOT_BY_CHARACTER:
            found.setdefault(name, collation)
    return found


def text_member(asked: Asked, table: str) -> str:
    levels = asked.levels(table)
    base = base_of(table)
    below = asked.levels(base) if base else {}
    own = {char: weights for char, weights in levels.items() if below.get(char) != weights}
    tried = (
        [ord(char.decode()) for char in own]
        if base
        else [ord(char.decode()) for char, weights in levels.items() if is_explicit(weights)]
    )
    contractions = asked.contractions(
        table, [code for code in tried if not is_ideograph(code)], levels
    )
    if table.startswith("ja"):
        # At the second level and beyond the server takes the last character of the text for the one
        # before the first: that is `applier.tables.collations.weight_keys`' to do, and no
        # contraction.
        contractions = {
            text: w
            for text, w in contractions.items()
            if w[0] != "".join(levels[char.encode()][0] for char in text)
        }
    contractions.update(dict.fromkeys(DISPUTED.get(table, ()), ("?",)))
    return member(
        2,
        base,
        ((ord(char.decode()), weights) for char, weights in own.items()),
        contractions,
        table.startswith("ja"),
    )


def is_explicit(weights: Levels) -> bool:
    return len(weights[0]) != 8 or weights[0][:2] != "FB"


def is_ideograph(code: int) -> bool:
    return (
        0x3400 <= code < 0xA4D0
        or 0xAC00 <= code < 0xD7A4
        or 0xE000 <= code < 0xFB00
        or code >= 0x17000
    )


def bytes_member(asked: Asked, collation: str) -> str:
    answers = asked.weights(collation)
    if collation == BY_CODE:
        answers = {
            char: weight if len(char) == 1 else char.hex().upper()
            for char, weight in answers.items()
        }
    weights = ((number_of(char), (weight,)) for char, weight in answers.items())
    return member(2 if "unicode" in collation else 1, None, weights, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    members: dict[str, str] = {}
    for server in ("9.7", "mariadb"):
        asked = Asked(server, arguments.folder.absolute())
        try:
            for table, collation in tables_of(asked.collations()).items():
                if table not in members:
                    members[table] = (
                        text_member(asked, table)
                        if collation.partition("_")[0] in UNICODE
                        else bytes_member(asked, collation)
                    )
                    print(server, table, len(members[table]), flush=True)
        finally:
            asked.close()
    with zipfile.ZipFile(arguments.output, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, text in sorted(members.items()):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, text, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()
