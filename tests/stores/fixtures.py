"""An object store for tests: moto's server in this process, reached as any store is, by the
environment."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from applier.remote import _filesystem

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
               "AWS_DEFAULT_REGION": "us-east-1",
               "AWS_EC2_METADATA_DISABLED": "true"}  # fmt: skip


class Bucket:
    """One bucket of the store, with what was asked of it."""

    def __init__(self, name: str, address: str) -> None:
        from pyarrow.fs import FileSystem

        self.name = name
        self.address = address
        self.filesystem, _ = FileSystem.from_uri(f"s3://{name}/")

    def put(self, key: str, content: bytes) -> str:
        with self.filesystem.open_output_stream(f"{self.name}/{key}", compression=None) as file:
            file.write(content)
        return f"s3://{self.name}/{key}"

    def put_folder(self, key: str, folder: Path) -> None:
        for path in folder.iterdir():
            self.put(f"{key}/{path.name}", path.read_bytes())


@pytest.fixture(scope="session")
def moto_server() -> Iterator[str]:
    server_module = pytest.importorskip("moto.server")
    pytest.importorskip("pyarrow.fs")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server: Any = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(
    moto_server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Bucket]:
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": moto_server}.items():
        monkeypatch.setenv(name, value)
    _filesystem.cache_clear()
    from pyarrow.fs import S3FileSystem

    name = f"logs-{abs(hash(request.node.nodeid))}"
    store = S3FileSystem(
        endpoint_override=moto_server.removeprefix("http://"),
        scheme="http",
        allow_bucket_creation=True,
    )
    store.create_dir(name)
    yield Bucket(name, moto_server)
    _filesystem.cache_clear()
