"""Wrong commands of every kind, each with what is said of it. `tests.cli.test_errors` has the files
that they name."""

from __future__ import annotations

from tests.binlog.build import log

FIRST = len(log())
"""Position of the first event behind the format description."""
SECRET = "hunter-22-zulu"
ONE = "--repository table --sync 1 --recovery 1 --position file --workers 0 --engine innodb"
"""One configuration."""
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "replay": ("BL301", ("FILE",)),
    "reply good.000001": ("BL301", ("reply",)),
    "replay good.000001 --nonsense": ("BL301", ("--nonsense",)),
    "replay good.000001 --start-position x": ("BL301", ("--start-position",)),
    "replay missing.000001": ("BL101", ("missing.000001",)),
    "replay good.000001 --schema missing.sql": ("BL101", ("missing.sql",)),
    "replay good.000001 --schema bad.sql": ("BL201", ("bad.sql", "line 2")),
    "replay good.000001 --schema bad.sql.gz": ("BL201", ("bad.sql.gz",)),
    "replay good.000001 --schema rows.sql": ("BL202", ("rows.sql", "line 2")),
    "replay good.000001 --include-gtids 1-2-3-4-5": ("BL305", ("--include-gtids",)),
    "replay good.000001 --start-datetime yesterday": ("BL306", ("yesterday",)),
    "replay good.000001 --table t": ("BL307", ("--table",)),
    "replay good.000001 --server nonsense": ("BL308", ("--server", "nonsense")),
    "replay good.000001 --server 9.7 --row-search TABLE_SCAN": ("BL309", ("9.7",)),
    "replay good.000001 --skip-errors some": ("BL302", ("--skip-errors",)),
    "replay good.000001 --rewrite-db a": ("BL302", ("--rewrite-db",)),
    "replay good.000001 --workers 4": ("BL303", ("--workers",)),
    "replay good.000001 --start-position 99999": ("BL116", ("good.000001",)),
    "replay good.000001 --schema good.sql --dump good.sql/x": ("BL206", ("good.sql",)),
    "replay gtid.000001 --dump good.sql/x/y": ("BL206", ("--dump: cannot write good.sql/x/y",)),
    "replay good.000001 --schema good.sql --stats missing/x": ("BL206", ("missing/x",)),
    "replay good.000001 --into postgres://h": ("BL310", ("postgres",)),
    f"replay good.000001 --into mysql://root:{SECRET}@h": ("BL311", ("--into",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1": ("BL401", ("127.0.0.1:1",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1 --password-file missing":
        ("BL101", ("missing",)),
    "replay --follow folder":
        ("BL119", ("folder has no index of logs", "name the logs themselves, as folder/binlog.*")),
    "replay gone": ("BL119", ("gone/binlog.index names binlog.000002, which is not there",)),
    "forecast good.000001 --schema good.sql --table d.tt":
        ("BL315", ("--table d.tt: names nothing", "did you mean d.t?")),
    "forecast good.000001 --schema good.sql --include-gtids 0-1-5":
        ("BL305", ("0-1-5 names transactions of MariaDB",)),
    "forecast good.000001 --replica 127.0.0.1":
        ("BL310", ("--replica: '127.0.0.1' is not a server address",)),
    "forecast missing.000001 --schema good.sql --openmetrics x.txt":
        ("BL302", ("x.txt does not end in .prom",)),
    "forecast --workload list.yaml": ("BL203", ("`tables` should be names and values",)),
    "forecast --workload traffic.yaml": ("BL203", ("`traffic` should be a list",)),
    "forecast --workload binary": ("BL203", ("not text in UTF-8",)),
    "forecast good.000001 --schema good.sql --calibration binary":
        ("BL204", ("not text in UTF-8",)),
    "forecast good.000001 --schema good.sql --password-file secret":
        ("BL304", ("--password-file: no server is named",)),
    "explain good.sql --password-file secret": ("BL304", ("--password-file: no server is named",)),
    "explain good.sql --database dd":
        ("BL315", ("--database dd: no table of the schema is left", "did you mean d?")),
    "explain good.sql --exclude-database d": ("BL315", ("the schema has d",)),
    "explain empty.sql --database d": ("BL207", ("the dump is empty",)),
    "events gone/relay.index": ("BL101", ("gone/relay.index",)),
    "replay garbage": ("BL119", ("garbage/binlog.index", "this is not an index of logs")),
    "replay good.000001 --schema good.sql --stats /dev/full":
        ("BL902", ("free space where the output is written",)),
    "replay good.000001 --schema good.sql --include-gtids ,":
        ("BL315", ("--include-gtids: the set is empty",)),
    "events mysql://u@h:1": ("BL122", ("binlag receive mysql://",)),
    "explain other.json": ("BL201", ("expected a statement",)),
    "clock --scenario": ("BL301", ("requires an argument", "see binlag clock --help")),
    "clock good.000001 --row-speed nan": ("BL301", ("'nan' is not a number.",)),
    "clock good.000001 --status-at inf": ("BL301", ("'inf' is not a number.",)),
    "clock good.000001 --every 1e-9": ("BL301", ("--every",)),
    "clock good.000001 --workers two": ("BL301", ("'two' is not a whole number.",)),
    "clock good.000001 --row-speed fast": ("BL301", ("'fast' is not a number.",)),
    "recover relay --info hello.txt":
        ("BL508", ("hello.txt", "mysqldump mysql slave_relay_log_info")),
    "recover relay --my-cnf hello.txt":
        ("BL510", ("hello.txt", "line 1: an option stands before the first section")),
    "recover relay --set relay-log-recover=1": ("BL302", ("did you mean relay_log_recovery?",)),
    "receive mysql://u@h --dir relay --zstd-compression-level 99":
        ("BL302", (": --zstd-compression-level=99 is not",)),
    "receive mysql://u@h --dir relay --compression-algorithms lz4":
        ("BL302", (": --compression-algorithms: 'lz4'",)),
    "fleet good.yaml --master nonsense":
        ("BL302", ("--master: 'nonsense' is not an address of Spark", "spark://HOST:PORT")),
    "fleet good.yaml --master spark://127.0.0.1:1":
        ("BL401", ("no Spark master can be reached (127.0.0.1:1: Connection refused)",)),
    "fleet good.yaml --master spark://127.0.0.1": ("BL302", ("is not an address of Spark",)),
    "fleet good.yaml --master mesos://h:5050": ("BL302", ("is not an address of Spark",)),
    "measure --table x.parquet --master nonsense": ("BL302", ("--master: 'nonsense'",)),
    "replay good.000001 missing.000002 --schema good.sql": ("BL101", ("(file missing.000002).",)),
    "replay good.000001 --start-position 400 --stop-position 300":
        ("BL303", ("--stop-position 300 is before --start-position 400",)),
    "replay good.000001 --start-datetime 2026-02-02 --stop-datetime 2026-02-01":
        ("BL303", ("--stop-datetime is before",)),
    "replay good.000001 --exclude-gtids 0-1-5": ("BL305", ("0-1-5 names transactions of MariaDB",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1 --until-gtid 5": ("BL305", ("--until-gtid",)),
    "verify good.000001 --into mysql://u@127.0.0.1:1 --start-position 400 --stop-position 300":
        ("BL303", ("--stop-position 300",)),
    "replay good.000001 --row-search FAST": ("BL302", ("Next: see binlag replay --help",)),
    "events good.000001 --start-position 400 --stop-position 300":
        ("BL303", ("--stop-position 300",)),
    "events good.000001 --start-datetime 2026-02-02 --stop-datetime 2026-02-01":
        ("BL303", ("--stop-datetime is before",)),
    "events good.000001 --include-gtids 0-1-5":
        ("BL305", ("0-1-5 names transactions of MariaDB, and the log is one of MySQL",)),
    "events good.000001 --json --parquet x": ("BL303", ("--json, --parquet and --arrow",)),
    "events good.000001 --parquet x --arrow y": ("BL303", ("--json, --parquet and --arrow",)),
    "events good.000001 --stop-position 0":
        ("BL301", ("'--stop-position': 0 is not in the range x>=4",)),
    "events good.000001 --start-position 3":
        ("BL301", ("'--start-position': 3 is not in the range x>=4",)),
    "events good.000001 --start-datetime 2026-02-30": (
        "BL306",
        ("'2026-02-30' names a day that 2026-02 does not have", "Next: give a day from 01 to 28$"),
    ),
    "replay good.000001 --stop-datetime '2028-02-00 10:00:00'":
        ("BL306", ("--stop-datetime: '2028-02-00 10:00:00'", "from 01 to 29$")),
    "replay good.000001 --stop-datetime 2026-13-01":
        ("BL306", ("is not a date and time", "write it like")),
    "events gtid.000001": ("BL109", ("gtid.000001", f"position {FIRST}")),
    "events decimal.000001 --rows": ("BL110", ("decimal.000001", "position")),
    "events good.000001 --table t": ("BL307", ("'t'",)),
    "events good.000001 --arrow out --stop-position 4": ("BL303", ("--stop-position",)),
    "events good.000001 --parquet missing/x": ("BL206", ("missing/x",)),
    "explain missing.sql": ("BL101", ("missing.sql",)),
    "explain good.sql --server 4.0": ("BL308", ("4.0",)),
    "explain good.sql --table d.other": ("BL307", ("d.other",)),
    "explain good.sql --server 9.7 --row-search TABLE_SCAN": ("BL309", ("9.7",)),
    "explain empty.sql": ("BL207", ("the dump is empty",)),
    "clock": ("BL304", ("--scenario",)),
    "clock --scenario nonsense": ("BL302", ("nonsense",)),
    "clock --scenario ddl --workers 7": ("BL303", ("--workers: a scenario has its own replicas",)),
    "clock --scenario ddl --server 5.7": ("BL303", ("--server: a scenario has its own replicas",)),
    "clock missing.000001 --plot missing/x.svg": ("BL206", ("--plot: cannot write missing/x.svg",)),
    "clock --scenario ddl --status-at 3 --plot x.svg":
        ("BL303", ("--plot: a status cannot be drawn",)),
    "clock nothing.000001": ("BL117", ()),
    "status folder": ("BL508", ("folder",)),
    f"crashtest good.000001 --schema good.sql {ONE} --crash nonsense": ("BL701", ()),
    "crashtest good.000001 --schema good.sql --crash process": ("BL303", ("--crash",)),
    "crashtest missing.000001 --html missing/x.html":
        ("BL206", ("--html: cannot write missing/x.html",)),
    "crashtest good.000001 --schema good.sql --transactions 3":
        ("BL303", ("--transactions: the log has its own",)),
    "status folder --json --format table":
        ("BL303", ("--json and --format table are two outputs",)),
    "clock good.000001 --json --format table":
        ("BL303", ("--json and --format table are two outputs",)),
    "forecast good.000001 --schema good.sql --relaxed --sync-binlog 1":
        ("BL303", ("--relaxed sets --sync-binlog, too",)),
    "forecast good.000001 --schema good.sql --durable --innodb-flush-log-at-trx-commit 2": (
        "BL303",
        ("--durable sets --innodb-flush-log-at-trx-commit, too",),
    ),
    "forecast good.000001 --schema good.sql --server 5.6 --parallel-type LOGICAL_CLOCK": (
        "BL302",
        ("5.6 has no LOGICAL_CLOCK", "it has DATABASE"),
    ),
    "forecast good.000001 --schema good.sql --server mariadb --parallel-type DATABASE": (
        "BL302",
        ("mariadb has no DATABASE", "aggressive, conservative"),
    ),
    "clock good.000001 --server 5.6 --parallel-type LOGICAL_CLOCK":
        ("BL510", ("=LOGICAL_CLOCK. Next: it has DATABASE",)),
    "clock good.000001 --server mariadb --parallel-type DATABASE":
        ("BL510", ("=DATABASE. Next: it has aggressive",)),
    "clock good.000001 --server 5.6 --preserve-commit-order":
        ("BL510", ("5.6 has no preserve_commit_order",)),
    "replay good.000001 --schema ''": ("BL302", ("--schema: the path is empty",)),
    "replay good.000001 ''": ("BL302", ("FILE...: the path is empty",)),
    "explain ''": ("BL302", ("SCHEMA|URL: the path is empty",)),
    "status ''": ("BL302", ("DIR|URL: the path is empty", "a variable of the shell")),
    "recover ''": ("BL302", ("DIR: the path is empty",)),
    "fleet ''": ("BL302", ("FLEET.yaml: the path is empty",)),
    "receive mysql://u@127.0.0.1:1 --dir ''": ("BL302", ("--dir: the path is empty",)),
    "demo --dir ''": ("BL302", ("--dir: the path is empty",)),
    "measure --table ''": ("BL302", ("--table: the path is empty",)),
    "spark-package --output ''": ("BL302", ("--output: the path is empty",)),
    "spark-package --with ''": ("BL601", ("--with: no package '' is installed here",)),
    "events good.000001 --parquet ''": ("BL302", ("--parquet: the path is empty",)),
    "forecast good.000001 --schema good.sql --rows d.t=nan":
        ("BL302", ("'d.t=nan' is not a number of rows",)),
    "explain good.sql --rows *=inf": ("BL302", ("'*=inf' is not a number of rows",)),
    "explain good.sql --rows d.t=1,000,000": ("BL302", ("db.table=1000000",)),
    "forecast good.000001 --schema good.sql --start-datetime 2100-01-01":
        ("BL315", ("no event lies in these times: the log ends at",)),
    "forecast good.000001 --schema good.sql --stop-datetime 1970-01-01":
        ("BL315", ("the log begins at", "--stop-datetime")),
    "forecast good.000001 --schema good.sql --server 5.6 --preserve-commit-order":
        ("BL302", ("5.6 has no preserve_commit_order",)),
    "forecast good.000001 --schema good.sql --fail-on no-key":
        ("BL301", ("--fail-on'. Next: see binlag forecast --help$",)),
    "forecast good.000001 --schema good.sql --buffer-pool 8":
        ("BL302", ("no server has a buffer pool of 8 bytes", "768M, 8G")),
    "forecast good.000001 --schema ''": ("BL302", ("--schema: the path is empty",)),
    "measure --largest 999999999999": ("BL301", ("not in the range 1000<=x<=100000000",)),
    "forecast good.000001 --schema good.sql --buffer-pool 8GBB":
        ("BL301", ("write it as 768M or 8G",)),
    "forecast good.000001 --schema good.sql --read-latency 5":
        ("BL301", ("write it as 500us or 0.5ms",)),
    "forecast good.000001 --schema good.sql --max-lag nan":
        ("BL302", ("write it as 60s, 5m or 1h",)),
    "forecast good.000001 --schema good.sql --junit missing/x.xml":
        ("BL206", ("--junit: cannot write missing/x.xml",)),
    "forecast good.sql --schema good.000001": ("BL201", ("this is a binary log, not a schema",)),
    "fleet good.yaml --master local[0]": ("BL302", ("'local[0]' is not an address of Spark",)),
    "fleet folder": ("BL301", ("'folder' is a directory",)),
    "fleet good.000001": ("BL211", ("good.000001",)),
    "forecast good.000001 --schema good.sql --buffer-pool 1.2.3G":
        ("BL301", ("'1.2.3G' is not a size",)),
    "forecast good.000001 --schema good.sql --read-latency 1..5ms":
        ("BL301", ("'1..5ms' is not a time",)),
    "forecast good.000001 --schema good.sql --behind 99999999999999h":
        ("BL302", ("--behind: '99999999999999h' is not a time",)),
    "forecast good.000001 --schema good.sql --what-if workers=1000000000000":
        ("BL302", ("is more than 16383",)),
    "clock good.000001 --network-delay 1e300": ("BL301", ("not in the range 0<=x<=2147483647",)),
    "clock good.000001 --row-speed 1e-300": ("BL301", ("not in the range x>=1e-06",)),
    "clock good.000001 --delay 99999999999999999999":
        ("BL301", ("not in the range 0<=x<=2147483647",)),
    "crashtest --transactions 99999999999999999999": ("BL301", ("--transactions",)),
    "crashtest --seed x": ("BL301", ("'x' is not a whole number",)),
    "crashtest --require nonsense --transactions 1": ("BL302", ("axes: engine, kind",)),
    "crashtest folder": ("BL119", ("folder has no index of logs",)),
    "--json replay good.000001":
        ("BL301", ("write it behind the command: binlag COMMAND --json; see binlag --help",)),
    "replay folder": ("BL119", ("folder has no index of logs",)),
    "replay C:\\data\\binlog.000001": ("BL101", ("binlog.000001",)),
    "replay good.000001 --stop-position 5G": ("BL301", ("'5G' is not a whole number",)),
    "replay good.000001 --start-datetime 21/11/2026": ("BL306", ("write it like",)),
    "replay good.000001 --start-position 99999999999999999999999":
        ("BL116", ("behind the end of the file",)),
    "replay good.000001 --schema good.000001": ("BL201", ("this is a binary log, not a schema",)),
    "replay good.000001 --into localhost:3306": ("BL310", ("mysql://USER@HOST:PORT",)),
    "replay good.000001 --into mysql://u@127.0.0.1:1 --ssl-ca missing.pem --ssl-mode verify_ca":
        ("BL101", ("--ssl-ca missing.pem",)),
    "replay --follow good.000001": ("BL303", ("binlag replay --follow relay/",)),
    "replay good.000001 good.000001 --schema good.sql":
        ("BL107", ("give the files of one server in order",)),
    "replay nothing*.0": ("BL117", ("no file fits this pattern",)),
    "events good.000001 --include-gtids 00010203-0405-0607-0809-0a0b0c0d0e0f:5-1":
        ("BL315", ("the log has others, up to",)),
    "receive mysql://u@127.0.0.1:70000 --dir x1":
        ("BL310", ("the port or the host is missing or not valid",)),
    "receive mysql://u@127.0.0.1:1 --dir x1 --from binlog.000001:-4":
        ("BL302", ("binlog.000003:4",)),
    "receive good.000001 --dir relay":
        ("BL310", ("SOURCE: 'good.000001' is not a server address",)),
    "verify good.000001 --into mysql://u@127.0.0.1:1/d":
        ("BL310", ("'/d' is not part of a server address",)),
    "recover relay --set sync_relay_log=x --server 5.7":
        ("BL510", ("sync_relay_log=x is not a number",)),
    "recover relay --source good.sql --server 5.7": ("BL102", ("not a binary log", "good.sql")),
    "status relay --json --old-names --server 9.7": ("BL302", ("leave out --old-names",)),
    "clock good.000001 --until binlog.000001:x":
        ("BL302", ("FILE:POSITION, before:GTIDS or after:GTIDS",)),
    "clock good.000001 --delay 1h": ("BL301", ("'1h' is not a whole number",)),
    "clock good.000001 --plot x.pdf": ("BL302", (".svg, .png, .html",)),
    "completion powershell": ("BL301", ("'bash', 'zsh', 'fish'",)),
    "doctor --format json": ("BL301", ("--format",)),
    "demo --dir folder/empty": ("BL301", ("'folder/empty' is a file",)),
    "crashtest --server 5.5": ("BL308", ("Next: name one of 5.6, 5.7, 8.0, 8.4, 9.7, mariadb$",)),
    "recover relay --server 5.5":
        ("BL308", ("Next: name one of 5.6, 5.7, 8.0, 8.4, 9.7, mariadb$",)),
    "explain mysql://u@127.0.0.1:1/shop":
        ("BL310", ("schema: '/shop' is not part", "--database NAME")),
    "replay good.000001 --into mysql://u@127.0.0.1:0":
        ("BL310", ("the port or the host is missing or not valid",)),
    "crashtest --json --brief": ("BL303", ("--json and --brief are two outputs",)),
    f"crashtest good.000001 --schema good.sql {ONE} --crash nonsense --json":
        ("BL303", ("--json: one crash makes no matrix",)),
    f"crashtest good.000001 --schema good.sql {ONE} --crash nonsense --require sync=1":
        ("BL303", ("--require: one crash",)),
    "crashtest --schema good.sql": ("BL303", ("--schema: the generated log",)),
    "crashtest --server 9.7 --workers 0":
        ("BL510", ("workers=0 is out of range", "takes 1 to 1024")),
    "forecast": ("BL304", ()),
    "forecast good.000001": ("BL304", ("add --schema",)),
    "forecast --workload bad.yaml --schema good.sql": ("BL203", ("bad.yaml",)),
    "forecast good.000001 --schema good.sql --calibration bad.json": ("BL204", ("bad.json",)),
    "forecast good.000001 --schema good.sql --calibration other.json":
        ("BL204", ("no calibration: it has no 'format'", "other.json")),
    "forecast good.000001 --schema other.sql --server 5.7":
        ("BL207", ("none of the log's tables, such as d.t", "binlag replay LOG --into URL")),
    "forecast good.000001 --schema empty.sql --server 5.7": ("BL207", ("the dump is empty",)),
    "forecast good.000001 --schema good.sql --server 9.7 --row-search TABLE_SCAN":
        ("BL309", ("9.7",)),
    "forecast good.000001 --schema good.sql --rows d.other=5": ("BL307", ("d.other",)),
    "forecast good.000001 --schema good.sql --server 5.7 --what-if index=x":
        ("BL302", ("--what-if index: 'x' is not a number",)),
    "forecast missing.000001 --schema good.sql --report missing/x.html":
        ("BL206", ("--report: cannot write missing/x.html",)),
    "forecast missing.000001 --schema good.sql --openmetrics missing/x.prom":
        ("BL206", ("--openmetrics: cannot write missing/x",)),
    "forecast missing.000001 --schema good.sql": ("BL101", ("missing.000001",)),
    "measure": ("BL304", ("--table",)),
    "measure --table x.parquet --from .": ("BL101", ("--from: cannot read", "Next: binlag fleet")),
    "measure --table x.parquet --minutes 1": ("BL303", ("--minutes", "--from DIR")),
    "measure --table x.parquet --from . --quick": ("BL303", ("--quick",)),
    "measure --table bad.parquet": ("BL205", ("bad.parquet",)),
    "measure --table missing/x.parquet": ("BL206", ("--table: cannot write missing/x.parquet",)),
    "measure --table x.parquet --relay-folder .": ("BL303", ("--relay-folder",)),
    "completion": ("BL301", ("bash, zsh, fish. Next",)),
    "receive mysql://u@127.0.0.1:1 --dir relay": ("BL401", ("127.0.0.1:1",)),
    "receive mysql://u@127.0.0.1:1 --dir relay --from nonsense": ("BL302", ("--from",)),
    "receive mysql://u@127.0.0.1:1 --dir good.sql/relay": ("BL206", ("good.sql",)),
    "receive mysql://u@127.0.0.1:1 --dir relay --channel c":
        ("BL304", ("--channel: no gauges are written",)),
    "replay good.000001 --channel c": ("BL304", ("--channel: no gauges are written",)),
    "status . --channel c": ("BL304", ("--channel: no gauges are written",)),
    "replay good.000001 --start-datetime @x":
        ("BL306", ("--start-datetime: '@x' is not a date and time",)),
    f"replay mysql://root:{SECRET}@h/x": ("BL311", ("a password stands in an address",)),
    f"receive //root:{SECRET}@h --dir relay": ("BL310", ()),
    f"forecast good.000001 --schema mysql://root:{SECRET}@h/d": ("BL311", ()),
    "doctor x": ("BL301", ("(x)",)),
    "doctor --jso": ("BL301", ("did you mean --json?",)),
    "doctor --json=3": ("BL301", ("does not take a value",)),
    "demo x": ("BL301", ("(x)",)),
    "demo --dir good.sql": ("BL301", ("good.sql",)),
    "demo --folder x": ("BL301", ("--folder",)),
    "completion bash zsh": ("BL301", ("(zsh)",)),
    "spark-package x": ("BL301", ("(x)",)),
    "spark-package --output missing/x/y": ("BL206", ("missing/x/y",)),
    "spark-package --wit x": ("BL301", ("did you mean --with?",)),
    "fleet": ("BL301", ("FLEET.yaml",)),
    "fleet missing.yaml": ("BL101", ("missing.yaml",)),
    "fleet bad.yaml": ("BL211", ("bad.yaml",)),
    "recover": ("BL301", ("DIR",)),
    "recover missing": ("BL508", ("missing",)),
    "recover folder --workers x": ("BL301", ("--workers",)),
    "status": ("BL301", ("DIR",)),
    "status missing": ("BL508", ("missing",)),
    "status folder --format x": ("BL301", ("vertical",)),
    "explain": ("BL301", ("SCHEMA",)),
    "explain good.sql --csv --json": ("BL303", ("--csv",)),
    "explain good.sql --fail-on none": ("BL302", ("use one of no-key, not-unique",)),
    "explain good.sql --rows x": ("BL302", ("db.table=1000000",)),
    "explain good.sql --rows d.t=x": ("BL302", ("'d.t=x'",)),
    "explain good.sql --rows d.tt=4": ("BL307", ("did you mean d.t?",)),
    "explain good.sql --password x": ("BL301", ("did you mean --password-file?",)),
    "explain mysql://u@127.0.0.1:1": ("BL401", ("127.0.0.1:1",)),
    "receive": ("BL301", ("mysql://USER@HOST:PORT",)),
    "receive mysql://u@h": ("BL301", ("--dir",)),
    "verify good.000001": ("BL301", ("--into",)),
    "verify good.000001 --into memory": ("BL310", ("memory",)),
    "replay good.000001 --schema good.sql --stats good.000001":
        ("BL303", ("--stats: good.000001 is an input of this command",)),
    "forecast good.000001 --schema good.sql --report good.sql":
        ("BL303", ("--report: good.sql is an input",)),
    "forecast good.000001 --schema good.sql --rows @hello.txt --report ./hello.txt":
        ("BL303", ("--report: ./hello.txt is an input",)),
    "events good.000001 --parquet folder/../good.000001": ("BL303", ("--parquet",)),
    "crashtest good.000001 --schema good.sql --html good.sql": ("BL303", ("--html",)),
    "clock good.000001 --plot good.000001": ("BL303", ("--plot",)),
    "fleet good.yaml --report good.yaml": ("BL303", ("--report",)),
    "demo --dir gone":
        ("BL206", ("gone/binlog.000001 exists and is not a file of the demo", "give a new folder")),
    "explain utf16.sql": ("BL201",
                          ("text in UTF-16", "--result-file=FILE", "iconv -f UTF-16 -t UTF-8$")),
    "events hello.txt": ("BL102",
                         ("hello.txt", "this is text: give the file that the server wrote")),
    "replay good.000001 --into mysql://": ("BL310", ("the host is missing",)),
    "status postgres://h": ("BL310", ("'postgres' is not a server address",)),
    "status good.sql": ("BL301", ("'good.sql' is a file, not a directory",)),
    "forecast good.000001 --schema good.sql --what-if primary_key":
        ("BL302", ("did you mean primary-key?",)),
    "forecast good.000001 --schema good.sql --what-if durable+relaxed":
        ("BL303", ("a setting is changed twice",)),
    "forecast good.000001 --schema good.sql --what-if workers=2+workers=4":
        ("BL303", ("a setting is changed twice",)),
    "forecast good.000001 --schema good.sql --what-if rows=nan":
        ("BL302", ("'nan' is not a number",)),
    "forecast good.000001 --schema good.sql --what-if rows=-1": ("BL302", ("'-1' is less than 0",)),
    "forecast good.000001 --schema good.sql --read-latency 0ms":
        ("BL302", ("0.0 is not more than 0",)),
    "forecast good.000001 --schema good.sql --sync-latency 2":
        ("BL301", ("write it as 500us or 0.5ms",)),
    "forecast good.000001 --schema good.sql --sync-latency 0ms":
        ("BL302", ("--sync-latency: 0.0 is not more than 0",)),
    "forecast good.000001 --schema good.sql --calibration hello.txt":
        ("BL204", ("no calibration: it is not JSON",)),
    "crashtest --transactions 1 --require sync": ("BL302", ("write it as AXIS=VALUE",)),
    "clock good.000001 --server 9.7 --domain-workers 2":
        ("BL510", ("remove --domain-workers, --max-queued and --by-position",)),
    "replay good.000001 --rewrite-db d:":
        ("BL302", ("'d' is not FROM:TO", "write it as --rewrite-db FROM:TO$")),
    "clock good.000001 --scenario ddl":
        ("BL303", ("log files and --scenario exclude each other", "leave one of them out$")),
    "forecast good.000001 --schema good.sql --workload traffic.yaml":
        ("BL303", ("log files and --workload exclude each other",)),
    "explain good.sql --table d.t --exclude-table d.t":
        ("BL315", ("d.t: what one option chooses another leaves out",)),
    "explain good.sql --rows @missing.csv": ("BL101", ("missing.csv",)),
    "explain good.sql --rows @hello.txt": ("BL210", ("hello.txt",)),
    "replay good.000001 --schema good.sql --type-conversions ALL_LOSY,ALL_SIGNED": (
        "BL302",
        ("'ALL_LOSY' is not a type conversion", "give a list of ALL_LOSSY"),
    ),
    "events good.000001 --table dx.t":
        ("BL315", ("names nothing that is in the log", "did you mean d.t?")),
    "events good.000001 --table d.zzzzzzzzzzz": ("BL315", ("Next: the log has d.t$",)),
    "events sqlite": ("BL102", ("this is a database of SQLite: give a binary log",)),
    "events three.000001":
        ("BL102", ("the file ends after 3 bytes of a log's first 4", "copy the file again")),
    "events empty.000001": ("BL102", ("the file is empty", "copy the file again")),
    "fleet binary": ("BL211", ("it is not text in UTF-8 (file binary)",)),
    "replay good.000001 --schema good.sql --dump good.sql/../missing/../good.sql/x":
        ("BL206", ("--dump",)),
}  # fmt: skip
"""Arguments -> code, further words of the line."""
