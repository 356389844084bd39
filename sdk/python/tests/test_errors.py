"""What goes wrong on the way to the servers: it is said what, where, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import servers

import trireme
from trireme._core.runtime import run
from trireme._core.statements import first_word


def test_wrong_password(group: Any) -> None:
    for options in ({"password": "wrong"}, {"user": "nobody"}):
        with pytest.raises(trireme.OperationalError, match="Access denied") as e:
            group.open(**options)
        assert e.value.number == 1045
        assert "wrong" not in str(e.value)
        with pytest.raises(trireme.OperationalError, match="Access denied"):
            group.connect(**options)


def test_unknown_schema(group: Any) -> None:
    with group.open(schema="nothing") as db, pytest.raises(trireme.ProgrammingError) as e:
        db.fetchone("SELECT 1")
    assert e.value.number == 1049


def test_no_secret_is_shown(group: Any) -> None:
    secret = servers.PASSWORD
    with group.open() as db:
        for thing in (db, db.options, db.options.tls, db._group):
            assert secret not in repr(thing)
        assert secret not in repr(trireme.TLS(ca="x", key=secret))
    for url in (f"mysql://root:{secret}@h:1/", f"trireme://root:{secret}@h/", f"trireme://root:{secret}@h:1/?tls=maybe"):
        with pytest.raises(trireme.InterfaceError) as e:
            trireme.open(url)
        assert secret not in str(e.value)


def test_password_of_a_function(group: Any) -> None:
    asked = []

    def password() -> str:
        asked.append(1)
        return servers.PASSWORD

    with group.open(password=password) as db:
        db.ping()
    assert asked


@pytest.mark.parametrize(
    ("addresses", "options", "why"),
    [
        ([], {}, "addresses is empty"),
        ("nonsense", {}, "not host:port"),
        ("h:99999", {}, "not host:port"),
        ("h:1", {"user": "a:b"}, "user"),
        ("h:1", {"window": 1}, "window=1"),
        ("h:1", {"patience": -1}, "patience=-1"),
        ("h:1", {"time_zone": "Nowhere/There"}, "time_zone"),
        ("h:1", {"time_zone": "+24:00"}, "time_zone"),
        ("h:1", {"time_zone": "Europe"}, "time_zone"),
        ("h:1", {"colour": "red"}, "there is no option colour"),
        ("h:1", {"tls": trireme.TLS(cert=b"-----BEGIN X")}, "cert and key belong together"),
        ("h:1", {"tls": trireme.TLS(ca="/nothing/there")}, "ca: .*No such file"),
        ("h:1", {"tls": trireme.TLS(ca=b"x")}, "not in PEM"),
        ("trireme://u:p@h:1/?tls=skip-verify", {}, "always checks"),
    ],
)
def test_bad_options(addresses: Any, options: dict[str, Any], why: str) -> None:
    with pytest.raises(trireme.Error, match=why):
        trireme.open(addresses, **{"user": "root", **options})


def test_missing_user() -> None:
    with pytest.raises(trireme.InterfaceError, match="user is missing"):
        trireme.open("h:1")


def test_tls(group: Any) -> None:
    ca, cert, key = (group.tls / name for name in ("ca.pem", "client.pem", "client-key.pem"))
    with group.open(tls=trireme.TLS(ca=ca)) as db:
        db.execute("DROP USER IF EXISTS careful")
        db.execute("CREATE USER careful IDENTIFIED BY 'x' REQUIRE SSL")
        row = db.fetchone("SHOW STATUS LIKE 'Ssl_cipher'")
        assert row is not None
        assert row[1]
    tls = trireme.TLS(ca=ca.read_bytes(), cert=cert, key=str(key), server_name="db.test")
    with group.open(tls=tls, user="careful", password="x") as db:
        assert db.fetchone("SELECT 1") == (1,)
    with pytest.raises(trireme.OperationalError) as e:
        group.open(user="careful", password="x")
    assert e.value.number in (1045, 3159)
    for wrong in (trireme.TLS(), trireme.TLS(ca=ca, server_name="other.test")):
        with pytest.raises(trireme.OperationalError, match=r"TLS\.ca") as e:
            group.open(tls=wrong)
        assert e.value.number == 2026
        assert group.addresses[0] in str(e.value)


def test_client_certificate(group: Any) -> None:
    """An account that requires a certificate takes it from who has the password, too."""
    ca, cert, key = (group.tls / name for name in ("ca.pem", "client.pem", "client-key.pem"))
    shown = trireme.TLS(ca=ca, cert=cert, key=key)
    with group.open(tls=trireme.TLS(ca=ca)) as db:
        db.execute("DROP USER IF EXISTS known, named")
        db.execute("CREATE USER known IDENTIFIED BY 'x' REQUIRE X509")
        db.execute("CREATE USER named IDENTIFIED BY 'x' REQUIRE SUBJECT '/CN=somebody else'")
    with group.open(tls=shown, user="known", password="x") as db:
        assert db.fetchone("SELECT 1") == (1,)
    address = group.addresses[0].split(":")[1]
    files = f"ca={ca}&cert={cert}&key={key}"
    with trireme.open(f"trireme://known:x@127.0.0.1:{address}/?{files}") as db:
        assert db.fetchone("SELECT 1") == (1,)
    for tls, user, password in (
        (trireme.TLS(ca=ca), "known", "x"),
        (shown, "known", "guess"),
        (shown, "named", "x"),
    ):
        with pytest.raises(trireme.OperationalError) as e:
            group.open(tls=tls, user=user, password=password)
        assert e.value.number == 1045
    stranger = trireme.TLS(ca=ca, cert=group.tls / "stranger.pem", key=group.tls / "stranger-key.pem")
    with pytest.raises(trireme.OperationalError) as e:
        group.open(tls=stranger, user="known", password="x", connect_timeout=1.0)
    assert e.value.number in (2003, 2026)


def test_unknown_session(group: Any) -> None:
    with group.open() as db:
        session = run(db._group.writer(None))
        session._stream._sessions[4711] = session
        session.id = 4711
        m = session.request()
        m.ping.SetInParent()
        with pytest.raises(trireme.Error, match="4711") as e:
            run(session.finish(session.send(m), None))
        assert e.value.number == 1094


def test_server_gone(tmp_path: Path) -> None:
    """A server without TLS, which is killed."""
    group = servers.Group(tmp_path, 1, ("--auto-generate-certs=OFF",))
    group.start()
    try:
        with pytest.raises(trireme.OperationalError) as e:
            group.open(tls=trireme.TLS(), connect_timeout=1.0)
        assert e.value.number in (2003, 2026)
        with group.open() as patient, patient.connection() as idle, patient.connection() as busy, group.open(patience=0.5) as db:
            db.execute("CREATE DATABASE d")
            db.execute("CREATE TABLE d.t (n INT PRIMARY KEY)")
            busy.execute("INSERT INTO d.t VALUES (1)")
            group.nodes[0].kill()
            calls: list[Any] = [
                lambda: db.execute("INSERT INTO d.t VALUES (2)"),
                lambda: db.fetchone("SELECT 1"),
                lambda: idle.execute("SELECT 1", timeout=0.5),
            ]
            for call in calls:
                with pytest.raises(trireme.OperationalError, match=r"127\.0\.0\.1") as e:
                    call()
                assert e.value.number in (2003, 2013)
            with pytest.raises(trireme.OperationalError):
                busy.execute("INSERT INTO d.t VALUES (3)")
            with pytest.raises(trireme.OperationalError, match="rolled back"):
                busy.commit()
            busy.rollback()
            group.nodes[0].start()
            group.leader()
            assert patient.fetchone("SELECT COUNT(*) FROM d.t WHERE n IN (1, 3)") == (0,)
            assert idle.execute("SELECT 1").fetchone() == (1,)
            assert busy.execute("SELECT COUNT(*) FROM d.t WHERE n = 1").fetchone() == (0,)
    finally:
        group.stop()


def test_nobody_there() -> None:
    with pytest.raises(trireme.OperationalError, match=r"Cannot reach 127\.0\.0\.1:1: .*tried again and again") as e:
        trireme.open("127.0.0.1:1", user="root", connect_timeout=0.3)
    assert e.value.number == 2003


def test_closed(group: Any) -> None:
    db = group.open()
    connection = db.connection()
    db.close()
    db.close()
    for call in (lambda: db.execute("SELECT 1"), db.connection, lambda: connection.execute("SELECT 1")):
        with pytest.raises(trireme.InterfaceError, match="database is closed"):
            call()
    connection.close()


def test_after_fork(group: Any) -> None:
    with group.open() as db:
        runtime = db._group.runtime
        runtime._pid = os.getpid() + 1  # as if this were the child
        with pytest.raises(trireme.InterfaceError, match="fork"):
            db.execute("SELECT 1")
        runtime._pid = os.getpid()


def test_a_program_that_closes_nothing_ends(group: Any) -> None:
    program = (
        "import sys, trireme; db = trireme.open(sys.argv[1], user='root', password=sys.argv[2]); "
        "rows = db.query('SELECT 1'); c = db.connection(); print(c.execute('SELECT 1').fetchone())"
    )
    args = [sys.executable, "-c", program, ",".join(group.addresses), servers.PASSWORD]
    done = subprocess.run(args, capture_output=True, text=True, timeout=servers.PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (0, "(1,)\n"), done.stderr


def test_first_words() -> None:
    for text, word in {
        "select 1": "SELECT",
        "  /* a */ -- b\n# c\n(SELECT 1)": "SELECT",
        "--1": "",
        "": "",
        "/* open": "",
        ";insert into t": "INSERT",
        "-- only": "",
        "x" * 33: "",
    }.items():
        assert first_word(text) == word, text
