"""Tables of a live server, by SQLAlchemy: definitions by SHOW CREATE TABLE, rows and index
cardinalities from information_schema.

Both numbers are InnoDB's estimates (from a few sampled pages); for MyISAM the rows are exact.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from applier.binlog.selection.table_filter import SYSTEM_SCHEMAS, TYPES_WITH_ROWS
from applier.error_codes import Code
from applier.errors import InputError
from applier.forecast.inventory.facts import COUNTED_THERE, STATISTICS, TableFacts
from applier.forecast.inventory.file_sizes import MOST_COUNTED, counted_rows, rows_if_told
from applier.lazy_imports import needed
from applier.mysql.client.url import Endpoint
from applier.schema_source import load_schema
from applier.server_versions import found_rules
from applier.tables.sql.quoting import quoted
from lookup.table import Key, TableDefinition
from lookup.versions import ServerRules

OLD_FACTOR = 2
"""Estimates from a few pages may be off by less."""
MANY_ROWS = 100
HALVED = 2.0
_TABLES = f"""
SELECT table_schema, table_name, table_rows, avg_row_length, auto_increment,
    COALESCE(data_length + index_length, 0)
FROM information_schema.tables
WHERE table_type IN {TYPES_WITH_ROWS} AND table_schema NOT IN :system
ORDER BY table_schema, table_name
"""
_CACHED = "SHOW VARIABLES LIKE 'information_schema_stats_expiry'"
"""8.0 and later keep statistics for a day in information_schema; 0 asks the engine."""
_KEYS = """
SELECT table_schema, table_name, index_name, cardinality FROM information_schema.statistics
WHERE table_schema NOT IN :system ORDER BY table_schema, table_name, index_name, seq_in_index
"""
"""Each column's cardinality is that of the key up to it."""
_LEAVES = """
SELECT database_name, table_name, index_name, stat_value FROM mysql.innodb_index_stats
WHERE stat_name = 'n_leaf_pages'
"""
_CLUSTERED = ("GEN_CLUST_INDEX", "PRIMARY")


def facts_of_server(
    endpoint: Endpoint, databases: Collection[str] = ()
) -> tuple[dict[str, TableFacts], str]:
    """(The tables of a server by full name, its version). Raises InputError when it cannot be
    reached or read."""
    with needed("reading a live server's schema needs SQLAlchemy", "binlag[mysql]"):
        import sqlalchemy
        from sqlalchemy import bindparam, text
    engine = sqlalchemy.create_engine(
        _url(endpoint), connect_args={"unix_socket": endpoint.socket} if endpoint.socket else {}
    )
    try:
        with engine.connect() as connection:
            version = str(connection.execute(text("SELECT VERSION()")).scalar())
            for name, _ in connection.execute(text(_CACHED)).all():
                connection.exec_driver_sql(f"SET SESSION {name} = 0")
            system = {"system": sorted(SYSTEM_SCHEMAS)}
            listed = connection.execute(
                text(_TABLES).bindparams(bindparam("system", expanding=True)), system
            ).all()
            keys = connection.execute(
                text(_KEYS).bindparams(bindparam("system", expanding=True)), system
            ).all()
            wanted = [row for row in listed if not databases or row[0] in databases]
            leaves = _leaf_pages(connection)
            counted = counted_rows(connection, ((row[0], row[1], float(row[5])) for row in wanted))
            created = [
                connection.exec_driver_sql(
                    f"SHOW CREATE TABLE {quoted(row[0])}.{quoted(row[1])}"
                ).all()[0][1]
                for row in wanted
            ]
    except sqlalchemy.exc.SQLAlchemyError as error:
        from applier.mysql.client.connection import WRONG_ACCOUNT

        answer: tuple[Any, ...] = getattr(getattr(error, "orig", None), "args", ())
        told = f"cannot read the schema of {endpoint}: {answer[1] if len(answer) > 1 else error}"
        if answer and answer[0] in WRONG_ACCOUNT:
            raise InputError(told, code=Code.WRONG_ACCOUNT) from None
        raise InputError(
            told, code=Code.NOT_REACHED, hint="check the address, the account and its privileges"
        ) from None
    finally:
        engine.dispose()
    rules = found_rules(version, "the server")
    definitions = _load(wanted, created, rules)
    cardinalities, prefixes = _cardinalities(keys)
    facts = {}
    for database, table, rows, row_bytes, following, _ in wanted:
        name, numbers = f"{database}.{table}", cardinalities.get((database, table), {})
        known = replace(
            definitions[name],
            rows=float(rows or 0),
            rows_from=STATISTICS,
            row_bytes=float(row_bytes or 0),
            leaf_pages=leaves.get((database, table), {}),
            rows_per_prefix=tuple(
                _rows_of_a_value(definitions[name].definition, float(rows or 0), one, rules)
                for one in prefixes.get((database, table), ())
            ),
        )
        facts[name] = judged(
            known, numbers, float(following or 0), rules, counted.get((database, table))
        )
    return facts, version


Cardinalities = dict[tuple[str, str], dict[str, float]]


def _cardinalities(
    keys: Iterable[Any],
) -> tuple[Cardinalities, dict[tuple[str, str], list[float]]]:
    """(Table -> key -> distinct values, table -> those of the first 1, 2, … columns of its primary
    key)."""
    cardinalities: Cardinalities = {}
    prefixes: dict[tuple[str, str], list[float]] = {}
    for database, table, key, cardinality in keys:
        if cardinality:
            found = cardinalities.setdefault((database, table), {})
            found[key] = max(found.get(key, 0.0), float(cardinality))
            if key == "PRIMARY":
                prefixes.setdefault((database, table), []).append(float(cardinality))
    return cardinalities, prefixes


def _leaf_pages(connection: Any) -> dict[tuple[str, str], dict[str, float]]:
    """Table -> index -> leaf pages; none where the account may not read InnoDB's statistics."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for database, table, index, pages in rows_if_told(connection, _LEAVES) or ():
        name = _CLUSTERED[1] if index in _CLUSTERED else index
        found.setdefault((database, table), {})[name] = float(pages)
    return found


def judged(
    facts: TableFacts,
    cardinalities: Mapping[str, float],
    following: float,
    rules: ServerRules,
    counted: float | None = None,
) -> TableFacts:
    """Rows per value from cardinalities (key name -> values, as a server with these rules shows
    them), as far as they can be: a unique key has a value a row.

    A cardinality of 0 is one that the server has not counted yet. `following`: the next
    AUTO_INCREMENT value, 0 for none. Statistics that contradict the definition are old:
    then nothing is taken from them but the number of rows, and `doubts` says so. `counted`: rows of
    the table, up to MOST_COUNTED, where somebody counted them; statistics that say far fewer are
    old, too, and nothing at all is taken from them.
    """
    definition, rows = facts.definition, facts.rows or 0.0
    cardinalities = {name: values for name, values in cardinalities.items() if values}
    single = {key.name for key in definition.keys if _has_value_a_row(definition, key)}
    duplicates = dict.fromkeys(single, 1.0)
    if counted is not None and counted > OLD_FACTOR * rows:
        return _as_counted(replace(facts, duplicates=duplicates), counted)
    doubt = next(
        _doubts(
            rows, {name: cardinalities[name] for name in single & cardinalities.keys()}, following
        ),
        None,
    )
    if doubt is not None:
        name = definition.full_name
        said = (
            f"the server's statistics of {name} hold: they are old, {doubt} (ANALYZE TABLE {name}"
            " makes new ones)"
        )
        return replace(facts, duplicates=duplicates, doubts=(said,))
    duplicates |= {
        name: _rows_of_a_value(definition, rows, values, rules)
        for name, values in cardinalities.items()
        if name not in single
    }
    return replace(facts, duplicates=duplicates)


def _as_counted(facts: TableFacts, counted: float) -> TableFacts:
    name, least = facts.definition.full_name, " at least" if counted >= MOST_COUNTED else ""
    said = (
        f"{name} has{least} {counted:,.0f} rows, as counted; the server's statistics are old, they"
        f" say {facts.rows or 0:,.0f} (ANALYZE TABLE {name} makes new ones)"
    )
    return replace(
        facts, rows=counted, rows_from=COUNTED_THERE, row_bytes=None, leaf_pages={},
        rows_per_prefix=(), doubts=(said,),
    )  # fmt: skip


def _rows_of_a_value(
    definition: TableDefinition, rows: float, values: float, rules: ServerRules
) -> float:
    """From the values that information_schema shows. Where InnoDB halves, 1 may be 1 to 3 rows,
    which count as 2; statistics that do not come from InnoDB (MariaDB's ANALYZE TABLE … PERSISTENT)
    are not halved, and nothing tells them from the others."""
    halved = rules.halves_statistics and definition.engine.lower() == "innodb"
    return max(rows / values, 1.0) * (HALVED if halved else 1.0)


def _has_value_a_row(definition: TableDefinition, key: Key) -> bool:
    if key.unique:
        return not definition.is_nullable(key)
    return len(key.columns) == 1 and definition.columns[key.columns[0]].auto_increment


def _doubts(rows: float, values: Mapping[str, float], following: float) -> Iterator[str]:
    """What cannot be: `values` are those of keys that have a value a row."""
    for name, count in sorted(values.items()):
        if rows > OLD_FACTOR * count:
            yield f"key `{name}` would have {count:,.0f} values in {rows:,.0f} rows"
    given = following - 1
    if given > 0 and rows > OLD_FACTOR * given:
        yield f"there would be {rows:,.0f} rows, and AUTO_INCREMENT gave out {given:,.0f} numbers"
    if given > MANY_ROWS and not rows:
        yield f"there would be no rows, and AUTO_INCREMENT gave out {given:,.0f} numbers"


def _load(
    wanted: Collection[Any], created: Collection[str], rules: ServerRules
) -> dict[str, TableFacts]:
    sql, current = ["SET FOREIGN_KEY_CHECKS=0"], None
    for (database, *_), statement in zip(wanted, created, strict=True):
        if database != current:
            sql += [
                f"CREATE DATABASE IF NOT EXISTS {quoted(database)}",
                f"USE {quoted(database)}",
            ]
            current = database
        sql.append(statement)
    tables = load_schema(";\n".join(sql) + ";\n", server=rules.name)
    return {table.definition.full_name: TableFacts(table.definition) for table in tables}


def _url(endpoint: Endpoint) -> Any:
    from sqlalchemy import URL

    return URL.create(
        "mysql+pymysql",
        endpoint.user,
        endpoint.password,
        endpoint.host,
        endpoint.port,
        query={"charset": "utf8mb4"},
    )
