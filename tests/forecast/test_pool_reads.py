"""The price of a page read: from cells, and on real servers whose buffer pool gets smaller."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from servers.server import Server

from applier.errors import Interrupted
from applier.forecast.inventory.pool_rules import PAGE, POOL_RULES
from applier.forecast.measurement import on_server
from applier.forecast.measurement.fit import fit
from applier.forecast.measurement.measured import Measured, read_parquet, write_parquet
from applier.forecast.measurement.measurement_grid import Cell
from applier.forecast.measurement.on_server import ServerTarget
from applier.forecast.measurement.pool_reads import (
    BESIDE_MIB,
    CELL,
    FEWEST_READS,
    LEAST_READ,
    PROCESSOR_SHARE,
    SEVERAL,
    SMALL_MIB,
    read_prices,
    resize_pool,
)
from applier.forecast.prices.calibration import (
    PAGE_READ,
    PAGE_ROOM,
    PAGE_WRITE,
    TimePrice,
    default_calibration,
)
from applier.forecast.prices.units import amounts
from applier.mysql.client.connection import Server as Connection
from applier.mysql.client.url import Endpoint
from lookup.table_shape import PRIMARY
from tests.servers.fixtures import ServerFactory

US = 1e-6


USUAL = default_calibration("9.7").shared


def applied(
    seconds: float, beside: float, reads: float, number: int = 0, cell: Cell = CELL
) -> Measured:
    asked = amounts(transaction=CELL.transactions)
    return Measured(
        cell, "test", "9.7.4", seconds, 1, asked, beside_seconds=beside, page_reads=reads,
        round=number,
    )  # fmt: skip


def test_a_read_is_what_a_small_pool_adds() -> None:
    price = prices(applied(3.0, 1.0, 10_000))[PAGE_READ]
    assert price.processor + price.waiting == pytest.approx(200 * US)
    three = [applied(3.0, 1.0, 10_000), applied(9.0, 1.0, 10_000), applied(4.0, 1.0, 10_000)]
    price = prices(*three)[PAGE_READ]
    assert price.processor + price.waiting == pytest.approx(300 * US)


def prices(*measured: Measured, cores: int = 2) -> dict[str, TimePrice]:
    return read_prices(measured, cores=cores, usual=USUAL)


def test_what_other_threads_do_shows_where_workers_share_the_cores() -> None:
    """One of two cores is the coordinator's."""
    alone, several = applied(3.0, 1.0, 10_000), applied(2.0, 0.5, 10_000, cell=SEVERAL)
    found = prices(alone, several)
    assert found[PAGE_READ] == prices(alone)[PAGE_READ]
    assert found[PAGE_ROOM].processor == pytest.approx((150 - 200 * PROCESSOR_SHARE) * US)
    found = prices(alone, several, cores=9)  # four workers have at most four
    assert found[PAGE_ROOM].processor == pytest.approx((600 - 200 * PROCESSOR_SHARE) * US)
    assert prices(alone, applied(0.6, 0.5, 10_000, cell=SEVERAL))[PAGE_ROOM].processor == 0


def test_what_workers_of_mariadb_wait_for_pages_that_are_written() -> None:
    """A read of 50 µs and a write of 40: four workers take a part of the read, and wait as long for
    each write."""
    waited_for = (
        POOL_RULES["mariadb"].cleaner(SMALL_MIB << 20).waited_for(1, (SMALL_MIB << 20) // PAGE)
    )
    assert 0.5 < waited_for < 1

    def cell(cell: Cell, read: float, writes: int) -> Measured:
        seconds = 0.5 + 10_000 * read * US + writes * waited_for * 40 * US
        one = applied(seconds, 0.5, 10_000, cell=cell)
        return replace(one, page_writes=writes, server_version="10.11.18-MariaDB")

    alone = cell(CELL, 50, 15_000)
    found = prices(alone, cell(SEVERAL, 50 * PROCESSOR_SHARE / 2, 12_000))
    assert found[PAGE_READ].processor + found[PAGE_READ].waiting == pytest.approx(50 * US)
    assert found[PAGE_WRITE].waiting == pytest.approx(40 * US)
    assert found[PAGE_ROOM].processor == 0
    # without several workers nothing tells them apart
    found = prices(alone)
    read, write = found[PAGE_READ], found[PAGE_WRITE]
    both = 50 + 1.5 * waited_for * 40
    assert read.processor + read.waiting + 1.5 * waited_for * write.waiting == pytest.approx(
        both * US
    )
    # four workers that take as long as one show no price of a read at all: a part is kept
    found = prices(alone, cell(SEVERAL, 50 + 60, 15_000))
    assert found[PAGE_READ].processor + found[PAGE_READ].waiting == pytest.approx(
        both * LEAST_READ * US
    )
    # neither does a server of MySQL, whose workers wait for none
    mysql = replace(alone, server_version="9.7.4")
    assert prices(mysql)[PAGE_READ].waiting == pytest.approx(both * (1 - PROCESSOR_SHARE) * US)


@pytest.mark.parametrize(
    "one",
    [
        applied(3.0, 1.0, FEWEST_READS - 1),
        applied(1.0, 1.1, 10_000),
        replace(applied(3.0, 1.0, 10_000), cell=replace(CELL, pool=0)),
    ],
    ids=["hardly any read", "quicker than in memory", "another cell"],
)
def test_what_shows_no_price_gives_none(one: Measured) -> None:
    names = PAGE_READ, PAGE_ROOM, PAGE_WRITE
    assert prices(one) == prices() == {name: USUAL[name] for name in names}


def test_a_calibration_takes_the_price_and_no_unit_follows_from_the_cell(tmp_path: Path) -> None:
    usual = Cell(PRIMARY, 1000, "update", 1, 1, 500)
    others = [Measured(usual, "test", "9.7.4", 0.05, 1, amounts(transaction=500))]
    with_reads = [*others, applied(3.0, 1.0, 10_000)]
    write_parquet(with_reads, tmp_path / "cells.parquet")
    assert sorted(read_parquet(tmp_path / "cells.parquet"), key=lambda one: one.place) == sorted(
        with_reads, key=lambda one: one.place
    )
    found, without = fit(with_reads), fit(others)
    assert found.shared[PAGE_READ] == prices(*with_reads)[PAGE_READ]
    ships = default_calibration(without.rules_name)
    assert without.shared[PAGE_READ] == ships.shared[PAGE_READ]
    assert found.prices == without.prices


@pytest.mark.in_ci
@pytest.mark.parametrize("version", ["5.7", "9.7", "mariadb"])
def test_a_server_reads_pages_and_gets_its_pool_back(
    version: str, server_factory: ServerFactory
) -> None:
    options: dict[str, str | int] = {"relay_log": "relay", "innodb_buffer_pool_size": "256M"}
    with closing(server_factory(version, options=options)) as server:
        with ServerTarget(endpoint(server), relay_folder=server.data) as target:
            assert target.resizes_pool
            small = replace(CELL, rows=800_000, transactions=2_000)
            one = target.measure(small)
            target._filled = None
            in_memory = target._measured(replace(small, pool=BESIDE_MIB))
            several = target.measure(replace(small, workers=4))
            for mib in (512, 128, 512, 128, 256):  # one that comes too early is passed over
                resize_pool(target.server, mib << 20)
                assert pool_bytes(server) == mib << 20
        assert one.beside_seconds > 0
        assert 500 < one.page_reads < 4_000
        assert 500 < several.page_reads < 4_000 and several.beside_seconds > 0
        assert in_memory.page_reads < 100
        assert pool_bytes(server) == 256 << 20


def test_an_interrupt_while_the_pool_is_put_back_leaves_its_size(
    server_factory: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes behind the first of the two cells."""
    sizes: list[int] = []

    def interrupted(server: Connection, size: int) -> None:
        sizes.append(size >> 20)
        if len(sizes) == 2:
            raise Interrupted
        resize_pool(server, size)

    monkeypatch.setattr(on_server, "resize_pool", interrupted)
    options: dict[str, str | int] = {"innodb_buffer_pool_size": "256M"}
    with closing(server_factory("9.7", options=options)) as server:
        with pytest.raises(Interrupted), ServerTarget(endpoint(server)) as target:
            target.measure(Cell(PRIMARY, 1000, "update", 1, 1, 50, pool=SMALL_MIB))
        assert sizes == [BESIDE_MIB, 256, 256]
        assert pool_bytes(server) == 256 << 20


def test_a_pool_that_needs_a_restart_is_let_alone(server_factory: ServerFactory) -> None:
    with closing(server_factory("5.6")) as server, ServerTarget(endpoint(server)) as target:
        assert not target.resizes_pool


def endpoint(server: Server) -> Endpoint:
    return Endpoint(server.host, server.port, server.user, password=server.password)


def pool_bytes(server: Server) -> int:
    return int(server.query("SELECT @@GLOBAL.innodb_buffer_pool_size")[0][0])
