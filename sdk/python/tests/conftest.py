from __future__ import annotations

from collections.abc import Iterator

import pytest
import servers

import trireme


@pytest.fixture(scope="session")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Group]:
    """Three processes that all tests share; nobody kills them."""
    directory = tmp_path_factory.mktemp("group")
    g = servers.Group(directory, tls=servers.certificates(directory / "tls"))
    g.start()
    with g.open() as db:
        db.execute("CREATE DATABASE IF NOT EXISTS shop")
    yield g
    g.stop()


@pytest.fixture(scope="module")
def db(group: servers.Group, request: pytest.FixtureRequest) -> Iterator[trireme.Database]:
    """A database with a schema of the module's own."""
    schema = request.path.stem
    with group.open() as setup:
        setup.execute(f"DROP DATABASE IF EXISTS {schema}")
        setup.execute(f"CREATE DATABASE {schema}")
    with group.open(schema=schema) as db:
        yield db
