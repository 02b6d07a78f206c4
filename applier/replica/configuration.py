"""The options of an emulated replica, checked before anything is read. Names are the server's,
values as it writes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from applier.error_codes import Code
from applier.errors import UsageError
from applier.replica.scheduling import NONE, ClockRules, rules_for
from applier.replica.versions import ReplicaRules, replica_rules
from checkpoints.fields import FILES_IN
from checkpoints.sync_rules import SyncOptions

FILE, TABLE = "FILE", "TABLE"
USING_GTID = ("No", "Slave_Pos", "Current_Pos")
MIN_LOG_SIZE = 4096


@dataclass(frozen=True)
class ReplicaConfiguration:
    """One replica: options as the server names them, in today's words.

    What is None takes the version's default; what the version does not have raises UsageError. The
    engine of the replicated tables is that of the schema; the engine of the info tables is the
    storage's.
    """

    version: str
    server_id: int = 9
    server_version: str | None = None
    """As the replica's own format description shows it."""
    relay_log: str = "relay"
    """Base name of the relay logs and of their index."""
    relay_log_info_repository: str | None = None
    master_info_repository: str | None = None
    sync_relay_log: int | None = None
    sync_relay_log_info: int | None = None
    sync_master_info: int | None = None
    relay_log_recovery: bool = False
    gtid_mode: bool = False
    auto_position: bool = False
    using_gtid: str | None = None
    """MASTER_USE_GTID of MariaDB: No, Slave_Pos or Current_Pos; with `auto_position`, Slave_Pos.
    Current_Pos is taken for Slave_Pos: that of a server to which nobody else writes."""
    workers: int | None = None
    """replica_parallel_workers, or slave_parallel_threads of MariaDB; 0: the applier's one thread
    does it."""
    parallel_type: str | None = None
    """replica_parallel_type, or slave_parallel_mode of MariaDB."""
    preserve_commit_order: bool | None = None
    checkpoint_group: int = 512
    """Transactions between two checkpoints of the coordinator at most."""
    relay_log_purge: bool = True
    max_relay_log_size: int = 1 << 30
    """Bytes; 0 stands for max_binlog_size, which is 1 GiB."""
    relay_log_space_limit: int = 0
    """Bytes of all relay logs together; 0: no limit."""
    relay_log_checksum: bool = True
    replicate_same_server_id: bool = False
    ignore_server_ids: tuple[int, ...] = ()
    log_bin: bool = True
    log_replica_updates: bool = True
    sync_binlog: int = 1
    innodb_flush_log_at_trx_commit: int = 1
    channel: str = ""
    rules: ReplicaRules = field(init=False)
    scheduling: ClockRules = field(init=False)
    """What the version decides about workers."""
    sync: SyncOptions = field(init=False)

    def __post_init__(self) -> None:
        rules = replica_rules(self.version)
        fill = object.__setattr__
        fill(self, "rules", rules)
        fill(self, "server_version", self.server_version or rules.server_version)
        usual = SyncOptions.default(self.version)
        periods = {
            name: getattr(usual, name) if getattr(self, name) is None else getattr(self, name)
            for name in ("sync_relay_log", "sync_master_info", "sync_relay_log_info")
        }
        fill(self, "sync", SyncOptions(**periods))
        for name, period in periods.items():
            fill(self, name, period)
        scheduling = rules_for(self.version)
        fill(self, "scheduling", scheduling)
        fill(self, "workers", scheduling.workers if self.workers is None else self.workers)
        fill(self, "parallel_type", self.parallel_type or scheduling.parallel_type)
        fill(self, "parallel_type", _spelled(self.parallel_type or "", scheduling))
        if self.parallel_type == NONE:
            fill(self, "workers", 0)
        if self.preserve_commit_order is None:
            fill(self, "preserve_commit_order", scheduling.preserve_commit_order)
        for name in ("relay_log_info_repository", "master_info_repository"):
            fill(self, name, self._repository(name))
        fill(self, "using_gtid", self._using_gtid())
        fill(self, "auto_position", self.auto_position or self.using_gtid != "No")
        self._check()

    def _using_gtid(self) -> str:
        if not self.rules.by_domains:
            if self.using_gtid not in (None, "No"):
                raise UsageError(
                    f"MySQL {self.version} has no MASTER_USE_GTID",
                    code=Code.CONFIGURATION,
                    hint="give auto_position",
                )
            return "No"
        value = (self.using_gtid or ("Slave_Pos" if self.auto_position else "No")).title()
        if value not in USING_GTID:
            raise UsageError(
                f"using_gtid={self.using_gtid!r}",
                code=Code.CONFIGURATION,
                hint=f"give one of {', '.join(USING_GTID)}",
            )
        return value

    def _repository(self, name: str) -> str:
        value = getattr(self, name)
        if value is None:
            return self.rules.info_repository
        value = value.upper()
        if value not in (FILE, TABLE):
            raise UsageError(
                f"{name}={value!r}", code=Code.CONFIGURATION, hint="give FILE or TABLE"
            )
        if value == TABLE and self.rules.by_domains:
            raise UsageError(
                f"MariaDB has no {name}=TABLE",
                code=Code.CONFIGURATION,
                hint="use FILE: only gtid_slave_pos is a table",
            )
        if value == FILE and self.rules.name not in FILES_IN:
            raise UsageError(
                f"MySQL {self.version} has no {name}=FILE",
                code=Code.CONFIGURATION,
                hint="files were taken away in 8.3: use TABLE",
            )
        return str(value)

    def _check(self) -> None:
        workers = self.workers or 0
        ranges = {
            "server_id": (self.server_id, 1, (1 << 32) - 1),
            "workers": (workers, self.scheduling.fewest_workers, self.scheduling.workers_most),
            "checkpoint_group": (self.checkpoint_group, 32, 524280),
            "innodb_flush_log_at_trx_commit": (self.innodb_flush_log_at_trx_commit, 0, 2),
            "sync_binlog": (self.sync_binlog, 0, (1 << 32) - 1),
            "relay_log_space_limit": (self.relay_log_space_limit, 0, (1 << 64) - 1),
            **{
                name: (getattr(self, name), 0, (1 << 32) - 1)
                for name in ("sync_relay_log", "sync_master_info", "sync_relay_log_info")
            },
        }
        for name, (value, low, high) in ranges.items():
            if not low <= value <= high:
                raise UsageError(
                    f"{name}={value} is out of range",
                    code=Code.CONFIGURATION,
                    hint=f"MySQL {self.version} takes {low} to {high}",
                )
        if self.max_relay_log_size and not MIN_LOG_SIZE <= self.max_relay_log_size <= 1 << 30:
            raise UsageError(
                f"max_relay_log_size={self.max_relay_log_size}",
                code=Code.CONFIGURATION,
                hint="give 0, or 4096 bytes to 1 GiB",
            )
        if self.checkpoint_group % 8:
            raise UsageError(
                f"checkpoint_group={self.checkpoint_group}",
                code=Code.CONFIGURATION,
                hint="give a multiple of 8",
            )
        if self.parallel_type not in self.scheduling.parallel_types:
            known = ", ".join(sorted(self.scheduling.parallel_types))
            raise UsageError(
                f"{self.rules.name} has no parallel_type={self.parallel_type}",
                code=Code.CONFIGURATION,
                hint=f"it has {known}",
            )
        if self.gtid_mode and self.rules.by_domains:
            raise UsageError(
                "MariaDB has no gtid_mode",
                code=Code.CONFIGURATION,
                hint="leave it out: MASTER_USE_GTID is auto_position or using_gtid",
            )
        if self.auto_position and not self.gtid_mode and not self.rules.by_domains:
            raise UsageError(
                "auto_position needs gtid_mode",
                code=Code.CONFIGURATION,
                hint="the server says error 1777: set gtid_mode=True, too",
            )
        self._check_commit_order()

    def _check_commit_order(self) -> None:
        if not self.preserve_commit_order or not self.workers:
            return
        if not self.scheduling.has_commit_order:
            raise UsageError(
                "MySQL 5.6 has no preserve_commit_order",
                code=Code.CONFIGURATION,
                hint="leave it out: it came with 5.7.5",
            )
        if self.parallel_type == "DATABASE":
            raise UsageError(
                "preserve_commit_order is not supported with parallel_type=DATABASE",
                code=Code.CONFIGURATION,
                hint="use LOGICAL_CLOCK",
            )
        if self.scheduling.commit_order_needs_binlog and not (
            self.log_bin and self.log_replica_updates
        ):
            raise UsageError(
                "preserve_commit_order of 5.7 needs log_bin and log_replica_updates",
                code=Code.CONFIGURATION,
                hint="8.0.19 needs neither",
            )


def _spelled(parallel_type: str, scheduling: ClockRules) -> str:
    """As the server writes it, in whatever case it was given."""
    known = {name.lower(): name for name in scheduling.parallel_types}
    return known.get(parallel_type.lower(), parallel_type.upper())


def refuse_unknown(options: dict[str, object]) -> None:
    """Names the option that does not exist. Raises UsageError."""
    known = {
        name for name, entry in ReplicaConfiguration.__dataclass_fields__.items() if entry.init
    }
    for name in options:
        if name not in known:
            raise UsageError(
                f"there is no option {name!r}",
                code=Code.CONFIGURATION,
                hint=f"options: {', '.join(sorted(known))}",
            )


__all__ = ["FILE", "TABLE", "ReplicaConfiguration", "refuse_unknown"]
