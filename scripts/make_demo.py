"""Makes the capture of the demo (demo/before.sql, demo/binlog.000001) on a real MySQL 5.7.

    python scripts/make_demo.py --port 3306

Two tables without a primary key: one with no key at all, one with a secondary key. The log holds
what a shop does to them in a minute, in row format. The server's log must be readable on this
machine; it is rotated before and after.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import pymysql

FOLDER = Path(__file__).parent.parent / "demo"
DATABASE = "shop"
TABLES = {
    "cart_item": """CREATE TABLE `cart_item` (
  `id` int NOT NULL,
  `cart` int NOT NULL,
  `product` varchar(20) NOT NULL,
  `quantity` int NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
    "parcel": """CREATE TABLE `parcel` (
  `id` int NOT NULL,
  `order_no` int NOT NULL,
  `status` varchar(10) NOT NULL,
  `grams` int DEFAULT NULL,
  KEY `order_no` (`order_no`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4""",
}
CARTS, ITEMS_PER_CART = 500, 5
ORDERS, PARCELS_PER_ORDER = 125, 20
WORK = [
    "UPDATE cart_item SET quantity = quantity + 1 WHERE cart % 10 = 3",
    "DELETE FROM cart_item WHERE cart BETWEEN 400 AND 439",
    "UPDATE cart_item SET quantity = 0 WHERE id = 1799",
    "INSERT INTO cart_item VALUES (9001, 501, 'tea', 2), (9002, 501, 'cup', 1)",
    "DELETE FROM cart_item WHERE product = 'soap' AND quantity > 3",
    "UPDATE parcel SET status = 'sent' WHERE order_no % 5 = 1",
    "DELETE FROM parcel WHERE order_no IN (7, 77, 117)",
    "UPDATE parcel SET grams = 250 WHERE id = 1234",
    "INSERT INTO parcel VALUES (9001, 126, 'new', NULL)",
    "UPDATE parcel SET status = 'lost' WHERE grams > 980",
]
PRODUCTS = ("tea", "cup", "soap", "lamp", "book", "pen", "jam")


def rows() -> dict[str, list[tuple[Any, ...]]]:
    """The rows before the log, spread so that no value stands in the order of another."""
    items = range(1, CARTS * ITEMS_PER_CART + 1)
    parcels = range(1, ORDERS * PARCELS_PER_ORDER + 1)
    return {
        "cart_item": [(n, n * 7919 % CARTS + 1, PRODUCTS[n * 31 % 7], n % 5 + 1) for n in items],
        "parcel": [(n, n * 104729 % ORDERS + 1, "packed", n * 613 % 1000) for n in parcels],
    }


def schema() -> str:
    """SQL that makes the tables as they are before the first event of the log."""
    lines = [f"CREATE DATABASE `{DATABASE}` DEFAULT CHARACTER SET utf8mb4;", f"USE `{DATABASE}`;"]
    for table, content in rows().items():
        values = ",\n".join(str(row).replace("None", "NULL") for row in content)
        lines += [f"{TABLES[table]};", f"INSERT INTO `{table}` VALUES\n{values};"]
    return "\n".join(lines) + "\n"


def make(connection: Any) -> Path:
    """Runs the work; returns the finished log file."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        for statement in schema().removesuffix(";\n").split(";\n"):
            cursor.execute(statement)
        cursor.execute("SET SESSION binlog_format = ROW")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW MASTER STATUS")
        name = cursor.fetchone()[0]
        for statement in WORK:
            cursor.execute(statement)
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SELECT @@log_bin_basename")
        return Path(cursor.fetchone()[0]).parent / str(name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=3306)
    port = parser.parse_args().port
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "before.sql").write_text(schema())
    log = make(pymysql.connect(host="127.0.0.1", port=port, user="root", autocommit=True))
    shutil.copyfile(log, FOLDER / "binlog.000001")
    print(f"{FOLDER / 'binlog.000001'}: {(FOLDER / 'binlog.000001').stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
