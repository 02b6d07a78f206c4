"""REGEXP in statement format on real servers and in memory: equal or refused."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from servers.server import Server

from tests.servers.fixtures import ServerFactory
from tests.tables.test_functions_servers import REFUSED, SERVERS, compared, run

TEXTS = (
    "",
    "rss_0123456789abcdef0123456789abcdef",
    "rss_ts",
    "a.b@c",
    "ABC",
    "a|b (c)",
    "x-y_z",
    "aab",
)
PATTERNS = (
    "^rss_[0-9a-f]{32}(_ts)?$", "abc", "^$", "^a.b@", "b|z$", "(a|b)+c?", "[^a-z]", "[_-]", "a{2}b",
    "^(a|x)[.|-]", r"\\.", r"\\(c\\)", "[A-C]{3,}", "..", "a+b*@?", "(^x|c$)",
)  # fmt: skip
"""None of them is refused."""
PIECES = (
    "a", "b", "B", "x", "0", "_", "-", ".", r"\\.", r"\\|", "[ab]", "[^ab]", "[0-9]", "[a-c_]",
    "[A-X]", "(a|b)", "(ab|[0-9])", "(^a|b)", "^", "$", "*", "+", "?", "{2}", "{1,}", "{0,2}", "|",
    " ", "&", "[.]", "[|$]", "[*+?]", "[:digit:]", "[[:alpha:]]", r"\\d", "(", ")", "[", "]",
    "{", "-]", "\\'",
)  # fmt: skip


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest, server_factory: ServerFactory) -> Iterator[Server]:
    started = server_factory(request.param, options={"character_set_server": "utf8mb4"})
    yield started
    started.close()


def inserts(pairs: list[tuple[str, str]]) -> Iterator[str]:
    yield (
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(60) COLLATE utf8mb4_general_ci,"
        " w VARCHAR(60) COLLATE utf8mb4_bin, r INT, s INT)"
    )
    for at, (text, pattern) in enumerate(pairs):
        matches = f"v REGEXP '{pattern}', w NOT RLIKE '{pattern}'"
        yield f"INSERT INTO a VALUES ({at}, '{text}', '{text}', {matches})"


def test_patterns_match_what_they_match_on_the_server(server: Server) -> None:
    pairs = [(text, pattern) for text in TEXTS for pattern in PATTERNS]
    equal, different = compared(run(server, inserts(pairs), ""), skip_errors="")
    assert (different, equal) == ([], len(pairs))


@pytest.mark.parametrize("seed", range(2))
def test_random_patterns(server: Server, seed: int) -> None:
    draw = random.Random(seed)
    pairs = []
    for _ in range(300):
        text = "".join(draw.choice("aabBx0_-.|$ &]*") for _ in range(draw.randint(0, 6)))
        pairs.append((text, "".join(draw.choice(PIECES) for _ in range(draw.randint(1, 4)))))
    equal, different = compared(run(server, inserts(pairs), ""), skip_errors=REFUSED)
    assert different == [] and equal > 100
