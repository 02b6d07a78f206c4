"""time_zone of a session: from the name that a QUERY event carries to moments in UTC and back.

The emulated replica's own zone, which SYSTEM names, is UTC. Named zones are those of the IANA
database that this machine has.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from applier.errors import ReplicationError

_OFFSET = re.compile(r"([+-])(\d{1,2}):(\d{2})")


@lru_cache(maxsize=64)
def time_zone(name: str) -> tzinfo:
    """Raises ReplicationError 1298, the server's, for a zone that is not known here."""
    match = _OFFSET.fullmatch(name)
    if match is not None:
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    if name.upper() in ("SYSTEM", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ReplicationError(
            1298,
            f"Unknown or incorrect time zone: '{name[:80]}'",
            hint=(
                "install the IANA time zones (tzdata) here, or skip the statement with"
                " --skip-errors 1298"
            ),
        ) from None


def to_utc(local: datetime, zone: tzinfo) -> datetime:
    """A session's time, without tzinfo, as a moment in UTC.

    A time that comes twice is its first; one that the clock skips is the moment of the jump, with
    its fraction (`TIME_to_gmt_sec`, sql/tztime.cc; seen on 5.7.29, 9.7.4 and MariaDB 10.11.18).
    """
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == local:
        return moment
    return _jump(local, zone)


def _jump(local: datetime, zone: tzinfo) -> datetime:
    """The moment at which the clock jumps over `local`: between what the offsets before and behind
    the gap say."""
    early, late = sorted(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    offset = early.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) // 2
        middle -= timedelta(microseconds=middle.microsecond)
        if middle.astimezone(zone).utcoffset() == offset:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=local.microsecond)


def from_utc(moment: datetime, zone: tzinfo) -> datetime:
    """A moment in UTC as the session's time, without tzinfo."""
    return moment.astimezone(zone).replace(tzinfo=None)
