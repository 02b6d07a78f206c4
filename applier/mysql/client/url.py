"""Where the target is and who we are there: `mysql://user@host:port`, and the password from
anywhere but the command line.

A password in a URL would stand in the process list and in the shell's history, so it is refused. It
is looked for in the order --password-file, BINLAG_PASSWORD, MYSQL_PWD, the [client] section of the
user's option files, and asked for at last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from getpass import getuser
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from applier.error_codes import Code
from applier.errors import UsageError
from applier.masking import SECRET_VARIABLES, mask
from applier.mysql.client.compression import LEVEL_OPTION, OPTION, Compression
from applier.mysql.client.tls import OPTIONS as TLS_OPTIONS
from applier.mysql.client.tls import SHORT_WORDS, Tls
from applier.sources import check_name

SCHEME = "mysql"
DEFAULT_PORT = 3306
OPTION_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "~/.my.cnf")
"""As the server's own clients read them; the last one that says something wins."""
URL_HINT = (
    "write it as mysql://USER@HOST:PORT, or mysql://USER@localhost?socket=/path for a unix socket"
)


@dataclass(frozen=True)
class Endpoint:
    """A server and an account on it. The password shows in no text of this object."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    user: str = "root"
    socket: str | None = None
    tls: Tls = field(default_factory=Tls)
    password: str | None = field(default=None, repr=False)
    compression: Compression = field(default_factory=Compression)
    log_bin: bool = True
    """False: what sessions here do is not written to the server's binary log (sql_log_bin)."""

    def __str__(self) -> str:
        """The URL that leads here again."""
        options = [f"socket={self.socket}"] if self.socket else []
        options += self.tls.texts() + self.compression.texts()
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = host if self.socket else f"{host}:{self.port}"
        return f"{SCHEME}://{self.user}@{place}" + (f"?{'&'.join(options)}" if options else "")

    def with_compression(self, compression: Compression) -> Endpoint:
        """The same account over the compressed protocol."""
        return replace(self, compression=compression)

    def with_password(self, password: str) -> Endpoint:
        """The same account with this password."""
        return replace(self, password=password)

    def without_log(self) -> Endpoint:
        """The same account, whose sessions leave nothing in the server's binary log."""
        return replace(self, log_bin=False)


def parse_url(url: str, option: str = "--into") -> Endpoint:
    """Raises UsageError that names the option; the text of a password that stands in the URL is not
    repeated."""
    try:
        parts = urlsplit(url)
        port = parts.port
        if port == 0:
            raise ValueError
    except ValueError:
        raise UsageError(
            f"{option}: the port or the host is missing or not valid", code=Code.URL, hint=URL_HINT
        ) from None
    if parts.scheme != SCHEME:
        raise UsageError(
            f"{option}: {parts.scheme or mask(url)!r} is not a server address",
            code=Code.URL,
            hint=URL_HINT,
        )
    if parts.password is not None:
        raise UsageError(
            f"{option}: a password in the URL stands in the process list for all to read",
            code=Code.PASSWORD_IN_URL,
            hint=f"leave it out and set {SECRET_VARIABLES[0]}, or give --password-file FILE",
        )
    options = _options(parts.query, option)
    if not parts.hostname and "socket" not in options:
        raise UsageError(f"{option}: the host is missing", code=Code.URL, hint=URL_HINT)
    if parts.path not in ("", "/"):
        raise UsageError(
            f"{option}: {mask(parts.path)!r} is not part of a server address",
            code=Code.URL,
            hint="remove it: write mysql://USER@HOST:PORT; one database is --database NAME",
        )
    return Endpoint(
        host=parts.hostname or "localhost",
        port=port or DEFAULT_PORT,
        user=unquote(parts.username) if parts.username else _option_file_value("user") or getuser(),
        socket=options.get("socket"),
        tls=_tls(options, option),
        compression=Compression.of(options.get(OPTION), options.get(LEVEL_OPTION), f"{option}: "),
    )


def _options(query: str, option: str) -> dict[str, str]:
    options = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    unknown = options.keys() - {"socket", "tls", OPTION, LEVEL_OPTION, *TLS_OPTIONS}
    if unknown:
        raise UsageError(
            f"{option}: {sorted(unknown)[0]!r} is not an option of an address",
            code=Code.URL,
            hint=(
                "there are socket=PATH,"
                f" {', '.join(f'{name}=…' for name in (*TLS_OPTIONS, OPTION, LEVEL_OPTION))} and"
                f" tls={'|'.join(SHORT_WORDS)}"
            ),
        )
    return options


def _tls(options: Mapping[str, str], option: str) -> Tls:
    """?ssl-mode=…, or its short form ?tls=off."""
    word = options.get("tls")
    if word is None:
        return Tls.of(options, option)
    if word not in SHORT_WORDS:
        raise UsageError(f"{option}: tls={word} is none of {', '.join(SHORT_WORDS)}", code=Code.URL)
    return Tls.of({"ssl-mode": SHORT_WORDS[word], **options}, option)


def find_password(
    password_file: str | os.PathLike[str] | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    ask: Callable[[], str] | None = None,
) -> str:
    """The password from the first place that has one; empty when there is none and nobody to ask.
    Raises UsageError for a file that cannot be read, InputError for a name that no file has."""
    if password_file is not None:
        check_name(password_file)
        return _from_file(Path(password_file))
    for name in SECRET_VARIABLES:
        if name in environment:
            return environment[name]
    found = _option_file_value("password")
    if found is not None:
        return found
    return ask() if ask is not None else ""


def _from_file(path: Path) -> str:
    """The first line of the file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"--password-file: cannot read {path}: {reason}", code=Code.CANNOT_READ
        ) from None
    return lines[0] if lines else ""


def _option_file_value(name: str) -> str | None:
    """A value of the [client] sections. Lines that only the server's own programs understand are
    passed over."""
    from configparser import ConfigParser
    from configparser import Error as ConfigError

    found = None
    for file in OPTION_FILES:
        parser = ConfigParser(
            allow_no_value=True, strict=False, interpolation=None, inline_comment_prefixes=("#",)
        )
        try:
            text = Path(file).expanduser().read_text(encoding="utf-8", errors="replace")
            parser.read_string(
                "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("!"))
            )
        except (OSError, RuntimeError, ConfigError):
            continue
        if parser.has_option("client", name):
            found = (parser.get("client", name) or "").strip("\"'")
    return found
