"""Finding a target without binding it, and stand-ins that look like what they stand for."""

from __future__ import annotations

import collections
import inspect
import pickle
import types
from typing import Any

from flagos_shim._targets import MISSING, dress, forget, resolve


def test_a_stand_in_looks_like_the_original(target: Any) -> None:
    def around(original: Any) -> Any:
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return original(*args, **kwargs)

        return stand_in

    target.plain.__module__ = "patched"
    original, target.plain, target.builtin = target.plain, around(target.plain), around(len)
    dress(target.plain, original, "patched:plain")
    dress(target.builtin, len, "patched:builtin")
    new = target.plain
    assert (new.__name__, new.__qualname__, new.__module__) == ("plain", "plain", "patched")
    assert new.__doc__ == "Doc of plain." and new.__annotations__ == {} and new.__wrapped__ is original
    assert inspect.signature(new) == inspect.signature(original)
    assert pickle.loads(pickle.dumps(new)) is new
    builtin = target.builtin
    assert (builtin.__name__, builtin.__qualname__, builtin.__module__) == ("builtin", "builtin", "patched")
    assert inspect.signature(builtin) == inspect.signature(len)


def test_forgetting_calls_what_is_there(target: Any) -> None:
    forget(["patched:memo", "patched:gone.cache_clear", "not_imported_at_all:x"])
    assert target.calls == ["memo"]


def test_annotations_are_the_originals() -> None:
    def original(x: int) -> str:
        return str(x)

    def stand_in(*args: Any) -> Any:
        return args

    dress(stand_in, original, "somewhere:original")
    assert stand_in.__annotations__ == original.__annotations__
    assert stand_in.__module__ == __name__ and "original" in stand_in.__qualname__


def test_resolving_binds_nothing(target: Any) -> None:
    class Loud:
        def __get__(self, instance: Any, owner: Any = None) -> Any:
            raise AssertionError("bound")

    loud = Loud()
    target.Base.loud = loud
    assert resolve("patched:Child.loud") == (target.Child, "loud", MISSING, loud)
    assert resolve("patched:Child.method")[2:] == (MISSING, vars(target.Base)["method"])
    assert isinstance(resolve("patched:Child.static")[2], staticmethod)
    assert isinstance(resolve("patched:Child.static")[3], types.FunctionType)
    assert resolve("patched:collections.OrderedDict.keys")[0] is collections.OrderedDict
    assert resolve("patched:nothing") == (target, "nothing", MISSING, MISSING)
    assert repr(MISSING) == "MISSING"


def test_a_module_that_makes_names_on_demand(target: Any) -> None:
    target.__getattr__ = lambda name: f"lazy {name}" if name == "lazy" else (_ for _ in ()).throw(AttributeError(name))
    assert resolve("patched:lazy") == (target, "lazy", MISSING, "lazy lazy")
