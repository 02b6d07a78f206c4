"""YAML as people write it for binlag: a key stands once in its table.

YAML forbids a second one; PyYAML takes the last and drops the others, in silence.
"""

from __future__ import annotations

from typing import Any

import yaml


def load(text: str) -> Any:
    """What a YAML document holds. Raises yaml.YAMLError."""
    return yaml.load(text, StrictLoader)


class StrictLoader(yaml.SafeLoader):
    """A SafeLoader that refuses a key that stands in its table already."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Before `<<` brings in keys of other tables, which may be the same."""
        node = super().compose_mapping_node(anchor)
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"the key {key.value!r} stands there twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return node
