"""The colours of the HTML pages and of their charts: by name, light and dark.

A page is dark where the reader's system is, and light on paper. Styles and charts of a page name a
colour as `var(--name)`; a picture by itself takes the values of LIGHT.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT = {
    "text": "#1e293b",
    "paper": "#ffffff",
    "quiet": "#475569",
    "panel": "#f1f5f9",
    "line": "#e2e8f0",
    "edge": "#94a3b8",
    "alarm": "#b91c1c",
    "lag": "#c2410c",
    "cured": "#0f766e",
    "other-1": "#7c3aed",
    "other-2": "#2563eb",
    "other-3": "#a16207",
    "other-4": "#be185d",
    "rest": "#64748b",
    "safe": "#aceebb",
    "lucky": "#e6f7ea",
    "stops": "#c9d1d9",
    "twice": "#ffd8a8",
    "loses": "#ff9d94",
    "chosen": "#fff8c5",
}
DARK = {
    "text": "#e2e8f0",
    "paper": "#0f172a",
    "quiet": "#a3b1c6",
    "panel": "#1e293b",
    "line": "#334155",
    "edge": "#64748b",
    "alarm": "#fca5a5",
    "lag": "#fb923c",
    "cured": "#2dd4bf",
    "other-1": "#a78bfa",
    "other-2": "#60a5fa",
    "other-3": "#facc15",
    "other-4": "#f472b6",
    "rest": "#94a3b8",
    "safe": "#166534",
    "lucky": "#14301f",
    "stops": "#475569",
    "twice": "#7c4a03",
    "loses": "#991b1b",
    "chosen": "#3f3a10",
}
VARIABLES = {name: f"var(--{name})" for name in LIGHT}
"""Name -> how a style or a chart inside a page names the colour."""


def _rule(colours: Mapping[str, str], scheme: str) -> str:
    values = "".join(f" --{name}: {value};" for name, value in colours.items())
    return f":root {{ color-scheme: {scheme};{values} }}"


COLOURS = f"""
{_rule(LIGHT, "light")}
@media screen and (prefers-color-scheme: dark) {{ {_rule(DARK, "dark")} }}
body {{ color: var(--text); background: var(--paper); }}
@media print {{ * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }} }}
"""
"""What each page's style begins with. Browsers print no backgrounds unless told to, and the text of
a coloured cell may be white."""
