"""`binlag forecast --replica URL --follow`: where the replica is, again and again, a line each
time."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, NoReturn

import click

from applier.forecast.answers.words import now_line
from applier.forecast.live.live_progress import read_progress
from applier.forecast.live.pace import LOOKS
from applier.forecast.live.progress import ReplicaProgress
from applier.forecast.plan import ForecastPlan, run
from applier.mysql.client.url import Endpoint

EVERY_SECONDS = 5.0
"""From the end of one line to the beginning of the next."""


def follow(
    plan: ForecastPlan,
    replica: Endpoint,
    logs: Callable[[], Sequence[str]],
    *,
    as_json: bool,
    openmetrics: str | None,
) -> NoReturn:
    """Goes on until it is interrupted. `logs` are looked up each time: they grow, and new ones
    come.

    Of the logs those count that the replica has not left behind. Raises InputError.
    """
    looks: deque[ReplicaProgress] = deque(maxlen=LOOKS)
    while True:
        paths = logs()
        look = read_progress(replica, paths)
        progress = replace(look, earlier=tuple(looks))
        looks.append(look)
        if look.stopped:  # from then on it says nothing of its pace
            looks.clear()
        now = run(replace(plan, files=_not_left(paths, progress), progress=progress)).now()
        assert now is not None
        click.echo(json.dumps(now) if as_json else now_line(now))
        if openmetrics is not None:
            _write(now, openmetrics)
        time.sleep(EVERY_SECONDS)


def _not_left(paths: Sequence[str], progress: ReplicaProgress) -> list[str]:
    """The logs from the one on that the replica executes."""
    names = [PurePath(path).name for path in paths]
    at = next(names.index(one) for one, _ in (progress.source, progress.relay) if one in names)
    return list(paths[at:])


def _write(now: Mapping[str, Any], path: str) -> None:
    from applier import metrics

    metrics.write(metrics.of_now(now), path)
