"""The generated code is that of the contract."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import servers

import trireme


def test_generated_code_is_in_step(tmp_path: Path) -> None:
    args = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(servers.ROOT / "proto")]
    subprocess.run([*args, f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", "trireme/v1/sql.proto"], check=True)
    for name in ("sql_pb2.py", "sql_pb2.pyi"):
        made = (tmp_path / "trireme" / "v1" / name).read_text()
        assert made == (servers.ROOT / "sdk/python/trireme/v1" / name).read_text(), "run 'make proto-python'"


def test_package_is_typed() -> None:
    assert (Path(trireme.__file__).parent / "py.typed").exists()
