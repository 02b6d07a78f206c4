"""Makes the logs of the benchmarks on a real MySQL server.

    python benchmarks/make_log.py oltp --port 3306 --output bench/oltp.000001 \
        --schema bench/oltp.sql --mysqldump bin/mysqldump
    python benchmarks/make_log.py bulk --port 3306 --output bench/bulk.000001

`oltp`: sysbench's oltp_read_write without its reads: each transaction updates an indexed column of
one row, another column of a second row, and deletes and re-inserts a third. `bulk`: tables of
several shapes (integers, decimals, temporal types, strings, text, JSON, NULLs) filled, updated and
deleted by statements that touch thousands of rows, and small transactions between them. The rows
are made inside the server by a procedure, so the log grows by some 10 MB/s.

The server must write a row based log to its data directory on this machine; its binary log is
rotated before and after.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql

DATABASE = "bench"
OLTP_TABLES = 4
OLTP_ROWS = 10_000

RANDOM_TEXT = """
CREATE FUNCTION random_text(parts INT) RETURNS VARCHAR(255) CHARACTER SET latin1 NO SQL
BEGIN
    DECLARE result VARCHAR(255) CHARACTER SET latin1 DEFAULT LPAD(FLOOR(RAND() * 100000000000), 11,
    '0');
    WHILE parts > 1 DO
        SET result = CONCAT(result, '-', LPAD(FLOOR(RAND() * 100000000000), 11, '0')),
        parts = parts - 1;
    END WHILE;
    RETURN result;
END
"""


def oltp_table(number: int) -> str:
    return (
        f"CREATE TABLE sbtest{number} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, "
        "c CHAR(120) NOT NULL DEFAULT '',"
        f" pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_{number} (k)) "
        "ENGINE=InnoDB DEFAULT CHARSET=latin1"
    )


def oltp_procedure() -> str:
    """One call is one batch of transactions; each goes to a random table."""
    branches = "".join(
        f"""
        {"IF" if number == 1 else "ELSEIF"} t = {number} THEN
            UPDATE sbtest{number} SET k = k + 1 WHERE id = a;
            UPDATE sbtest{number} SET c = random_text(10) WHERE id = b;
            DELETE FROM sbtest{number} WHERE id = d;
            INSERT INTO sbtest{number} VALUES (d, 1 + FLOOR(RAND() * {OLTP_ROWS}),
                random_text(10), random_text(5));"""
        for number in range(1, OLTP_TABLES + 1)
    )
    return f"""
CREATE PROCEDURE oltp(transactions INT)
BEGIN
    DECLARE t, a, b, d INT;
    WHILE transactions > 0 DO
        SET transactions = transactions - 1, t = 1 + FLOOR(RAND() * {OLTP_TABLES}),
            a = 1 + FLOOR(RAND() * {OLTP_ROWS}), b = 1 + FLOOR(RAND() * {OLTP_ROWS}),
            d = 1 + FLOOR(RAND() * {OLTP_ROWS});
        START TRANSACTION;{branches}
        END IF;
        COMMIT;
    END WHILE;
END
"""


BULK_TABLES = {
    "orders": """
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT UNSIGNED NOT NULL,
        status ENUM('new','paid','sent','gone') NOT NULL,
        amount DECIMAL(12,2) NOT NULL, rate DECIMAL(20,6) NULL, quantity SMALLINT NOT NULL,
        created DATETIME NOT NULL,
        changed TIMESTAMP(6) NULL, due DATE NULL, note VARCHAR(100) NULL, KEY (customer)""",
    "customers": """
        id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(60) NOT NULL,
            email VARCHAR(300) NOT NULL, phone CHAR(20) NULL,
        about TEXT NULL, options SET('a','b','c','d') NOT NULL, flags BIT(12) NOT NULL,
        extra JSON NULL, born YEAR NULL, wakes TIME NULL""",
    "metrics": """
        id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, host SMALLINT UNSIGNED NOT NULL,
            kind TINYINT NOT NULL, part MEDIUMINT NULL,
        count BIGINT NOT NULL, mean DOUBLE NOT NULL, low FLOAT NULL, high FLOAT NULL,
        at DATETIME(3) NOT NULL, level TINYINT NULL""",
    "pages": """
        id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL,
            pad CHAR(60) NOT NULL, body TEXT NULL, KEY (k)""",
}
FILL = {
    "orders": """(customer, status, amount, rate, quantity, created, changed, due, note)
        SELECT RAND() * 100000, 1 + n % 4, RAND() * 10000,
        IF(n % 7 = 0, NULL, (RAND() - 0.5) * 1e9), n % 500 - 50,
            '2020-01-01' + INTERVAL n * 37 SECOND,
            IF(n % 5 = 0, NULL, '2021-01-01' + INTERVAL n * 1234567 MICROSECOND),
            IF(n % 3 = 0, NULL, '2022-01-01' + INTERVAL n % 900 DAY),
            IF(n % 4 = 0, NULL, REPEAT(CHAR(97 + n % 26), n % 90))
        FROM numbers""",
    "customers": """(name, email, phone, about, options, flags, extra, born, wakes)
        SELECT CONCAT('Anna-Käthe ', LEFT(SHA2(n, 256), 32)),
        CONCAT(LEFT(SHA2(n, 256), 40), '@example.org'),
            IF(n % 9 = 0, NULL, 10000000 * RAND()),
            IF(n % 2 = 0, NULL, REPEAT('Lorem ipsum ', n % 60)), n % 16, n % 4096,
            IF(n % 3 = 0, NULL, JSON_OBJECT('n', n, 'tags', JSON_ARRAY('x', n % 10))),
            1950 + n % 60, SEC_TO_TIME(n * 7 - 30000)
        FROM numbers""",
    "metrics": """(host, kind, part, count, mean, low, high, at, level)
        SELECT n % 65536, n % 200 - 100, IF(n % 11 = 0, NULL, n * 31 - 100000), n * 1234567890123,
        RAND() * 1000,
            IF(n % 6 = 0, NULL, RAND()), RAND() * 9,
            '2023-05-05' + INTERVAL n * 1000003 MICROSECOND, NULL
        FROM numbers""",
    "pages": """(k, c, pad, body)
        SELECT RAND() * 1000000, CONCAT(LEFT(SHA2(n, 256), 40), LEFT(SHA2(n, 256), 32), '-',
        LEFT(SHA2(n + 1, 256), 32)),
            CONCAT(LEFT(SHA2(-n, 256), 32), n),
            IF(n % 8 = 0, NULL, REPEAT(LEFT(SHA2(n, 256), 32), n % 20))
        FROM numbers""",
}
CHANGE = {
    "orders": "status = 'sent', amount = amount + 1, changed = '2024-02-29 12:34:56.789'",
    "customers": "phone = '0800', flags = flags ^ b'101010101010'",
    "metrics": "count = count + 1, mean = -mean, level = 3",
    "pages": "k = k + 1, pad = REVERSE(pad)",
}


class Source:
    """The server whose log is made."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.connection: Any = pymysql.connect(
            host=arguments.host,
            port=arguments.port,
            user=arguments.user,
            password=arguments.password,
            autocommit=True,
            charset="utf8mb4",
        )

    def run(self, *statements: str) -> Any:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def log(self) -> tuple[str, int]:
        """Name and size of the file being written."""
        name, size = self.run("SHOW BINARY LOGS")[-1][:2]
        return str(name), int(size)

    def prepare(self) -> None:
        self.run(
            "SET SESSION sql_log_bin = 0",
            "SET GLOBAL log_bin_trust_function_creators = 1",
            f"DROP DATABASE IF EXISTS {DATABASE}",
            f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4",
            f"USE {DATABASE}",
            RANDOM_TEXT,
            "CREATE TABLE numbers (n INT PRIMARY KEY)",
            "SET SESSION cte_max_recursion_depth = 100000",
            "INSERT INTO numbers WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r "
            "WHERE n < 5000) SELECT n FROM r",
        )


def prepare_oltp(source: Source) -> None:
    for number in range(1, OLTP_TABLES + 1):
        source.run(oltp_table(number))
        insert = (
            f"INSERT INTO sbtest{number} SELECT n + %d, 1 + FLOOR(RAND() * {OLTP_ROWS}), "
            "random_text(10), random_text(5) FROM numbers"
        )
        source.run(*(insert % offset for offset in range(0, OLTP_ROWS, 5000)))
    source.run(oltp_procedure())


def write_oltp(source: Source) -> None:
    source.run("CALL oltp(2000)")


def prepare_bulk(source: Source) -> None:
    prepare_oltp(source)
    for name, columns in BULK_TABLES.items():
        source.run(f"CREATE TABLE {name} ({columns})")


def write_bulk(source: Source) -> None:
    """About a third of the bytes are small transactions."""
    for name in BULK_TABLES:
        source.run(
            f"INSERT INTO {name} {FILL[name]}",
            f"UPDATE {name} SET {CHANGE[name]} ORDER BY id DESC LIMIT 1500",
            f"DELETE FROM {name} ORDER BY id LIMIT 500",
        )
    source.run("CALL oltp(1200)")


MODES: dict[str, tuple[Callable[[Source], None], Callable[[Source], None], int]] = {
    "oltp": (prepare_oltp, write_oltp, 80),
    "bulk": (prepare_bulk, write_bulk, 250),
}


def dump(arguments: argparse.Namespace) -> None:
    """The schema and the rows that the log starts from."""
    server = [f"-h{arguments.host}", f"-P{arguments.port}", f"-u{arguments.user}"]
    command = [arguments.mysqldump, *server, "--set-gtid-purged=OFF", "--skip-comments"]
    tables = [f"sbtest{number}" for number in range(1, OLTP_TABLES + 1)]
    with arguments.schema.open("wb") as target:
        target.write(
            f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4;\nUSE {DATABASE};\n".encode()
        )
        target.flush()
        subprocess.run([*command, DATABASE, *tables], stdout=target, check=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3306)
    parser.add_argument("--user", default="root")
    parser.add_argument("--password", default="")
    parser.add_argument("--output", type=Path, required=True, help="the log file to write")
    parser.add_argument(
        "--megabytes", type=int, help="how large the log shall be (default: oltp 80, bulk 250)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the server's RAND()")
    parser.add_argument(
        "--metadata", choices=["MINIMAL", "FULL"], default="MINIMAL", help="binlog_row_metadata"
    )
    parser.add_argument("--schema", type=Path, help="oltp: write schema and starting rows there")
    parser.add_argument("--mysqldump", default="mysqldump", help="the program that --schema uses")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    prepare, write, megabytes = MODES[arguments.mode]
    limit = (arguments.megabytes or megabytes) * 1_000_000
    source = Source(arguments)
    source.prepare()
    source.run(
        f"SET SESSION rand_seed1 = {arguments.seed}, rand_seed2 = {arguments.seed * 7919 + 1}"
    )
    prepare(source)
    if arguments.schema:
        dump(arguments)
    source.run(
        "SET SESSION sql_log_bin = 1",
        "SET SESSION binlog_format = ROW",
        f"SET GLOBAL binlog_row_metadata = {arguments.metadata}",
    )
    source.run("SET GLOBAL max_binlog_size = 1073741824", "FLUSH BINARY LOGS")
    name, size = source.log()
    while size < limit:
        write(source)
        current, size = source.log()
        if current != name:
            print("the server began another log file", file=sys.stderr)
            return 1
    source.run("FLUSH BINARY LOGS")
    directory = Path(source.run("SELECT @@log_bin_basename")[0][0]).parent
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(directory / name, arguments.output)
    print(f"{arguments.output}: {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
