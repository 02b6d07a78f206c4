"""YAML as people write it for binlag: a key stands once in its table, and a version is no number.

YAML forbids a second key; PyYAML takes the last and drops the others, in silence. `server: 10.10`
is the number 10.1 to YAML.
"""

from __future__ import annotations

from typing import Any

import yaml


def load(text: str, *, fractions: bool = True) -> Any:
    """What a YAML document holds. Raises yaml.YAMLError.

    fractions: False leaves a number with a point in it the text that it is in the document.
    """
    return yaml.load(text, StrictLoader if fractions else WholeNumbersLoader)


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


class WholeNumbersLoader(StrictLoader):
    """A StrictLoader to which 10.10 is a text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":float")]
            for first, resolvers in self.yaml_implicit_resolvers.items()
        }
