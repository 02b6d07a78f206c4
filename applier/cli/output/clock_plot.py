"""The curves of `binlag clock` as a picture: what the replica showed as steps, the true lag as a
line, one panel a replica.

Below them, where work piles up, how many transactions the source had committed and the replica had
not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from applier.error_codes import Code
from applier.errors import UsageError
from applier.lazy_imports import needed

if TYPE_CHECKING:
    from applier.timing.simulation import LagSample

SHOWN, TRUE = "Seconds_Behind_Source", "true lag"
COLOURS = ("#c0392b", "#2c7fb8")
FORMS = (".svg", ".png", ".html", ".json")
WIDTH, HEIGHT, LEFT_HEIGHT = 280, 180, 70
MANY = 10
"""More transactions left than this are worth a panel."""
PADDING = {"left": 5, "right": 40, "top": 5, "bottom": 5}
"""Pixels. A reader's font may be wider than the one at hand, and the legend stands at the right."""


def draw(samples: Mapping[str, Sequence[LagSample]], path: Path, title: str) -> None:
    """Writes the picture in the form of the file's name. Moments without a number leave a gap.
    Raises UsageError."""
    if path.suffix not in FORMS:
        raise UsageError(
            f"cannot draw {path.name}",
            code=Code.OPTION_VALUE,
            hint=f"give a file that ends in {', '.join(FORMS)}",
        )
    with needed("drawing needs altair", "binlag[report]"):
        import altair
    picture = altair.hconcat(
        *(_late(altair, name, moments) for name, moments in samples.items())
    ).resolve_scale(y="shared")
    if any(moment.work.transactions > MANY for moments in samples.values() for moment in moments):
        left = altair.hconcat(
            *(_left(altair, moments) for moments in samples.values())
        ).resolve_scale(y="shared")
        picture = altair.vconcat(picture, left)
    try:
        whole = picture.properties(title=title, padding=PADDING)
        whole.save(str(path), inline=path.suffix == ".html")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}", code=Code.CANNOT_WRITE) from None


def _late(altair: Any, name: str, moments: Sequence[LagSample]) -> Any:
    """One replica. Seconds count from the first moment."""
    values = [
        {"second": second, "of": of, "seconds": value}
        for second, moment in _seconds(moments)
        for of, value in (
            (SHOWN, moment.seconds_behind),
            (TRUE, None if moment.true_lag is None else round(moment.true_lag, 3)),
        )
    ]
    colour = altair.Color(
        "of:N",
        title=None,
        sort=[SHOWN, TRUE],
        scale=altair.Scale(domain=[SHOWN, TRUE], range=list(COLOURS)),
    )
    axes = {
        "x": altair.X("second:Q", title="seconds"),
        "y": altair.Y("seconds:Q", title="seconds late"),
        "color": colour,
    }
    base = altair.Chart(altair.Data(values=values))
    shown = (
        base.transform_filter(f"datum.of == '{SHOWN}'")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(**axes)
    )
    true = (
        base.transform_filter(f"datum.of == '{TRUE}'")
        .mark_line(strokeWidth=1.5, strokeDash=[5, 3])
        .encode(**axes)
    )
    return altair.layer(shown, true).properties(width=WIDTH, height=HEIGHT, title=name)


def _left(altair: Any, moments: Sequence[LagSample]) -> Any:
    values = [
        {"second": second, "left": moment.work.transactions} for second, moment in _seconds(moments)
    ]
    axes = {
        "x": altair.X("second:Q", title="seconds"),
        "y": altair.Y("left:Q", title="transactions left"),
    }
    return (
        altair.Chart(altair.Data(values=values))
        .mark_area(color="#bbbbbb")
        .encode(**axes)
        .properties(width=WIDTH, height=LEFT_HEIGHT)
    )


def _seconds(moments: Sequence[LagSample]) -> list[tuple[float, LagSample]]:
    start = moments[0].time if moments else 0.0
    return [(round(moment.time - start, 3), moment) for moment in moments]
