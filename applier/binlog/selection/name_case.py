"""Names of databases and tables where lower_case_table_names is not 0."""

from __future__ import annotations


def lower_case(name: str) -> str:
    """A name as a server with lower_case_table_names=1 keeps it: letter by letter, as
    `my_casedn_str` does (sql/sql_table.cc, sql/log_event.cc 9.7), so that none becomes two."""
    if name.isascii():
        return name.lower()
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in name)
