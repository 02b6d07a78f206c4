"""Schemas of public programs, made by their own scripts on real servers, dumped, and read by
binlag.

    python scripts/public_schemas.py [--server 9.7] [--only zabbix] > table.md

Each row of SCHEMAS is a program whose SQL comes out of a Debian package (apt-get download; nothing
is installed) or that makes its tables itself (Django, from PyPI, in an environment of its own). The
tables are made on a real server, dumped by its own client with default options and with --no-data,
changed by a few statements, and then:

* `binlag explain` reads both dumps, and finds as many tables as the server has;
* `binlag replay --schema` replays the statements over both (idempotently over the one without
  rows);
* `binlag forecast --schema` reads both;
* `binlag verify` compares every row of the server with the dump plus the log;
* each ALTER TABLE that `binlag explain` suggests is executed on the server, with the algorithm and
  the lock that it names.

What was fetched stays in ~/.cache/binlag/schemas. Nothing of it belongs into the repository.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docker")]

from click.testing import CliRunner  # noqa: E402
from servers.installed import installed  # noqa: E402
from servers.server import Server  # noqa: E402

from applier.cli.main import cli  # noqa: E402
from applier.errors import BinlagError  # noqa: E402

CACHE = Path.home() / ".cache" / "binlag" / "schemas"
SERVERS = ("9.7", "5.7", "mariadb")
PREAMBLE = (
    "SET NAMES utf8mb4; SET SESSION sql_mode='NO_ENGINE_SUBSTITUTION'; SET FOREIGN_KEY_CHECKS=0;\n"
)
"""What these scripts take for granted; old ones have zero dates."""
CHANGED_TABLES = 60
"""Tables of a schema that the log changes, at most."""


@dataclass(frozen=True)
class Schema:
    """A program. `files`: patterns in the unpacked package, in this order; `{database}` in `edit`
    is the schema's own."""

    name: str
    package: str
    files: tuple[str, ...]
    edit: Callable[[str], str] = str


def _wordpress(php: str) -> str:
    """The statements of wp-admin/includes/schema.php, with the names that an installation has."""
    sql = "".join(re.findall(r'"(\s*CREATE TABLE.*?)"\s*;', php, re.DOTALL))
    sql = re.sub(r"\$wpdb->(\w+)", r"wp_\1", sql)
    collation = "DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
    return sql.replace("$charset_collate", collation).replace("$max_index_length", "191")


def _tango(sql: str) -> str:
    """Its procedures name the database that its installer makes."""
    return sql.replace("tango.", "")


def _tables_of_text(text: str) -> str:
    """The CREATE TABLEs of a text for people."""
    return "\n".join(re.findall(r"CREATE TABLE.*?;", text, re.DOTALL))


_DBCONFIG = "usr/share/dbconfig-common/data/{}/install/mysql"
_OAR = ("mysql_structure", "default_data", "mysql_default_admission_rules")
SCHEMAS = (
    Schema(
        "Zabbix",
        "zabbix-server-mysql",
        tuple(
            f"usr/share/zabbix-server-mysql/{name}.sql.gz" for name in ("schema", "images", "data")
        ),
    ),
    Schema("WordPress", "wordpress", ("usr/share/wordpress/wp-admin/includes/schema.php",),
           _wordpress),
    Schema("MediaWiki", "mediawiki", ("usr/share/mediawiki/maintenance/tables-generated.sql",)),
    Schema("Roundcube", "roundcube-core", ("usr/share/roundcube/SQL/mysql.initial.sql",)),
    Schema("phpMyAdmin", "phpmyadmin", ("usr/share/phpmyadmin/sql/create_tables.sql",)),
    Schema("Cacti", "cacti", ("usr/share/cacti/conf_templates/cacti.sql",)),
    Schema("Bacula", "bacula-director-mysql", (_DBCONFIG.format("bacula-director-mysql"),)),
    Schema("Icinga DB", "icingadb", ("usr/share/icingadb/schema/mysql/schema.sql",)),
    Schema("Icinga IDO", "icinga2-ido-mysql", ("usr/share/icinga2-ido-mysql/schema/mysql.sql",)),
    Schema("Icinga Web", "icingaweb2", ("usr/share/icingaweb2/schema/mysql.schema.sql",)),
    Schema("Icinga Director", "icingaweb2-module-director",
           ("usr/share/icingaweb2/modules/director/schema/mysql.sql",)),
    Schema("PowerDNS", "pdns-backend-mysql",
           ("usr/share/pdns-backend-mysql/schema/schema.mysql.sql",)),
    Schema("FreeRADIUS", "freeradius-config",
           ("etc/freeradius/3.0/mods-config/sql/main/mysql/schema.sql",)),
    Schema("Tiny Tiny RSS", "tt-rss", ("usr/share/tt-rss/schema/ttrss_schema_mysql.sql",)),
    Schema("rsyslog", "rsyslog-mysql", (_DBCONFIG.format("rsyslog-mysql"),)),
    Schema("Kamailio", "kamailio-mysql-modules",
           ("usr/share/kamailio/mysql/standard-create.sql",
            "usr/share/kamailio/mysql/*-create.sql")),
    Schema("ZoneMinder", "zoneminder", ("usr/share/zoneminder/db/zm_create.sql",)),
    Schema("ejabberd", "ejabberd", ("usr/share/ejabberd/sql/mysql.sql",)),
    Schema("Prelude", "libpreludedb7-mysql", ("usr/share/libpreludedb/classic/mysql.sql",)),
    Schema("Gammu", "gammu-smsd", ("usr/share/doc/gammu-smsd/examples/mysql.sql*",)),
    Schema("OpenDMARC", "opendmarc", (_DBCONFIG.format("opendmarc"),)),
    Schema("Kea", "kea-admin", ("usr/share/kea/scripts/mysql/dhcpdb_create.mysql",)),
    Schema("Request Tracker", "request-tracker5", ("usr/share/request-tracker5/etc/schema.mysql",)),
    Schema("OCS Inventory", "ocsinventory-reports",
           ("usr/share/ocsinventory-reports/files/ocsbase.sql",)),
    Schema("OAR", "oar-server", tuple(f"usr/lib/oar/database/{name}.sql" for name in _OAR)),
    Schema("Zoph", "zoph", (_DBCONFIG.format("zoph"),)),
    Schema("ulogd", "ulogd2", ("usr/share/doc/ulogd2/mysql-ulogd2.sql.gz",)),
    Schema("ulogd, flat", "ulogd2", ("usr/share/doc/ulogd2/mysql-ulogd2-flat.sql.gz",)),
    Schema("Tango", "tango-db",
           ("usr/share/tango-db/create_db_tables.sql", "usr/share/tango-db/stored_proc.sql"),
           _tango),
    Schema("jabberd2", "jabberd2", ("usr/share/doc/jabberd2/db-setup.mysql.gz",)),
    Schema("SOGo", "sogo", ("usr/share/doc/sogo/mysql-utf8mb4.sql.gz",)),
    Schema("w1retap", "w1retap-doc", ("usr/share/doc/w1retap/mksenst-mysql.sql",)),
    Schema("gnokii", "gnokii-smsd-mysql",
           ("usr/share/doc/gnokii-smsd-mysql/sms.tables.mysql.sql",)),
    Schema("amavis", "amavisd-new", ("usr/share/doc/amavisd-new/README.sql-mysql.gz",),
           _tables_of_text),
)  # fmt: skip
DJANGO = Schema("Django", "PyPI Django", ())
DJANGO_APPS = ("admin", "auth", "contenttypes", "sessions", "sites", "redirects", "flatpages")


def unpacked(package: str) -> Path:
    """The folder of a Debian package's files."""
    folder = CACHE / package
    if not (folder / "usr").exists() and not (folder / "etc").exists():
        (CACHE / "deb").mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", package], cwd=CACHE / "deb", check=True)
        archive = max((CACHE / "deb").glob(f"{package}_*.deb"))
        subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)
    return folder


def script(schema: Schema) -> str:
    """The SQL that makes the schema."""
    folder = unpacked(schema.package)
    paths = dict.fromkeys(path for pattern in schema.files for path in sorted(folder.glob(pattern)))
    if not paths:
        raise SystemExit(f"{schema.package} holds none of {', '.join(schema.files)}")
    texts = [
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in paths
    ]
    return "\n".join(schema.edit(text.decode("utf-8", "surrogateescape")) for text in texts)


@dataclass
class Trial:
    """One server at work."""

    server: Server
    clients: str
    suggestions: int = 0
    """So many suggested ALTER TABLEs were executed."""

    def client(self, program: str, *arguments: str) -> list[str]:
        """A client that can log in to this server."""
        names = (
            {"mysql": "mariadb", "mysqldump": "mariadb-dump"} if self.clients == "mariadb" else {}
        )
        return self.server.client(
            names.get(program, program), *arguments, of=installed(self.clients)
        )

    def run(self, sql: str, database: str = "", *, force: bool = False) -> str:
        """SQL from standard input. Returns what the client complains of."""
        command = self.client(
            "mysql", *(["--force"] if force else []), *([database] if database else [])
        )
        done = subprocess.run(
            command, input=sql.encode("utf-8", "surrogateescape"), capture_output=True, check=False
        )
        return done.stderr.decode("utf-8", "replace").strip()

    def dump(self, path: Path, *options: str) -> None:
        """The client's own dump."""
        with path.open("wb") as file:
            subprocess.run(self.client("mysqldump", *options), stdout=file, check=True)

    def tables(self, database: str) -> list[str]:
        """The names of the base tables."""
        sql = (
            f"SELECT table_name FROM information_schema.tables WHERE table_schema='{database}' AND "
            "table_type='BASE TABLE'"
        )
        return sorted(row[0] for row in self.server.query(sql))


def changes(tables: list[str]) -> Iterator[str]:
    """A row of defaults into each table, if it takes one, and one row less."""
    yield "SET SESSION sql_mode='', FOREIGN_KEY_CHECKS=0;"
    for table in tables[:CHANGED_TABLES]:
        yield f"INSERT IGNORE INTO `{table}` () VALUES ();"
        yield f"DELETE FROM `{table}` LIMIT 1;"


def make(schema: Schema, trial: Trial, database: str) -> str:
    """The schema on the server. Returns the first complaint."""
    if schema is DJANGO:
        return make_django(trial, database)
    sql = script(schema)
    if re.search(r"^\s*USE\s", sql, re.IGNORECASE | re.MULTILINE):
        sql = re.sub(
            r"^\s*(?:USE|CREATE DATABASE)\s[^;]*;", "", sql, flags=re.IGNORECASE | re.MULTILINE
        )
    return trial.run(PREAMBLE + sql, database, force=True)


def make_django(trial: Trial, database: str) -> str:
    """`migrate` of Django's own applications."""
    folder = CACHE / "django"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "Django==4.1.*", "pymysql", "cryptography"],
            check=True,
        )
    settings = {
        "SECRET_KEY": "x", "SITE_ID": 1, "USE_TZ": True,
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "INSTALLED_APPS": [f"django.contrib.{name}" for name in DJANGO_APPS],
        "DATABASES": {"default": {
            "ENGINE": "django.db.backends.mysql", "NAME": database, "USER": trial.server.user,
            "HOST": str(trial.server.socket), "OPTIONS": {"charset": "utf8mb4"},
        }},
    }  # fmt: skip
    code = (
        "import os, pymysql; pymysql.version_info = (2, 2, 1, 'final', 0); "
        "pymysql.install_as_MySQLdb()\n"
        f"import django; from django.conf import settings; given = {settings!r}\n"
        "given['DATABASES']['default']['PASSWORD'] = os.environ['MYSQL_PWD']; "
        "settings.configure(**given); django.setup()\n"
        "from django.core.management import call_command; call_command('migrate', verbosity=0)\n"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def binlag(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output, and what it says besides."""
    done = CliRunner().invoke(cli, list(arguments), standalone_mode=False)
    if isinstance(done.exception, BinlagError):
        return done.exception.exit_code, done.stdout, str(done.exception)
    if done.exception is not None:
        return 70, done.stdout, repr(done.exception)
    return done.return_value or 0, done.stdout, done.stderr.strip()


def judged(schema: Schema, trial: Trial, folder: Path) -> tuple[int, str]:
    """(Tables, what binlag made of them): "equal", or what went wrong."""
    database = re.sub(r"\W", "", schema.name).lower()
    trial.server.execute(f"CREATE DATABASE {database}")
    complaint = make(schema, trial, database)
    tables = trial.tables(database)
    if not tables:
        return (
            0,
            (
                "the server does not take it: "
                f"{complaint.splitlines()[0] if complaint else 'no tables'}"
            ),
        )
    whole, bare = folder / f"{database}.sql", folder / f"{database}.bare.sql"
    trial.dump(whole, "--databases", database)
    trial.dump(bare, "--no-data", database)
    trial.server.execute("FLUSH LOGS")
    log = trial.server.binlog_files()[-1]
    trial.run("\n".join(changes(tables)), database, force=True)
    url = f"mysql://{trial.server.user}@localhost?socket={trial.server.socket}"
    rules = trial.server.installed.recipe.name
    problems = list(_problems(tables, whole, bare, str(log), url, rules))
    problems += _suggestions(trial, whole, rules)
    return len(tables), "; ".join(problems) or "equal"


def _problems(
    tables: list[str], whole: Path, bare: Path, log: str, url: str, rules: str
) -> Iterator[str]:
    for dump in (whole, bare):
        code, output, said = binlag(
            "explain", str(dump), "--server", rules, "--row-image", "FULL", "--json"
        )
        if code or len(output.splitlines()) != len(tables):
            yield f"explain {dump.name}: {said or len(output.splitlines())}"
    runs = {
        "replay": ("replay", log, "--schema", str(whole)),
        "replay without rows": ("replay", log, "--schema", str(bare), "--exec-mode", "idempotent"),
        "forecast": ("forecast", log, "--schema", str(whole)),
        "forecast without rows": ("forecast", log, "--schema", str(bare)),
        "verify": ("verify", log, "--into", url, "--schema", str(whole)),
    }
    for name, arguments in runs.items():
        code, output, said = binlag(*arguments)
        if code:
            yield f"{name}: {(output or said).splitlines()[0]}"


def _suggestions(trial: Trial, dump: Path, rules: str) -> Iterator[str]:
    """Executes each ALTER TABLE that binlag suggests, with the algorithm and the lock that it
    names."""
    _, output, _ = binlag("explain", str(dump), "--server", rules, "--row-image", "FULL", "--json")
    for line in output.splitlines():
        found = json.loads(line)["suggestion"]
        if found and found["sql"]:
            sql = (
                f"{found['sql'].rstrip(';')}, ALGORITHM={found['algorithm']}, LOCK={found['lock']}"
            )
            trial.suggestions += 1
            if said := trial.run(sql):
                yield f"suggestion {sql}: {said.splitlines()[0]}"


def main() -> int:
    """Prints a table in Markdown; exit code 1 where something is not equal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", action="append", choices=SERVERS)
    parser.add_argument("--only", action="append")
    given = parser.parse_args()
    servers = given.server or SERVERS
    chosen = [
        one
        for one in (*SCHEMAS, DJANGO)
        if not given.only or one.name.lower() in {name.lower() for name in given.only}
    ]
    results: dict[str, dict[str, tuple[int, str]]] = {one.name: {} for one in chosen}
    for name in servers:
        with Server(
            name,
            options={"log_bin_trust_function_creators": True, "innodb_flush_log_at_trx_commit": 0},
        ) as server:
            os.environ["MYSQL_PWD"] = server.password
            trial = Trial(server, "9.7" if name == "9.7" else "mariadb")
            folder = server.folder / "dumps"
            folder.mkdir()
            for one in chosen:
                results[one.name][name] = judged(one, trial, folder)
                print(f"{name} {one.name}: {results[one.name][name]}", file=sys.stderr, flush=True)
            print(f"{name}: {trial.suggestions} suggestions executed", file=sys.stderr, flush=True)
    print(
        f"| schema | package | tables | {' | '.join(servers)} |\n"
        f"|---|---|---:|{'---|' * len(servers)}"
    )
    for one in chosen:
        found = results[one.name]
        most = max(count for count, _ in found.values())
        told = [
            result if count in (0, most) else f"{result} ({count} tables)"
            for count, result in (found[name] for name in servers)
        ]
        print(f"| {' | '.join((one.name, one.package, str(most), *told))} |")
    return any(result != "equal" for found in results.values() for _, result in found.values())


if __name__ == "__main__":
    sys.exit(main())
