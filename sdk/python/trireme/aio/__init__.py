"""Trireme for asyncio.

    from trireme import aio

    async with aio.open("127.0.0.1:17000", user="root", password="...", schema="shop") as db:
        r = await db.execute("INSERT INTO orders (note) VALUES (?)", ["first"])
        async with db.query("SELECT id, note FROM orders") as rows:
            async for id, note in rows:
                ...

Everything is as on the blocking side, with await before what talks to a server. What opens something (open, connect, query,
connection) may be awaited, or entered by async with. A task that is cancelled interrupts its statement on the server.
"""

from ._connection import Connection, Cursor
from ._database import Database, Rows, Transaction, connect, open

__all__ = ["Connection", "Cursor", "Database", "Rows", "Transaction", "connect", "open"]
