"""What the programs share: the server's address, and checks that stop the program."""

import os
import traceback

HOST = os.environ["TRIREME_HOST"]
PORT = int(os.environ["TRIREME_PORT"])
USER = os.environ["TRIREME_USER"]
PASSWORD = os.environ["TRIREME_PASSWORD"]


def equal(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what}\n  got:  {got!r}\n  want: {want!r}")


def raises(number, call, *args):
    """The call has to fail with this error number of the server."""
    try:
        call(*args)
    except Exception as e:
        orig = getattr(e, "orig", e)
        got = getattr(orig, "errno", None) or (orig.args and orig.args[0])
        equal(got, number, f"error of {args!r}: {e}")
        return
    raise AssertionError(f"no error {number} of {args!r}")


def run(*tests):
    """Runs them all, says which failed, and ends the program."""
    failed = 0
    for test in tests:
        try:
            test()
            print(f"ok   {test.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}\n{traceback.format_exc(limit=-2, chain=False)}", flush=True)
    raise SystemExit(1 if failed else 0)
