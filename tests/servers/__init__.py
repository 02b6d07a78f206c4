"""Tests on real servers, and the fixtures that start them; `servers` is the library of
docker/servers."""

import sys
from pathlib import Path

_LIBRARY = str(Path(__file__).resolve().parents[2] / "docker")
if _LIBRARY not in sys.path:
    sys.path.insert(0, _LIBRARY)
