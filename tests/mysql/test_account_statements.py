"""Statements about accounts, replayed into a server: CURRENT_USER is the source's, never that of the replay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from applier.mysql.into import replay_into
from applier.mysql.into_options import IntoOptions
from applier.options import parse_options
from tests.mysql.server_support import endpoint
from tests.servers.fixtures import ServerFactory

ACCOUNTS = "SELECT User, Host, Insert_priv FROM mysql.user ORDER BY 1, 2"
DATABASES = "SELECT User, Host, Db, Select_priv FROM mysql.db ORDER BY 1, 2, 3"
LAST = {"9.7": "/* x */ DROP USER current_user()", "mariadb": "CREATE ROLE r WITH ADMIN current_user"}


@pytest.mark.parametrize("name", ["5.7", "9.7", "mariadb"])
def test_current_user_is_the_sources(name: str, server_factory: ServerFactory, tmp_path: Path) -> None:
    """9.7 and MariaDB log these as they are written; the target's root would lose its privileges and its name."""
    source, target = server_factory(name), server_factory(name)
    for user in ("u", "v"):
        source.execute(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'p'", f"GRANT ALL ON *.* TO {user}@'127.0.0.1' WITH GRANT OPTION")
    own = {
        "u": ("REVOKE INSERT ON *.* FROM CURRENT_USER", "GRANT SELECT ON d.* TO current_user()",
              "RENAME USER current_user TO 'current_user'@localhost"),
        "v": (LAST.get(name, "REVOKE INSERT ON *.* FROM CURRENT_USER()"),),
    }  # fmt: skip
    for user, statements in own.items():
        with source.connect(host="127.0.0.1", port=source.port, unix_socket=None, user=user, password="p") as connection:
            for sql in statements:
                connection.cursor().execute(sql)
    source.execute("FLUSH BINARY LOGS")
    log = shutil.copy(source.binlog_files()[0], tmp_path)
    outcome = replay_into([str(log)], endpoint(target), parse_options(), IntoOptions())
    assert outcome.error is None
    for query in (ACCOUNTS, DATABASES):
        assert target.query(query) == source.query(query)
