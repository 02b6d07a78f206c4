"""XA transactions: their statements, how their identifiers are written, and which prepared
transaction one means."""

from __future__ import annotations

import re
from collections.abc import Collection

from applier.errors import ReplicationError

_STATEMENT = re.compile(
    rb"\s*XA\s+(START|BEGIN|END|PREPARE|COMMIT|ROLLBACK)\s+(.*)", re.IGNORECASE | re.DOTALL
)
_ROW = re.compile(r"[|\s]*(\d+)[|\s]+(\d+)[|\s]+(\d+)[|\s]+(\S.*?)[|\s]*")
_DIGITS = re.compile(r"0x(?:[0-9a-fA-F]{2})+")


def xa_statement(sql: bytes) -> tuple[str, str] | None:
    """The verb of an XA statement and the identifier behind it, without ONE PHASE; None for another
    statement."""
    match = _STATEMENT.match(sql.rstrip(b" \t\r\n;"))
    if match is None:
        return None
    xid = match[2]
    words = xid.rsplit(None, 2)
    if [word.lower() for word in words[1:]] == [b"one", b"phase"]:
        xid = words[0]
    return match[1].decode().upper(), xid.decode("latin-1")


def check_xid(begins: bool, xid: str, sql: bytes, prepared: Collection[str]) -> None:
    """Raises ReplicationError where the identifier does not fit (Sql_cmd_xa_start,
    Sql_cmd_xa_commit). `begins`: XA START; else XA COMMIT or ROLLBACK.

    1440: one that is in use begins nothing. 1397: only what is prepared ends.
    """
    text = sql.decode("latin-1")
    if begins and xid in prepared:
        raise ReplicationError(
            1440, f"Error 'XAER_DUPID: The XID already exists' on query. Query: '{text}'"
        )
    if not begins and xid not in prepared:
        raise ReplicationError(1397, f"Error 'XAER_NOTA: Unknown XID' on query. Query: '{text}'")


def xid_text(format_id: int, global_id: bytes, branch_id: bytes) -> str:
    """As the server writes it into its log: X'676c6f62616c',X'6272616e6368',1."""
    return f"X'{global_id.hex()}',X'{branch_id.hex()}',{format_id}"


def recovered_xid(row: str) -> str:
    """What a row of XA RECOVER means, as `xid_text` writes it; an identifier as a statement writes
    it stays as it is.

    A row is `formatID gtrid_length bqual_length data`, separated as the client prints it, or `data`
    alone: then all of it is the global part and the format is 1. Data is text, or 0x and digits
    (CONVERT XID). Raises ValueError where the lengths are not those of the data.
    """
    if "'" in row:
        return row
    match = _ROW.fullmatch(row)
    data = match[4] if match else row.strip(" |")
    content = bytes.fromhex(data[2:]) if _DIGITS.fullmatch(data) else data.encode()
    if match is None:
        return xid_text(1, content, b"")
    global_bytes, branch_bytes = int(match[2]), int(match[3])
    if global_bytes + branch_bytes != len(content):
        raise ValueError(
            f"lengths of {global_bytes} and {branch_bytes} bytes, but data of {len(content)}"
        )
    return xid_text(int(match[1]), content[:global_bytes], content[global_bytes:])


def plain_xid(text: str) -> str:
    """The identifier of an XA transaction in one form, however a statement wrote it."""
    return "".join(text.split()).lower().removesuffix("onephase")


def prepared_xid(text: str, known: Collection[str]) -> str:
    """Which of the prepared transactions an XA statement means, its own identifier when none of
    them.

    `known` are in the form of `plain_xid`. MariaDB 10.11.19 cuts the text of a long identifier
    short.
    """
    xid = plain_xid(text)
    return (
        xid
        if xid in known
        else next((prepared for prepared in known if prepared.startswith(xid)), xid)
    )
