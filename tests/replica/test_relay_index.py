"""The index of the relay logs: every crash while it changes leaves the old one or the new one."""

from __future__ import annotations

import pytest

from applier.replica.relay.relay_index import RelayLogIndex
from checkpoints.crash import CrashKind, CrashPoint
from checkpoints.simulated_disk import Coverage, SimulatedDisk

OLD = ["./relay.000001", "./relay.000002"]


def disk_with(names: list[str], **options: object) -> SimulatedDisk:
    files = {name.removeprefix("./"): b"" for name in names}
    return SimulatedDisk(
        {**files, "relay.index": "".join(f"{name}\n" for name in names).encode()}, **options
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "new"),
    [
        (
            lambda index: (index.register(["./relay.000003"]), index.add("./relay.000003")),
            [*OLD, "./relay.000003"],
        ),
        (lambda index: index.remove_before("./relay.000002"), ["./relay.000002"]),
        (lambda index: index.remove_after("./relay.000001"), ["./relay.000001"]),
    ],
)
def test_old_or_new(change: object, new: list[str]) -> None:
    found: set[tuple[str, ...]] = set()

    def reached(disk: SimulatedDisk, point: CrashPoint) -> None:
        for kind in CrashKind:
            for _, left in disk.crashes(kind, Coverage.EVERY):
                index = RelayLogIndex(left, "relay")
                index.open()
                found.add(tuple(index.names))
                assert set(left.names()) <= {
                    "relay.index",
                    *(name.removeprefix("./") for name in index.names),
                }, "nothing is left over"

    index = RelayLogIndex(disk_with(OLD, observer=reached), "relay")
    index.open()
    change(index)  # type: ignore[operator]
    assert found == {tuple(OLD), tuple(new)}
