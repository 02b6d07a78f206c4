"""How a connection is encrypted: the modes of MySQL's own clients, and the files that they take.

| mode | encrypted | the server's certificate |
|---|---|---|
| DISABLED | no | |
| PREFERRED | if the server offers it | not looked at |
| REQUIRED | yes | not looked at |
| VERIFY_CA | yes | signed by --ssl-ca, or by an authority that this machine trusts |
| VERIFY_IDENTITY | yes | … and made out to the host of the address |
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from applier.error_codes import Code
from applier.errors import UsageError


class TlsMode(StrEnum):
    """--ssl-mode."""

    DISABLED = "DISABLED"
    PREFERRED = "PREFERRED"
    REQUIRED = "REQUIRED"
    VERIFY_CA = "VERIFY_CA"
    VERIFY_IDENTITY = "VERIFY_IDENTITY"


VERIFYING = (TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY)
SHORT_WORDS = {"off": "DISABLED", "preferred": "PREFERRED", "required": "REQUIRED"}
"""The words of ?tls= in an address."""
OPTIONS = ("ssl-mode", "ssl-ca", "ssl-cert", "ssl-key")


@dataclass(frozen=True)
class Tls:
    """`ca`, `cert` and `key` are paths of PEM files: the authority, and the client's own
    certificate with its key."""

    mode: TlsMode = TlsMode.PREFERRED
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, str], option: str) -> Tls:
        """From the OPTIONS that an address or a command line gives. As with MySQL's clients,
        --ssl-ca alone means VERIFY_CA.

        Raises UsageError, which names `option`.
        """
        ca, cert, key = (given.get(name) for name in OPTIONS[1:])
        word = given.get("ssl-mode") or (TlsMode.VERIFY_CA if ca else TlsMode.PREFERRED)
        try:
            mode = TlsMode(word.upper())
        except ValueError:
            raise UsageError(
                f"{option}: ssl-mode={word} is not a mode",
                code=Code.OPTION_VALUE,
                hint=f"use one of {', '.join(TlsMode)}",
            ) from None
        if ca and mode not in VERIFYING:
            raise UsageError(
                f"{option}: ssl-mode={mode} does not use ssl-ca",
                code=Code.OPTIONS_CLASH,
                hint="use VERIFY_CA or VERIFY_IDENTITY",
            )
        if (cert is None) != (key is None):
            raise UsageError(
                f"{option}: ssl-cert and ssl-key belong together",
                code=Code.OPTION_MISSING,
                hint="give both of them",
            )
        return cls(mode, ca, cert, key)

    @property
    def is_required(self) -> bool:
        """Whether a connection without TLS is refused."""
        return self.mode not in (TlsMode.DISABLED, TlsMode.PREFERRED)

    def texts(self) -> list[str]:
        """As options of an address; nothing for the default."""
        given = (
            None if self.mode is TlsMode.PREFERRED else self.mode,
            self.ca,
            self.cert,
            self.key,
        )
        return [
            f"{name}={quote(value)}" for name, value in zip(OPTIONS, given, strict=True) if value
        ]

    def driver_options(self) -> dict[str, Any]:
        """For PyMySQL. Raises UsageError for a file that cannot be used."""
        if self.mode is TlsMode.DISABLED:
            return {"ssl_disabled": True}
        if self.mode is TlsMode.PREFERRED and not self.cert:
            return {}
        made = context(ca=self._readable(self.ca), verifies=self.mode in VERIFYING)
        made.check_hostname = self.mode is TlsMode.VERIFY_IDENTITY
        if self.cert:
            with _usable("ssl-cert", self.cert):
                made.load_cert_chain(self.cert, self.key)
        return {"ssl": made}

    def _readable(self, path: str | None) -> str | None:
        """The path of a file with certificates."""
        if path is not None:
            with _usable("ssl-ca", path):
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        return path


def context(*, ca: str | None, verifies: bool) -> ssl.SSLContext:
    """For connections whose server's certificate is verified or not, but for the name in it.
    `ca`: None for the authorities that this machine trusts, which take long to load."""
    if verifies:
        made = ssl.create_default_context(cafile=ca)
    else:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED if verifies else ssl.CERT_NONE
    return made


_FILES = {
    "ssl-cert": (
        "not a certificate and its key",
        "name PEM files: the client's certificate, and its key without a passphrase",
    ),
    "ssl-ca": (
        "no certificate in it",
        "name the PEM file of the authority that signed the server's certificate",
    ),
}
"""Option -> what is said of a file that holds something else, and what to do."""


@contextmanager
def _usable(option: str, path: str) -> Iterator[None]:
    """Raises UsageError for a file that the block cannot read or use."""
    content, hint = _FILES[option]
    try:
        yield
    except OSError as error:
        reason = content if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(f"--{option} {path}: {reason}", code=Code.CANNOT_READ, hint=hint) from None
