"""Codes of errors: one for each situation that a user can do something about.

A code stands for a situation, not for a line of the program: several places raise the same code
with messages of their own. Codes are stable: a row of the catalogue may get better words, it never
gets another meaning, and a number that went out of use is not given again. What they say is in
`applier.error_catalogue`, with the errors of replication, which have the server's own number.
"""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class Code(StrEnum):
    """Errors that no server has a number for."""

    # Binary logs
    CANNOT_READ = "BL101"
    NOT_A_LOG = "BL102"
    ENCRYPTED = "BL103"
    CUT_OFF = "BL104"
    CHECKSUM = "BL105"
    BAD_HEADER = "BL106"
    BAD_FORMAT = "BL107"
    UNKNOWN_FORMAT = "BL108"
    BAD_EVENT = "BL109"
    BAD_TABLE_MAP = "BL110"
    BAD_ROWS = "BL111"
    BAD_VALUE = "BL112"
    BAD_PAYLOAD = "BL113"
    NO_TABLE_MAP = "BL114"
    INSIDE_TRANSACTION = "BL115"
    START_BEYOND_END = "BL116"
    NOTHING_TO_READ = "BL117"
    NO_LOADED_FILE = "BL118"
    LOG_GONE = "BL119"
    TOO_LARGE = "BL120"
    COMPRESSED_FILE = "BL121"
    REMOTE = "BL122"

    # Other files
    SCHEMA_SQL = "BL201"
    SCHEMA_ROWS = "BL202"
    WORKLOAD = "BL203"
    CALIBRATION = "BL204"
    MEASUREMENTS = "BL205"
    CANNOT_WRITE = "BL206"
    NO_TABLES = "BL207"
    DUMP_CUT_OFF = "BL208"
    BASELINE = "BL209"
    ROW_COUNTS = "BL210"
    FLEET = "BL211"
    OTHER_LOGS = "BL212"

    # The command line
    COMMAND_LINE = "BL301"
    OPTION_VALUE = "BL302"
    OPTIONS_CLASH = "BL303"
    OPTION_MISSING = "BL304"
    GTID_SET = "BL305"
    DATE_TIME = "BL306"
    UNKNOWN_TABLE = "BL307"
    UNKNOWN_VERSION = "BL308"
    VERSION_LACKS = "BL309"
    URL = "BL310"
    PASSWORD_IN_URL = "BL311"
    NOTHING_CHOSEN = "BL315"

    # A server as the target
    NOT_REACHED = "BL401"
    CONNECTION_LOST = "BL402"
    WRONG_ACCOUNT = "BL403"
    NO_PRIVILEGE = "BL404"
    NOT_A_TEST_SERVER = "BL405"
    FOREIGN_TABLES = "BL406"
    REPLAY_RUNS = "BL407"
    REPLAY_ROW = "BL408"
    OTHER_FILE = "BL409"
    MISSING_FILES = "BL410"
    REPLAY_UNFINISHED = "BL411"
    SCHEMA_REFUSED = "BL412"
    CANNOT_SHIP = "BL413"
    NOT_MEASURED = "BL414"

    # Replicas
    BAD_ANSWER = "BL501"
    SOURCE_GAP = "BL502"
    DUMP_ENDED = "BL503"
    FOLDER_BUSY = "BL504"
    OTHER_SOURCE = "BL505"
    FOLDER_GOES_ON = "BL506"
    BAD_RECORD = "BL507"
    NO_REPLICA = "BL508"
    RELAY_LOG = "BL509"
    CONFIGURATION = "BL510"
    WRONG_MOMENT = "BL511"

    # Libraries
    NO_LIBRARY = "BL601"
    NO_JAVA = "BL602"

    # Crash tests
    NO_SUCH_CRASH = "BL701"
    FAILS_WITHOUT_CRASH = "BL702"

    # The program and its machine
    INTERNAL = "BL901"
    SYSTEM = "BL902"
    NO_MEMORY = "BL903"
