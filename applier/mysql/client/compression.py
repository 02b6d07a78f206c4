"""How much a connection is compressed: the algorithms of MySQL's own clients, and a server's."""

from __future__ import annotations

from dataclasses import dataclass

from applier.error_codes import Code
from applier.errors import InputError, UsageError

OPTION, LEVEL_OPTION = "compression-algorithms", "zstd-compression-level"
UNCOMPRESSED = "uncompressed"
CAPABILITIES = {"zlib": 1 << 5, "zstd": 1 << 26}
"""CLIENT_COMPRESS, CLIENT_ZSTD_COMPRESSION_ALGORITHM."""
LEVELS = range(1, 23)


@dataclass(frozen=True)
class Compression:
    """`algorithms` in the order of preference; the first that the server knows is used."""

    algorithms: tuple[str, ...] = (UNCOMPRESSED,)
    zstd_level: int = 3

    @classmethod
    def of(cls, words: str | None, level: str | None, whose: str) -> Compression:
        """From the two options of an address. Raises UsageError; `whose`: what its text begins
        with."""
        algorithms = tuple((words or UNCOMPRESSED).lower().split(","))
        known = (*CAPABILITIES, UNCOMPRESSED)
        if unknown := [word for word in algorithms if word not in known]:
            text = f"{OPTION}: {unknown[0]!r} is not a compression algorithm"
            hint = f"there are {', '.join(known)}"
        elif level is not None and not (level.isdecimal() and int(level) in LEVELS):
            text = f"{LEVEL_OPTION}={level} is not a compression level"
            hint = f"from {LEVELS[0]} to {LEVELS[-1]}"
        else:
            return cls(algorithms, int(level or cls.zstd_level))
        raise UsageError(f"{whose}{text}", code=Code.OPTION_VALUE, hint=hint)

    @property
    def is_off(self) -> bool:
        """Nothing but the plain protocol is asked for."""
        return self.algorithms == (UNCOMPRESSED,)

    def texts(self) -> list[str]:
        """As options of an address; nothing for the default."""
        default = Compression()
        words = [f"{OPTION}={','.join(self.algorithms)}"]
        level = (
            [f"{LEVEL_OPTION}={self.zstd_level}"] if self.zstd_level != default.zstd_level else []
        )
        return words + level if self != default else []

    def chosen(self, capabilities: int) -> str:
        """The algorithm for a server with these capabilities. Raises InputError where there is
        none."""
        for word in self.algorithms:
            if word == UNCOMPRESSED or capabilities & CAPABILITIES[word]:
                return word
        offered = [word for word, flag in CAPABILITIES.items() if capabilities & flag]
        raise InputError(
            f"the server does not know {' or '.join(self.algorithms)} compression",
            code=Code.NOT_REACHED,
            hint=f"it knows {', '.join([*offered, UNCOMPRESSED])}: name one in --{OPTION}",
        )
