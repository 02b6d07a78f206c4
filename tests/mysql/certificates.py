"""Certificates for tests: authorities, and servers and clients that they vouch for."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """PEM files."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates; `path` is its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        certificate = self._builder(self._name, self._key, now - DAY, now + DAY).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self._signed(certificate))

    def _builder(
        self, name: x509.Name, key: rsa.RSAPrivateKey, start: datetime, end: datetime
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self._name)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        return builder.not_valid_before(start).not_valid_after(end)

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def pair(self, name: str, host: str = "127.0.0.1", *, is_expired: bool = False) -> Pair:
        """A certificate for a host's address, and its key."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        now = datetime.now(UTC)
        start, end = (now - 3 * DAY, now - DAY) if is_expired else (now - DAY, now + DAY)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
        builder = self._builder(subject, key, start, end).add_extension(address, critical=False)
        found = Pair(self.folder / f"{name}-cert.pem", self.folder / f"{name}-key.pem")
        found.cert.write_bytes(self._signed(builder))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return found
