"""Constructors of C types: replaced and restored to the bit, or refused.  Each in an interpreter of its own."""

from __future__ import annotations

import pytest

from flagos_shim import _slots

PRELUDE = """
import ctypes, datetime, gc, pickle, sys
from flagos_shim import PatchError, _slots
T = datetime.timedelta
def bits(t):
    return ctypes.string_at(id(t) + 24, 400)
def constructor(rewrite, owner=T, probe=(1,)):
    return _slots.Constructor(owner, rewrite, probe)
def double(args, kwargs):
    return tuple(2 * a for a in args), {k: 2 * v for k, v in kwargs.items()}
"""

CASES = {
    "rewrites every form of call": """
c = constructor(double)
c.install()
assert T(1) == T(days=1) == T.__new__(T, 1) and T(1).days == 2 and T(1, hours=1).seconds == 7200
class Sub(T): pass
assert type(Sub(1)) is Sub and Sub(1).days == 2
assert not c.covered()
""",
    "restores to the bit": """
before, new, names = bits(T), T.__dict__["__new__"], list(T.__dict__)
c = constructor(double)
c.install()
c.restore()
assert T.__dict__["__new__"] is new and list(T.__dict__) == names and T(1).days == 1 and T.__new__(T, 1).days == 1
after = bits(T)
# What differs is the counter by which the interpreter knows that names have changed, and its flag.
differ = [24 + i for i in range(400) if before[i] != after[i]]
assert all(i in range(168, 176) or i >= 376 for i in differ), differ
""",
    "keeps the type's own errors": """
plain = []
calls = [(("x",), {}), ((), {"cls": 1}), ((1, 2, 3, 4, 5, 6, 7, 8), {}), ((), {"nonsense": 1}), ((1,), {"self": 2})]
for args, kwargs in calls:
    try: T(*args, **kwargs)
    except Exception as e: plain.append((type(e), str(e)))
c = constructor(lambda args, kwargs: (args, kwargs))
c.install()
for args, kwargs in calls:
    try: T(*args, **kwargs)
    except Exception as e: assert (type(e), str(e)) == plain.pop(0)
assert not plain
""",
    "an error of the rewriter arrives": """
def rewrite(args, kwargs):
    if args == (13,): raise LookupError("thirteen")
    return args, kwargs
c = constructor(rewrite)
c.install()
try: T(13)
except LookupError as e: assert str(e) == "thirteen"
else: raise SystemExit("not raised")
""",
    "an installation that does not construct is taken back": """
new = T.__dict__["__new__"]
def broken(args, kwargs): raise LookupError("broken")
c = constructor(broken)
try: c.install()
except LookupError: pass
assert T.__dict__["__new__"] is new and T(1).days == 1
""",
    "refuses a class written in Python": """
class P:
    def __new__(cls, x): return object.__new__(cls)
try: constructor(double, P)
except PatchError as e: assert "no C constructor" in str(e)
else: raise SystemExit("not refused")
""",
    "says when somebody else has replaced it since": """
c = constructor(double); c.install()
_slots.set_type_name(T, "__new__", staticmethod(lambda cls, *a: "theirs"))
assert c.covered()
""",
    "leaks nothing": """
c = constructor(lambda args, kwargs: (args, kwargs)); c.install()
import tracemalloc
for _ in range(1000): T(days=1, hours=2)
gc.collect(); tracemalloc.start(); start = tracemalloc.get_traced_memory()[0]
for _ in range(20000): T(days=1, hours=2)
gc.collect()
assert tracemalloc.get_traced_memory()[0] - start < 20000
""",
    "threads construct while it comes and goes": """
import threading
stop, wrong = threading.Event(), []
def work():
    while not stop.is_set():
        try:
            if T(1).days not in (1, 2) or T(days=1).days not in (1, 2): wrong.append("value")
        except BaseException as e: wrong.append(e)
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for _ in range(300):
    c = constructor(double); c.install(); c.restore()
stop.set()
for t in threads: t.join()
assert not wrong, wrong[:3]
""",
    "names of C types come and go": """
original = T.days
_slots.set_type_name(T, "days", property(lambda self: "ours"))
assert T(1).days == "ours"
_slots.set_type_name(T, "days", original)
assert T(1).days == 1 and T.days is original
_slots.set_type_name(T, "extra", 1); assert T.extra == 1
_slots.delete_type_name(T, "extra"); assert not hasattr(T, "extra")
""",
}


@pytest.mark.parametrize("case", CASES)
def test_constructors(case: str, run_isolated) -> None:  # type: ignore[no-untyped-def]
    run_isolated(PRELUDE + CASES[case], backend=None).ok()


def test_supported_here() -> None:
    assert _slots.supported() is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("sys.implementation.name = 'pypy'", "pypy is not CPython"),
        ("sys.maxsize = 2**31 - 1", "not a 64-bit interpreter"),
        ("sys._is_gil_enabled = lambda: False", "the free-threaded build"),
    ],
)
def test_where_it_cannot_be_done_it_says_why(change: str, reason: str, run_isolated) -> None:  # type: ignore[no-untyped-def]
    code = PRELUDE + f"{change}\ntry: constructor(double)\nexcept PatchError as e: print(e)\n"
    assert reason in run_isolated(code, backend=None).ok().stdout
