"""A fleet as its YAML file has it: a list of sources; what all of them share stands beside the
list.

    calibration: prices.json
    replica: {workers: 8}
    sources:
      - logs: s3://logs/{source}/binlog.*
        schema: s3://schemas/{source}.sql.gz
        rows: counts/{source}.csv
      - {name: billing, logs: /var/lib/mysql/binlog.*, schema: "mysql://reader@db7:3306"}

`{source}` in a path stands for a part of it: one entry is as many sources as there are parts that
fit. Paths are relative to the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from applier.error_codes import Code
from applier.errors import BinlagError, InputError, cannot_read
from applier.remote import address_of
from applier.sources import INDEX_SUFFIX, by_number, expanded, open_source

PLACEHOLDER = "{source}"
LOG_NAMES = "*.[0-9][0-9][0-9][0-9][0-9][0-9]*"
"""What logs in a folder are called."""
_SHARED = {"schema", "rows", "replica", "calibration", "password_file"}
_REPLICA = {"server": str, "row_search": str, "workers": int, "preserve_commit_order": bool}
_KINDS = {str: "a text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True)
class FleetSource:
    """One source and its replica. `logs`: files or patterns. `rows`: files of counts, or texts such
    as "shop.orders=1000000".

    `server`, `row_search`, `workers` and `preserve_commit_order` None: the log's own version, and
    its defaults. `schema`: a dump or mysql://USER@HOST:PORT.
    """

    name: str
    logs: tuple[str, ...]
    schema: str
    rows: tuple[str, ...] = ()
    server: str | None = None
    row_search: str | None = None
    workers: int | None = None
    preserve_commit_order: bool | None = None
    calibration: str | None = None
    password_file: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def read_fleet(path: str | os.PathLike[str]) -> list[FleetSource]:
    """The sources in the order of the file. Raises InputError that names file and source."""
    import yaml

    from applier import strict_yaml

    name = os.fspath(path)
    try:
        with open_source(path) as file:
            data = strict_yaml.load(file.read().decode(), fractions=False)
    except OSError as error:
        raise cannot_read(error, name) from None
    except UnicodeDecodeError:
        raise _wrong("it is not text in UTF-8", name) from None
    except yaml.YAMLError as error:
        raise _wrong(" ".join(str(error).split()), name) from None
    return fleet_of(data, name, _folder_of(name))


def _folder_of(file: str) -> Path:
    """Where a fleet file is; on this machine from the root on, as executors have other folders."""
    if address_of(file) is not None:
        return Path(file).parent
    return Path(file).absolute().parent


def fleet_of(data: Any, file: str = "the fleet", folder: Path | None = None) -> list[FleetSource]:
    """The same of what such a file holds. Raises InputError."""
    if (
        not isinstance(data, Mapping)
        or not isinstance(data.get("sources"), list)
        or not data["sources"]
    ):
        raise _wrong("it has no list `sources`", file)
    _check_names(data, _SHARED | {"sources"}, "the fleet", file)
    shared = {key: value for key, value in data.items() if key != "sources"}
    found: list[FleetSource] = []
    for number, entry in enumerate(data["sources"], 1):
        if not isinstance(entry, Mapping):
            raise _wrong(f"source {number} is not a table of names and values", file)
        replica = {**_table(shared.get("replica"), file), **_table(entry.get("replica"), file)}
        found += _sources_of(
            {**shared, **entry, "replica": replica}, number, file, folder or Path.cwd()
        )
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _wrong(f"two sources are called {twice!r}", file)
    return found


def _sources_of(
    entry: Mapping[str, Any], number: int, file: str, folder: Path
) -> Iterator[FleetSource]:
    own = _name(entry, number, file)
    what = f"source {own}"
    _check_names(entry, _SHARED | {"name", "logs"}, what, file)
    logs, rows = _texts(entry, "logs", what, file), _texts(entry, "rows", what, file)
    if not logs or not isinstance(entry.get("schema"), str):
        raise _wrong(f"{what} needs `logs` and `schema`", file)
    patterns = [_placed(log, folder) for log in logs]
    groups: Mapping[str, Sequence[str]] = {own: patterns}
    if any(PLACEHOLDER in log for log in patterns):
        groups = _parts(patterns) or groups
    for name, files in groups.items():
        texts = {
            key: _of(entry[key], name, folder)
            for key in ("schema", "calibration", "password_file")
            if entry.get(key) is not None
        }
        counts = tuple(row if "=" in row else _of(row, name, folder) for row in rows)
        given: dict[str, Any] = {**texts, **_replica(entry["replica"], what, file)}
        yield FleetSource(name=name, logs=tuple(files), rows=counts, **given)


def _name(entry: Mapping[str, Any], number: int, file: str) -> str:
    given = entry.get("name")
    if given is None:
        return str(number)
    if isinstance(given, bool) or not isinstance(given, str | int) or given == "":
        raise _wrong(f"source {number}: `name` is {given!r}, and should be a text", file)
    return str(given)


def _parts(patterns: Sequence[str]) -> dict[str, list[str]]:
    """What `{source}` stands for -> the files that fit, in the order of logs; empty where nothing
    fits."""
    found: dict[str, list[str]] = {}
    for pattern in patterns:
        whole = pattern + LOG_NAMES if pattern.endswith("/") else pattern
        fits = _regular(whole)
        try:
            files = expanded(whole.replace(PLACEHOLDER, "*"))
        except BinlagError:
            return {}  # said when the source is looked at
        for file in sorted(files, key=by_number):
            match = fits.fullmatch(file)
            if match is not None and not file.endswith(INDEX_SUFFIX):
                found.setdefault(match["source"], []).append(file)
    return dict(sorted(found.items()))


def _regular(pattern: str) -> re.Pattern[str]:
    """The pattern with the first `{source}` as a group; the others are the same part again."""
    pieces, seen = [], False
    for piece in re.split(r"(\{source\}|\*|\?|\[[^\]]*\])", pattern):
        if piece == PLACEHOLDER:
            pieces.append("(?P=source)" if seen else "(?P<source>[^/]+)")
            seen = True
        else:
            wild = {"*": "[^/]*", "?": "[^/]"}.get(piece)
            pieces.append(wild or (piece if piece.startswith("[") else re.escape(piece)))
    return re.compile("".join(pieces))


def _of(path: str, name: str, folder: Path) -> str:
    return _placed(str(path).replace(PLACEHOLDER, name), folder)


def _placed(path: str, folder: Path) -> str:
    return (
        path
        if "://" in path or address_of(path) is not None
        else str(folder / path) + ("/" if path.endswith("/") else "")
    )


def _replica(given: Mapping[str, Any], what: str, file: str) -> dict[str, Any]:
    _check_names(given, set(_REPLICA), f"{what}: replica", file)
    for name, value in given.items():
        kind = _REPLICA[name]
        if type(value) is not kind and not (kind is str and isinstance(value, int | float)):
            raise _wrong(
                f"{what}: replica: {name} is {value!r}, and should be {_KINDS[kind]}", file
            )
    return {name: _REPLICA[name](value) for name, value in given.items()}


def _table(given: Any, file: str) -> Mapping[str, Any]:
    if not isinstance(given or {}, Mapping):
        raise _wrong(f"`replica` is {given!r}, and should be a table of names and values", file)
    return given or {}


def _texts(entry: Mapping[str, Any], key: str, what: str, file: str) -> list[str]:
    given = entry.get(key) or []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise _wrong(f"{what}: `{key}` is {given!r}, and should be a path or a list of paths", file)
    return texts


def _check_names(given: Mapping[str, Any], known: set[str], what: str, file: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise _wrong(
            f"{what}: {unknown[0]!r} is unknown; there are {', '.join(sorted(known))}", file
        )


def _wrong(message: str, file: str) -> InputError:
    return InputError(message, code=Code.FLEET, file=file)
