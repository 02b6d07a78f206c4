"""How far behind a replica will be: the workload of a log, what it costs, and the replica's clock.

The package is a function, too: `applier.forecast(files, schema)` is `schema_forecast.forecast`. One
name means both, whichever is imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from typing import Any


class CallablePackage(ModuleType):
    """A package that stands for its main function."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Calls `applier.forecast.schema_forecast.forecast`."""
        from applier.forecast.schema_forecast import forecast

        return forecast(*args, **options)


sys.modules[__name__].__class__ = CallablePackage
