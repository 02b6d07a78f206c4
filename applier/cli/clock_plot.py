"""The curves of `binlag clock` as a picture: what the replica showed as steps, the true lag as a line, one panel a replica."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from applier.errors import UsageError

if TYPE_CHECKING:
    from applier.replica.simulation import Moment

SHOWN, TRUE = "Seconds_Behind_Source", "true lag"
COLOURS = ("#c0392b", "#2c7fb8")
FORMS = (".svg", ".png", ".html", ".json")


def draw(samples: Mapping[str, Sequence[Moment]], path: Path, title: str) -> None:
    """Writes the picture in the form of the file's name. Moments without a number leave a gap. Raises UsageError."""
    if path.suffix not in FORMS:
        raise UsageError(f"cannot draw {path.name}", hint=f"give a file that ends in {', '.join(FORMS)}")
    try:
        import altair
    except ImportError:
        raise UsageError("drawing needs altair", hint="pip install 'binlag[report]'") from None
    panels = [_panel(altair, name, moments) for name, moments in samples.items()]
    picture = altair.hconcat(*panels).resolve_scale(y="shared").properties(title=title)
    picture.save(str(path))


def _panel(altair: Any, name: str, moments: Sequence[Moment]) -> Any:
    """One replica. Seconds count from the first moment."""
    start = moments[0].time if moments else 0.0
    values = [
        {"second": round(moment.time - start, 3), "of": of, "seconds": value}
        for moment in moments
        for of, value in ((SHOWN, moment.seconds_behind), (TRUE, moment.true_lag))
    ]
    colour = altair.Color("of:N", title=None, sort=[SHOWN, TRUE], scale=altair.Scale(domain=[SHOWN, TRUE], range=list(COLOURS)))
    axes = {"x": altair.X("second:Q", title="seconds"), "y": altair.Y("seconds:Q", title="seconds late"), "color": colour}
    base = altair.Chart(altair.Data(values=values))
    shown = base.transform_filter(f"datum.of == '{SHOWN}'").mark_line(interpolate="step-after", strokeWidth=2).encode(**axes)
    true = base.transform_filter(f"datum.of == '{TRUE}'").mark_line(strokeWidth=1.5, strokeDash=[5, 3]).encode(**axes)
    return altair.layer(shown, true).properties(width=280, height=180, title=name)
