"""Identifiers of XA transactions: how they are written, and which prepared transaction one means."""

from __future__ import annotations

from collections.abc import Collection


def xid_text(format_id: int, global_id: bytes, branch_id: bytes) -> str:
    """As the server writes it into its log: X'676c6f62616c',X'6272616e6368',1."""
    return f"X'{global_id.hex()}',X'{branch_id.hex()}',{format_id}"


def plain_xid(text: str) -> str:
    """The identifier of an XA transaction in one form, however a statement wrote it."""
    return "".join(text.split()).lower().removesuffix("onephase")


def prepared_xid(text: str, known: Collection[str]) -> str:
    """Which of the prepared transactions an XA statement means, its own identifier when none of them.

    `known` are in the form of `plain_xid`. MariaDB 10.11.19 cuts the text of a long identifier short.
    """
    xid = plain_xid(text)
    return xid if xid in known else next((prepared for prepared in known if prepared.startswith(xid)), xid)
