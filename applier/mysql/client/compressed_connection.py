"""The compressed protocol: packets inside of compressed ones, as MySQL's own clients ask for it.

    3 bytes length, 1 byte number, 3 bytes length when unpacked (0: not compressed), content

It begins behind the authentication, inside of TLS. zlib is known to all servers, zstd from 8.0.18
on.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

import zstandard

from applier.mysql.client.compression import CAPABILITIES, UNCOMPRESSED, Compression
from applier.mysql.client.driver import DriverConnection

HEAD, LARGEST, SHORT = 7, 0xFFFFFF, 50
"""Bytes of a head; of the longest content; what is shorter is not compressed
(MIN_COMPRESS_LENGTH)."""
_TLS_REQUEST = 32
"""Bytes of the packet that asks for TLS; the longer one behind it is the answer to the greeting."""
_CHUNK = 1 << 16


class CompressingConnection(DriverConnection):
    """The driver's connection with the compressed protocol."""

    server_capabilities: int

    def __init__(self, compression: Compression, **options: Any) -> None:
        self._compression = compression
        self._algorithm = UNCOMPRESSED
        self._behind_greeting = b""
        super().__init__(**options)

    def on_greeting(self) -> None:
        """Asks for an algorithm that both know."""
        algorithm = self._algorithm = self._compression.chosen(self.server_capabilities)
        self.client_flag |= CAPABILITIES.get(algorithm, 0)
        if algorithm == "zstd":
            self._behind_greeting = bytes([self._compression.zstd_level])

    def on_admission(self) -> None:
        """From here on everything is compressed."""
        if (algorithm := self._algorithm) != UNCOMPRESSED:
            packers = {"zlib": zlib.compress, "zstd": _zstd_packer(self._compression.zstd_level)}
            unpackers = {"zlib": _unzlib, "zstd": _unzstd}
            self.socket = CompressedSocket(self.socket, packers[algorithm], unpackers[algorithm])

    def write_packet(self, payload: bytes) -> None:
        """The level of zstd ends the answer to the server's greeting."""
        if len(payload) > _TLS_REQUEST:
            payload, self._behind_greeting = payload + self._behind_greeting, b""
        super().write_packet(payload)


class CompressedSocket(io.RawIOBase):
    """A socket whose bytes are packets in compressed ones. What cannot be unpacked is an
    OSError."""

    def __init__(
        self, below: Any, pack: Callable[[bytes], bytes], unpack: Callable[[bytes, int], bytes]
    ) -> None:
        super().__init__()
        self._below, self._pack, self._unpack = below, pack, unpack
        self._came = bytearray()
        self._ready = memoryview(b"")
        """Unpacked and not taken yet."""
        self._number = 0
        self.settimeout, self.setsockopt = below.settimeout, below.setsockopt

    def sendall(self, data: bytes) -> None:
        """Sends a packet with its head, whose number is 0 when it begins a command."""
        if data[3] == 0:
            self._number = 0
        for at in range(0, len(data), LARGEST):
            self._below.sendall(self._compressed(data[at : at + LARGEST]))
            self._number = (self._number + 1) & 0xFF

    def _compressed(self, plain: bytes) -> bytes:
        content, unpacked = plain, 0
        if len(plain) >= SHORT:
            packed = self._pack(plain)
            if len(packed) < len(plain):
                content, unpacked = packed, len(plain)
        lengths = len(content).to_bytes(3, "little"), unpacked.to_bytes(3, "little")
        return lengths[0] + bytes([self._number]) + lengths[1] + content

    def recv_into(self, view: memoryview) -> int:
        """Takes what fits; 0 at the end. Waits as the socket below does."""
        while not self._ready:
            content = self._next()
            if content is not None:
                self._ready = memoryview(content)
                continue
            chunk = self._below.recv(_CHUNK)
            if not chunk:
                return 0
            self._came += chunk
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _next(self) -> bytes | None:
        """What the next compressed packet holds; None where it has not come to its end."""
        came = self._came
        size = HEAD + int.from_bytes(came[:3], "little")
        if len(came) < max(size, HEAD):
            return None
        content, unpacked = bytes(came[HEAD:size]), int.from_bytes(came[4:HEAD], "little")
        self._number = (came[3] + 1) & 0xFF
        del came[:size]
        if not unpacked:
            return content
        try:
            plain = self._unpack(content, unpacked)
        except (zlib.error, zstandard.ZstdError) as error:
            raise ConnectionError(f"a compressed packet cannot be unpacked: {error}") from None
        if len(plain) != unpacked:
            raise ConnectionError(
                f"a compressed packet does not hold the {unpacked} bytes it claims"
            )
        return plain

    def readable(self) -> bool:
        """For the driver's buffer."""
        return True

    def readinto(self, buffer: Any) -> int:
        """For the driver's buffer."""
        return self.recv_into(memoryview(buffer))

    def pending(self) -> int:
        """Bytes that have come already, here or in the TLS below; what is packed counts as it
        is."""
        below: Callable[[], int] = getattr(self._below, "pending", lambda: 0)
        return len(self._ready) + below()

    def fileno(self) -> int:
        """Of the socket below."""
        return int(self._below.fileno())

    def close(self) -> None:
        """Closes the socket below."""
        self._below.close()
        super().close()


def _unzlib(content: bytes, size: int) -> bytes:
    return zlib.decompressobj().decompress(content, size)


def _unzstd(content: bytes, size: int) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as stream:
        return stream.read(size)


def _zstd_packer(level: int) -> Callable[[bytes], bytes]:
    return zstandard.ZstdCompressor(level=level).compress
