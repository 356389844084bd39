"""The examples of the README run as they are written."""

from __future__ import annotations

import re
from typing import Any

import servers

README = (servers.ROOT / "sdk/python/README.md").read_text()


def test_examples(group: Any) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) >= 2
    with group.open(schema="shop") as db:
        db.execute("DROP TABLE IF EXISTS orders, account")
        db.execute("CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(100))")
        db.execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)")
        db.execute("INSERT INTO account VALUES (1, 100), (2, 0)")
        for text in examples:
            assert '"127.0.0.1:17000,127.0.0.1:17001"' in text
            text = text.replace('"127.0.0.1:17000,127.0.0.1:17001"', repr(group.addresses))
            exec(compile(text.replace('"secret"', repr(servers.PASSWORD)), "README.md", "exec"), {"__name__": "__main__"})
        assert db.fetchall("SELECT balance FROM account ORDER BY id") == [(100 - 10 * len(examples),), (10 * len(examples),)]
        assert db.fetchone("SELECT COUNT(*) FROM orders") == (len(examples),)
