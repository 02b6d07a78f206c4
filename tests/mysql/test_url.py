"""Where a target is, and where its password is found; nothing here needs a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from applier.errors import UsageError
from applier.mysql.client import url
from applier.mysql.client.tls import Tls, TlsMode
from applier.mysql.client.url import Endpoint, find_password, parse_url


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql://root@db.example:3307", Endpoint("db.example", 3307, "root")),
        ("mysql://root@db.example", Endpoint("db.example", 3306, "root")),
        ("mysql://a%40b@[::1]:3307/", Endpoint("::1", 3307, "a@b")),
        ("mysql://root@localhost?socket=/run/s&tls=off",
         Endpoint("localhost", 3306, "root", "/run/s", Tls(TlsMode.DISABLED))),
        ("mysql://root@h?ssl-ca=/a%26b.pem",
         Endpoint("h", 3306, "root", tls=Tls(TlsMode.VERIFY_CA, "/a&b.pem"))),
        ("mysql://root@h?ssl-mode=required",
         Endpoint("h", 3306, "root", tls=Tls(TlsMode.REQUIRED))),
    ],
)  # fmt: skip
def test_a_url_says_where(text: str, expected: Endpoint) -> None:
    assert parse_url(text) == expected
    assert parse_url(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "postgres://x@y",
        "mysql://u@h:port",
        "mysql://u@h/db",
        "mysql://u@h?tls=maybe",
        "mysql://u@h?ssl=1",
        "mysql://u@h?ssl-mode=maybe",
        "mysql://u@h?ssl-mode=required&ssl-ca=x",
        "mysql://u@h?ssl-cert=x",
        "nonsense",
        "mysql://",
        "mysql://root@",
        "mysql://:3306",
    ],
)
def test_a_wrong_url_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_url(text)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        parse_url("mysql://root:s3cret@host")
    assert "s3cret" not in str(caught.value)


def test_the_password_is_in_no_text_of_an_endpoint() -> None:
    endpoint = parse_url("mysql://root@host").with_password("s3cret")
    assert "s3cret" not in repr(endpoint) + str(endpoint)


def test_the_password_comes_from_the_first_place_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option_file = tmp_path / "my.cnf"
    option_file.write_text(
        "!includedir /etc\n[client]\nskip-name\npassword='from file'\n[mysqld]\npassword=no\n"
    )
    monkeypatch.setattr(url, "OPTION_FILES", (str(option_file),))
    given = tmp_path / "password"
    given.write_text("given\nsecond line\n")
    both = {"BINLAG_PASSWORD": "own", "MYSQL_PWD": "theirs"}
    assert find_password(given, environment=both) == "given"
    assert find_password(environment=both) == "own"
    assert find_password(environment={"MYSQL_PWD": "theirs"}) == "theirs"
    assert find_password(environment={}) == "from file"
    option_file.unlink()
    assert find_password(environment={}, ask=lambda: "asked") == "asked"
    assert find_password(environment={}) == ""


def test_a_password_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--password-file"):
        find_password(tmp_path / "none")


def test_an_error_names_the_option_that_was_wrong() -> None:
    with pytest.raises(
        UsageError, match=r"^error BL310: SOURCE: 'nonsense' is not a server address"
    ):
        parse_url("nonsense", "SOURCE")
