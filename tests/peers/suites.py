"""Where the suites lie and which scripts they have. `docker/servers/bring.py peers` brings them."""

from __future__ import annotations

import re
from pathlib import Path

from servers.suites import Suite, suite_of

from tests.peers.language import ScriptInterpreter
from tests.peers.statements import is_sent

SERVERS = ("9.7", "5.7", "mariadb")
FORMATS = ("ROW", "MIXED")
_SUITE = {"9.7": "mysql", "5.7": "mysql", "mariadb": "mariadb"}
FEWEST_STATEMENTS = 3

_FOLDERS = (
    "t", "main", "suite/engines/iuds/t", "suite/engines/funcs/t", "suite/gcol/t", "suite/vcol/t",
    "suite/json/t", "suite/sql_sequence/t", "suite/versioning/t", "suite/period/t",
    "suite/compat/oracle/t", "suite/innodb/t", "suite/parts/t", "suite/binlog/t",
    "suite/binlog_nogtid/t", "suite/rpl/t", "suite/rpl_nogtid/t", "suite/rpl_gtid/t",
    "suite/maria/t", "suite/maria", "suite/heap", "suite/csv", "suite/archive", "suite/gis/t",
    "suite/collations/t", "suite/max_parts/t", "suite/innodb_gis/t", "suite/atomic",
    "suite/jp/t",
    "plugin/type_*/**",
)  # fmt: skip
_LEFT_OUT = re.compile(
    r"ndb|crash|big|stress|shutdown|mysqldump|ssl|plugin|undo|encrypt|redo|recover|upgrade|mysql_|mysqladmin|innodb-log|percona|ibd|import|"
    r"export|tablespace|startup|heartbeat|semi_?sync|group_repl|clone|keyring|events_|event_|wl\d+_tmp|initialize|log_error|slow|"
    r"max_connections|thread"
)
"""Names of scripts about the server itself, its files, or what needs minutes."""


def suite_for(server: str) -> Suite:
    """The suite whose scripts run on a server. 5.7 runs those of 9.7: no package has its own."""
    return suite_of(_SUITE[server])


def script_names(server: str) -> list[str]:
    """All scripts for a server, in order, as paths inside the suite."""
    root = suite_for(server).scripts
    found = {
        path
        for folder in _FOLDERS
        for path in root.glob(f"{folder}/*.test")
        if not _LEFT_OUT.search(path.name)
    }
    return sorted(str(path.relative_to(root)) for path in found)


def statements_of(server: str, script: str) -> list[str]:
    """The SQL of a script that is carried out, each statement with the script's bytes as latin1."""
    root = suite_for(server).scripts
    parts = Path(script).parts
    roots = [
        root,
        root / "suite/engines",
        *([root / "suite" / parts[1]] if parts[0] == "suite" else []),
    ]
    interpreter = ScriptInterpreter(roots, root / "std_data")
    interpreter.file(root / script)
    return [sql for sql in interpreter.statements if is_sent(sql)]
