"""Replication errors by the server's own numbers: what the server means, when binlag raises it,
what to do.

Names of errors are those of MySQL 9.7 (share/messages_to_clients.txt); up to 8.0.25 many had SLAVE
or MASTER for REPLICA or SOURCE. A real server as the target can answer with any number; those
without a row here get the server's words and `situation` a general next step.
"""

from __future__ import annotations

from applier.catalogue_row import Situation

_OTHER_DATA = (
    "load the tables as they were at the log's first position with --schema FILE.sql; --exec-mode "
    "idempotent or --skip-errors {number} let it pass and leave the difference"
)
_OTHER_TABLES = (
    "give the tables as they were at the log's first position with --schema FILE.sql, or let it "
    "pass with --skip-errors {number}"
)
_SKIP = "skip the statement with --skip-errors {number}, or replay into a server with --into"
_NEW_COPY = "set the replica up again from a backup of the source"
_RELAY = "remove the relay logs and receive again from the position that was applied"
_GRANT = "grant the account what the message names"
_STRICT = (
    "The statement is carried out in the SQL mode that the log gives, and this value is not let "
    "in. On its source the statement went through, so its tables or its character sets were others."
)


def _row(number: int, name: str, title: str, meaning: str, next_step: str) -> tuple[int, Situation]:
    return number, Situation(
        f"MY-{number}", f"{title} ({name})", meaning, next_step.format(number=number)
    )


SERVER_ERRORS = dict(
    (
        _row(
            167,
            "HA_ERR_AUTOINC_ERANGE",
            "The AUTO_INCREMENT column of MariaDB has no more numbers",
            "The next number is larger than the column's type holds.",
            "give the column a larger type on the source and here",
        ),
        _row(
            1007,
            "ER_DB_CREATE_EXISTS",
            "The database exists already",
            "A CREATE DATABASE of the log meets a database of that name.",
            _OTHER_TABLES,
        ),
        _row(
            1008,
            "ER_DB_DROP_EXISTS",
            "The database to drop is not there",
            "A DROP DATABASE of the log finds no such database.",
            _OTHER_TABLES,
        ),
        _row(
            1032,
            "ER_KEY_NOT_FOUND",
            "A row to change is not there",
            "An update or delete event brings the row as it was before the change, and no row of "
            "the table is like that (HA_ERR_KEY_NOT_FOUND; the server also says "
            "HA_ERR_END_OF_FILE after a table scan). The tables differ from those of the source: "
            "another starting point, a write on the replica, or events that were skipped or "
            "applied twice.",
            _OTHER_DATA,
        ),
        _row(
            1036,
            "ER_OPEN_AS_READONLY",
            "A table takes no new rows",
            "A MERGE table without an INSERT_METHOD, or with an empty UNION, is read only.",
            _OTHER_TABLES,
        ),
        _row(
            1044,
            "ER_DBACCESS_DENIED_ERROR",
            "The account may not use the database",
            "The target does not let the account of --into into a database of the log.",
            _GRANT,
        ),
        _row(
            1048,
            "ER_BAD_NULL_ERROR",
            "NULL in a column that takes none",
            "A statement of the log gives NULL to a NOT NULL column. " + _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            1049,
            "ER_BAD_DB_ERROR",
            "The database is not there",
            "A statement or a row event names a database that was never made.",
            _OTHER_TABLES,
        ),
        _row(
            1050,
            "ER_TABLE_EXISTS_ERROR",
            "The table exists already",
            "A CREATE or RENAME of the log meets a table of that name.",
            _OTHER_TABLES,
        ),
        _row(
            1051,
            "ER_BAD_TABLE_ERROR",
            "The table to drop is not there",
            "A DROP TABLE of the log finds no such table.",
            _OTHER_TABLES,
        ),
        _row(
            1054,
            "ER_BAD_FIELD_ERROR",
            "The column is not there",
            "A statement names a column that the table does not have.",
            _OTHER_TABLES,
        ),
        _row(
            1060,
            "ER_DUP_FIELDNAME",
            "The column exists already",
            "An ALTER TABLE adds a column of a name that the table has.",
            _OTHER_TABLES,
        ),
        _row(
            1061,
            "ER_DUP_KEYNAME",
            "The key exists already",
            "A statement adds a key of a name that the table has.",
            _OTHER_TABLES,
        ),
        _row(
            1062,
            "ER_DUP_ENTRY",
            "The row is there already",
            "A row to write has the value of a unique key that another row of the table has "
            "(HA_ERR_FOUND_DUPP_KEY). The tables differ from those of the source, or the event "
            "was applied before.",
            _OTHER_DATA,
        ),
        _row(
            1064,
            "ER_PARSE_ERROR",
            "A statement cannot be parsed",
            "A statement of the log is not understood. In memory only the statements are known "
            "that change tables or their rows; the message quotes where reading ended.",
            _SKIP,
        ),
        _row(
            1068,
            "ER_MULTIPLE_PRI_KEY",
            "A second primary key",
            "A statement adds a primary key to a table that has one.",
            _OTHER_TABLES,
        ),
        _row(
            1072,
            "ER_KEY_COLUMN_DOES_NOT_EXIST",
            "A key of an unknown column",
            "A key is defined on a column that the table does not have.",
            _OTHER_TABLES,
        ),
        _row(
            1091,
            "ER_CANT_DROP_FIELD_OR_KEY",
            "The column or key to drop is not there",
            "An ALTER TABLE or DROP INDEX takes away what the table does not have.",
            _OTHER_TABLES,
        ),
        _row(
            1136,
            "ER_WRONG_VALUE_COUNT_ON_ROW",
            "Another number of values than columns",
            "An INSERT without a list of columns brings more or fewer values than the table has "
            "columns.",
            _OTHER_TABLES,
        ),
        _row(
            1142,
            "ER_TABLEACCESS_DENIED_ERROR",
            "The account may not use the table",
            "The target refuses a statement on a table to this account.",
            _GRANT,
        ),
        _row(
            1146,
            "ER_NO_SUCH_TABLE",
            "The table is not there",
            "A rows event or a statement changes a table that no CREATE TABLE of the log or of "
            "the schema has made.",
            _OTHER_TABLES,
        ),
        _row(
            1153,
            "ER_NET_PACKET_TOO_LARGE",
            "A statement is larger than the target takes",
            "The rows of one event, as one statement, are larger than max_allowed_packet of the "
            "target.",
            "SET GLOBAL max_allowed_packet to more on the target, then start again",
        ),
        _row(
            1168,
            "ER_WRONG_MRG_TABLE",
            "A MERGE table cannot be read",
            "A table of its UNION is missing, differs, or is not of MyISAM.",
            "drop it, or leave it out with --exclude-table",
        ),
        _row(
            1201,
            "ER_CONNECTION_METADATA",
            "The receiver's record cannot be read, or recovery of the workers failed",
            "master.info is empty, cut off or garbled. Or, after a crash of a replica with "
            "several workers, gaps are filled from the relay logs, and these do not hold them.",
            _RELAY,
        ),
        _row(
            1205,
            "ER_LOCK_WAIT_TIMEOUT",
            "A transaction waits for rows of another",
            "The rows belong to an XA transaction that is prepared and not ended, or another "
            "session of the target holds their locks.",
            "end the transaction that holds the rows (XA RECOVER lists the prepared ones), then "
            "start again",
        ),
        _row(
            1213,
            "ER_LOCK_DEADLOCK",
            "A transaction was rolled back to resolve a deadlock",
            "The applier retried the transaction as often as replica_transaction_retries says; "
            "each try failed.",
            "find out what the transaction waits for, or raise the number of retries",
        ),
        _row(
            1217,
            "ER_ROW_IS_REFERENCED",
            "A table to drop is the parent of another",
            "A foreign key of another table points to it, and the session checks foreign keys "
            "(5.x; 3730 from 8.0 on, 1451 in MariaDB).",
            _OTHER_DATA,
        ),
        _row(
            1227,
            "ER_SPECIFIC_ACCESS_DENIED_ERROR",
            "The account lacks an administrative privilege",
            "BINLOG statements and session variables that replication sets need more than table "
            "privileges.",
            "grant SUPER, or from 8.0 on REPLICATION_APPLIER, SESSION_VARIABLES_ADMIN and "
            "SET_ANY_DEFINER",
        ),
        _row(
            1235,
            "ER_NOT_SUPPORTED_YET",
            "The statement is not supported",
            "binlag knows what the statement is and cannot carry it out exactly, so it does not "
            "carry it out at all.",
            _SKIP,
        ),
        _row(
            1236,
            "ER_SOURCE_FATAL_ERROR_READING_BINLOG",
            "The source cannot send what is asked for",
            "The position or the GTIDs asked for are not in the logs of the source: they were "
            "purged, or the source lost the end of its log in a crash.",
            _NEW_COPY,
        ),
        _row(
            1264,
            "ER_WARN_DATA_OUT_OF_RANGE",
            "A number is out of its column's range",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            1265,
            "WARN_DATA_TRUNCATED",
            "A value is none of an ENUM or SET",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            1292,
            "ER_TRUNCATED_WRONG_VALUE",
            "A text is not a value of the type",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            1298,
            "ER_UNKNOWN_TIME_ZONE",
            "A statement was executed in a time zone that is not known here",
            "Its TIMESTAMP values and its CURRENT_TIMESTAMP depend on that zone. Named zones are "
            "those of this machine.",
            "install the IANA time zones (tzdata) here, or skip the statement with --skip-errors "
            "1298",
        ),
        _row(
            1305,
            "ER_SP_DOES_NOT_EXIST",
            "The savepoint or routine is not there",
            "ROLLBACK TO names a savepoint that the transaction has not set; the log was entered "
            "in the middle of the transaction.",
            "start at the beginning of the transaction (binlag events lists them)",
        ),
        _row(
            1366,
            "ER_TRUNCATED_WRONG_VALUE_FOR_FIELD",
            "A text does not fit its column's type or character set",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            1397,
            "ER_XAER_NOTA",
            "The XA transaction is not prepared",
            "XA COMMIT or XA ROLLBACK names a transaction that is not prepared on the replica. A "
            "server of 5.7 writes XA PREPARE into its own binary log first and does not wait for "
            "the redo log: a crash loses the transaction and keeps its GTID.",
            "execute the transaction's XA START to XA PREPARE again without its GTID "
            "(mysqlbinlog --skip-gtids --include-gtids), then start the applier",
        ),
        _row(
            1399,
            "ER_XAER_RMFAIL",
            "The XA transaction is in a state that forbids the statement",
            "The relay logs end inside an XA transaction, and the source sends it again from its "
            "beginning. A server with workers rolls the part back with ROLLBACK, which XA refuses.",
            "give the relay logs up: RESET REPLICA with auto-position, or a start with "
            "relay_log_recovery=1",
        ),
        _row(
            1406,
            "ER_DATA_TOO_LONG",
            "A value is longer than its column",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            1440,
            "ER_XAER_DUPID",
            "The XA transaction is prepared already",
            "XA START names a transaction that is prepared on the replica: it is executed a "
            "second time.",
            "skip the transaction up to its XA PREPARE; XA RECOVER lists what is prepared",
        ),
        _row(
            1451,
            "ER_ROW_IS_REFERENCED_2",
            "Other rows refer to the row",
            "A row to delete or change is the parent of rows in another table, and the foreign "
            "key forbids that.",
            _OTHER_DATA,
        ),
        _row(
            1452,
            "ER_NO_REFERENCED_ROW_2",
            "The parent row is not there",
            "A row to write refers to a row of another table that does not exist.",
            _OTHER_DATA,
        ),
        _row(
            1467,
            "ER_AUTOINC_READ_FAILED",
            "The AUTO_INCREMENT column has no more numbers",
            "The next number is larger than the column's type holds.",
            "give the column a larger type on the source and here",
        ),
        _row(
            1590,
            "ER_REPLICA_INCIDENT",
            "The source lost events",
            "The source wrote an Incident event: it could not log something that it had done, so "
            "the log is incomplete from here on.",
            "start again from a fresh dump of the source, taken behind this position",
        ),
        _row(
            1593,
            "ER_REPLICA_FATAL_ERROR",
            "The receiver and the source have the same identity, or the applier finds no start in "
            "a relay log",
            "Each server of a replication needs a server id and a UUID of its own, or events seem "
            "to come back to where they came from. And up to 5.7, one of the events at the head "
            "of the relay log in which the applier starts is damaged.",
            "give another --server-id; remove auto.cnf if it was copied from the source",
        ),
        _row(
            1594,
            "ER_REPLICA_RELAY_LOG_READ_FAILURE",
            "A relay log cannot be read",
            "An event of the relay log is damaged or cut off, as a crash of the machine leaves it "
            "when the relay log was not synced.",
            _RELAY,
        ),
        _row(
            1610,
            "ER_REPLICA_CORRUPT_EVENT",
            "A rows event was misread",
            "A row image did not end where the event does. Servers up to 5.7 get there, too, "
            "after a missing row that was let pass in a hash scan.",
            "replay with --server 8.0, or fix the rows that differ",
        ),
        _row(
            1623,
            "ER_REPLICA_HEARTBEAT_FAILURE",
            "The source stands before what was received",
            "A heartbeat of the source names a position that lies before the end of the relay "
            "logs: the source lost the end of its log.",
            _NEW_COPY,
        ),
        _row(
            1677,
            "ER_REPLICA_CONVERSION_FAILED",
            "The types of a column do not fit",
            "The column of the source has another type than the one here, and "
            "replica_type_conversions does not allow that conversion.",
            "give the schema that the log was written for, or allow it with --type-conversions "
            "ALL_NON_LOSSY",
        ),
        _row(
            1701,
            "ER_TRUNCATE_ILLEGAL_FK",
            "A table to truncate is the parent of another",
            "A foreign key of another table points to it, and the statement's session checks "
            "foreign keys.",
            _OTHER_DATA,
        ),
        _row(
            1735,
            "ER_UNKNOWN_PARTITION",
            "A partition is not there",
            "A statement names a partition that the table does not have.",
            _OTHER_TABLES,
        ),
        _row(
            1743,
            "ER_NETWORK_READ_EVENT_CHECKSUM_FAILURE",
            "An event arrived damaged",
            "The checksum of an event that the source sent does not fit its bytes.",
            "start the receiver again; if it stays so, look at the source's log with mysqlbinlog "
            "there",
        ),
        _row(
            1755,
            "ER_CANNOT_EXECUTE_IN_PARALLEL",
            "A group cannot be applied in parallel",
            "Workers share the databases among them, and the group has rows without a table map "
            "before them: the relay log goes on inside a transaction.",
            "apply it with 0 workers, or receive again from the position that was applied",
        ),
        _row(
            1756,
            "ER_MTA_INCONSISTENT_DATA",
            "The log cannot be applied in parallel",
            "The logical clock of the log runs backwards: a transaction says it depends on one "
            "that comes after it.",
            "apply it with 0 workers",
        ),
        _row(
            1777,
            "ER_AUTO_POSITION_REQUIRES_GTID_MODE_NOT_OFF",
            "Auto-position needs GTIDs",
            "The source has gtid_mode=OFF, so there is nothing to ask it for by GTID.",
            "leave --auto-position out, or turn GTIDs on there",
        ),
        _row(
            1814,
            "ER_TABLESPACE_DISCARDED",
            "The rows of a table are in files that the log does not have",
            "ALTER TABLE … DISCARD TABLESPACE took them away.",
            "leave it out with --exclude-table, or replay into a test DB",
        ),
        _row(
            1864,
            "ER_MTA_EVENT_BIGGER_PENDING_JOBS_SIZE_MAX",
            "An event is too big for the queues of the workers",
            "The event is larger than replica_pending_jobs_size_max, and versions that do not "
            "wait for empty queues stop there.",
            "raise replica_pending_jobs_size_max above the size of the event",
        ),
        _row(
            1872,
            "ER_REPLICA_AM_INIT_REPOSITORY",
            "The applier's position cannot be taken up",
            "START REPLICA finds records of positions that are damaged, missing or do not fit the "
            "relay logs.",
            _RELAY,
        ),
        _row(
            3001,
            "ER_ERROR_ON_SOURCE",
            "A statement was interrupted on the source",
            "How far it came before a KILL, a shutdown or a lost connection is not in the log.",
            "compare its tables with the source's; --skip-errors with the source's number carries "
            "it out as a whole",
        ),
        _row(
            3002,
            "ER_INCONSISTENT_ERROR",
            "A statement failed on the source in another way than here",
            "The log holds it with the number of the source's error. It did not fail here, or "
            "with another error.",
            _OTHER_TABLES,
        ),
        _row(
            3008,
            "ER_FK_DEPTH_EXCEEDED",
            "A cascade goes through too many rows",
            "InnoDB follows ON DELETE and ON UPDATE through fifteen rows, one after the other, "
            "and then refuses the change.",
            _OTHER_DATA,
        ),
        _row(
            3140,
            "ER_INVALID_JSON_TEXT",
            "A text is not a JSON document",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            3150,
            "ER_JSON_VALUE_TOO_BIG",
            "A JSON document is too large",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            3157,
            "ER_JSON_DOCUMENT_TOO_DEEP",
            "A JSON document is nested too deeply",
            _STRICT,
            _OTHER_TABLES,
        ),
        _row(
            3648,
            "ER_COULD_NOT_APPLY_JSON_DIFF",
            "A partial update does not fit its JSON document",
            "The event changes a part of a document (binlog_row_value_options=PARTIAL_JSON) that "
            "the document here does not have.",
            _OTHER_DATA,
        ),
        _row(
            3730,
            "ER_FK_CANNOT_DROP_PARENT",
            "A table to drop is the parent of another",
            "A foreign key of another table points to it, and the statement's session checks "
            "foreign keys (8.0 and later).",
            _OTHER_DATA,
        ),
        _row(
            13121,
            "ER_SERVER_REPLICA_RELAY_LOG_READ_FAILURE",
            "A relay log cannot be read (8.0 and later)",
            "An event of the relay log is damaged or cut off. Up to 5.7 the number is 1594.",
            _RELAY,
        ),
        _row(
            13964,
            "ER_REPLICATION_INCOMPATIBLE_TABLE_WITH_GIPK",
            "The primary key that the server makes up is on one side only",
            "The table here has a generated invisible primary key, and the rows of the log come "
            "from a table that has none in this place.",
            "give the schema of the source; the server does not replicate this either",
        ),
    )
)
"""Server's number -> situation."""

GENERAL_PAGE = "MY-other"
GENERAL = Situation(
    GENERAL_PAGE,
    "Another error of the target",
    "The statement failed on the server that is the target; number and words are the server's "
    "own. The position stays before the transaction.",
    "look the number up in the server's manual, make the statement possible on the target, then "
    "start again",
)


def situation(number: int) -> Situation:
    """The row of the number; for one without a row, the general words under its code."""
    return SERVER_ERRORS.get(number) or Situation(
        f"MY-{number}", GENERAL.title, GENERAL.meaning, GENERAL.next_step
    )
