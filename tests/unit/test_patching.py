"""The ledger, on modules and classes made for the purpose: what it changes, records, and takes back."""

from __future__ import annotations

import logging
import sys
import threading
import types
from typing import Any

import pytest

from flagos_shim import PatchError
from flagos_shim._patching import MISSING, Ledger, Patch, Surface
from flagos_shim._targets import forget


def everything(module: Any) -> dict[str, Any]:
    owners = {"module": module, "Base": module.Base, "Child": module.Child}
    return {f"{o}.{n}": v for o, owner in owners.items() for n, v in vars(owner).items() if n != "__builtins__"}


def ledger() -> Ledger:
    return Ledger(types.SimpleNamespace(log=logging.getLogger("flagos_shim"), active=True))  # type: ignore[arg-type]


def around(tag: str) -> Any:
    def build(ctx: Any, original: Any) -> Any:
        """The reason.

        Not part of the reason.
        """

        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return (tag, original(*args, **kwargs))

        return stand_in

    return build


def test_every_verb_is_applied_and_taken_back(target: Any) -> None:
    before = everything(target)
    containers = (list(target.items), set(target.names), dict(target.table))
    surface = Surface("all")
    surface.wrap("patched:plain", also=("patched:again",))(around("w"))
    surface.wrap("patched:Child.method")(around("m"))
    surface.wrap("patched:Child.static")(around("s"))
    surface.replace("patched:constant")(lambda ctx, original: "replaced")
    surface.replace("patched:Child.flag")(lambda ctx, original: property(lambda self: True))
    surface.provide("patched:new")(lambda ctx, original: ("new", original))
    surface.enrol("patched:items")(lambda ctx, original: "zero")
    surface.enrol("patched:names")(lambda ctx, original: "two")
    surface.enrol("patched:table")(lambda ctx, original: ("one", 100))
    book = ledger()
    book.apply(surface)
    assert target.plain(1) == ("w", ("plain", 1, None)) and target.again is target.plain
    assert target.Child().method() == ("m", "base") and target.Base().method() == "base"
    assert target.Child.static(1) == target.Child().static(1) == ("s", ("static", 1))
    assert target.constant == "replaced" and target.new == ("new", MISSING)
    assert target.Child().flag and not target.Base().flag
    assert target.items == ["zero", "one"] and target.names == {"one", "two"} and target.table == {"one": 100}
    assert {entry.why for entry in book.entries if entry.name == "plain"} == {"The reason."}
    assert book.undo() == [] and not book.entries
    after = everything(target)
    assert after.keys() == before.keys() and all(after[name] is before[name] for name in before)
    assert (target.items, target.names, target.table) == containers


def test_a_dict_entry_that_was_not_there_goes_again(target: Any) -> None:
    surface = Surface("s")
    surface.enrol("patched:table")(lambda ctx, original: ("two", 2))
    book = ledger()
    book.apply(surface)
    assert target.table == {"one": 1, "two": 2}
    book.undo()
    assert target.table == {"one": 1}


def test_what_was_enrolled_before_us_stays(target: Any) -> None:
    surface = Surface("s")
    surface.enrol("patched:names")(lambda ctx, original: "one")
    book = ledger()
    book.apply(surface)
    book.undo()
    assert target.names == {"one"}


def test_an_original_that_will_do_is_left_where_it_is(target: Any) -> None:
    before = everything(target)
    surface = Surface("s")
    for name in ("plain", "Child.method", "Child.static"):
        surface.wrap(f"patched:{name}")(lambda ctx, original: original)
    surface.replace("patched:Child.flag")(lambda ctx, original: original)
    book = ledger()
    book.apply(surface)
    assert not book.entries and everything(target) == before
    assert set(book.skipped.values()) == {"torch's own does it on this back end"}
    assert not hasattr(target.plain, "__wrapped__")


def test_a_missing_target_rolls_the_surface_back(target: Any) -> None:
    before = everything(target)
    surface = Surface("half")
    surface.wrap("patched:plain")(around("w"))
    surface.enrol("patched:items")(lambda ctx, original: "zero")
    surface.wrap("patched:gone")(around("w"))
    surface.forget("patched:memo")
    book = ledger()
    with pytest.raises(
        PatchError, match="Surface 'half': the target patched:gone is not there: no such name on this torch"
    ):
        book.apply(surface)
    assert everything(target) == before and target.items == ["one"] and not book.entries
    assert target.calls == ["memo"], "what torch has memoised of a surface that failed is forgotten too"


@pytest.mark.parametrize("missing", ["patched:gone", "patched:Gone.method", "patched:Child.gone", "no_such_module:x"])
def test_an_optional_target_may_be_missing_and_is_reported(target: Any, missing: str) -> None:
    surface = Surface("s")
    surface.wrap(missing, optional=True)(around("w"))
    surface.wrap("patched:plain", also=(missing,))(around("w"))
    book = ledger()
    book.apply(surface)
    assert list(book.skipped) == [missing] and book.skipped[missing].startswith("absent: ")
    book.undo()


@pytest.mark.parametrize("error", [ValueError("in build"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_a_patch_raises_nothing_is_left_behind(target: Any, error: BaseException) -> None:
    before = everything(target)

    def build(ctx: Any, original: Any) -> Any:
        raise error

    surface = Surface("s")
    surface.wrap("patched:plain")(around("w"))
    surface.replace("patched:constant")(build)
    book = ledger()
    with pytest.raises(PatchError if isinstance(error, Exception) else type(error)):
        book.apply(surface)
    assert everything(target) == before and not book.entries


def test_somebody_on_top_is_left_there_and_reported(target: Any) -> None:
    surface = Surface("s")
    surface.wrap("patched:plain")(around("w"))
    surface.wrap("patched:Child.method")(around("m"))
    surface.enrol("patched:names")(lambda ctx, original: "two")
    book = ledger()
    book.apply(surface)
    ours, theirs = target.plain, lambda x: "theirs"
    target.plain = theirs
    target.names.discard("two")
    assert [entry.covered() for entry in book.entries] == [True, False, True]
    assert book.undo() == ["patched:names", "patched:plain"]
    assert target.plain is theirs and target.names == {"one"}
    assert "method" not in vars(target.Child)
    assert ours(1) == ("w", ("plain", 1, None))


def test_undone_twice_is_undone_once(target: Any) -> None:
    surface = Surface("s")
    surface.wrap("patched:plain")(around("w"))
    book = ledger()
    book.apply(surface)
    book.undo()
    target.plain = "theirs"
    assert book.undo() == [] and target.plain == "theirs"


def test_two_ledgers_on_top_of_each_other(target: Any) -> None:
    before = everything(target)
    books = [ledger(), ledger()]
    for book, tag in zip(books, "ab"):
        surface = Surface(tag)
        surface.wrap("patched:plain")(around(tag))
        book.apply(surface)
    assert target.plain(1) == ("b", ("a", ("plain", 1, None)))
    assert books[1].undo() == [] and books[0].undo() == []
    assert everything(target) == before


def test_a_surface_waits_for_a_module(target: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "patched_later.py").write_text("def f():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    surface = Surface("later", after="patched_later")
    surface.wrap("patched_later:f")(around("w"))
    first, second = ledger(), ledger()
    first.apply(surface)
    second.apply(surface)
    second.undo()
    import patched_later  # type: ignore[import-not-found]

    assert patched_later.f() == ("w", 1) and len(first.entries) == 1 and not second.entries
    assert first.undo() == [] and patched_later.f() == 1
    del sys.modules["patched_later"]


def test_a_waiting_surface_that_does_not_fit_does_not_fail_the_programs_import(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "patched_unfit.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    surface = Surface("unfit", after="patched_unfit")
    surface.wrap("patched_unfit:f")(around("w"))
    book = ledger()
    book.apply(surface)
    import patched_unfit  # type: ignore[import-not-found]  # noqa: F401

    assert "patched_unfit:f is not there" in book.failures["unfit"] and "'unfit' could not be applied" in caplog.text
    del sys.modules["patched_unfit"]


def test_a_surface_that_arrives_while_another_thread_deactivates_is_taken_back(target: Any) -> None:
    before = everything(target)
    inside, go_on = threading.Event(), threading.Event()

    def build(ctx: Any, original: Any) -> Any:
        inside.set()
        assert go_on.wait(20)
        return lambda *args: "late"

    surface = Surface("late")
    surface.wrap("patched:plain")(build)
    book = ledger()
    thread = threading.Thread(target=book.apply, args=(surface,))
    thread.start()
    assert inside.wait(20)
    book.undo()
    go_on.set()
    thread.join(20)
    assert everything(target) == before and not book.entries


def test_names_taken_early_are_brought_along_and_back(target: Any) -> None:
    user = types.ModuleType("user_program")
    user.f, user.nothing, user.klass = target.plain, None, target.Child  # type: ignore[attr-defined]
    inner = types.ModuleType("kept.inside")
    inner.f = target.plain  # type: ignore[attr-defined]
    sys.modules.update({"user_program": user, "kept.inside": inner})
    surface = Surface("s")
    surface.wrap("patched:plain")(around("w"))
    surface.replace("patched:constant")(lambda ctx, original: "replaced")
    book = ledger()
    try:
        original = target.plain
        book.apply(surface)
        book.rebind(skip=("kept",))
        assert user.f is target.plain is not original and inner.f is original
        assert user.nothing is None, "a constant has other meanings elsewhere"
        assert next(e.why for e in book.entries if e.surface == "early names").startswith("Taken from patched:plain")
        assert book.undo() == []
        assert user.f is inner.f is target.plain is original
    finally:
        del sys.modules["user_program"], sys.modules["kept.inside"]


def test_torchs_memoised_tables_are_forgotten_after_apply_and_after_undo(target: Any) -> None:
    surface = Surface("s")
    surface.forget("patched:memo", "patched:gone.cache_clear", "not_imported_at_all:x")
    book = ledger()
    book.apply(surface)
    assert target.calls == ["memo"]
    book.undo()
    assert target.calls == ["memo", "memo"]
    forget(["patched:memo"])
    assert target.calls == ["memo"] * 3


def test_found_patches_are_applied_with_the_declared_ones(target: Any) -> None:
    surface = Surface("s")
    surface.wrap("patched:plain")(around("w"))
    surface.discover(lambda ctx: [Patch("patched:builtin", around("b"), "Found.")])
    book = ledger()
    book.apply(surface)
    assert target.builtin([1, 2]) == ("b", 2)
    assert [(e.target, e.why) for e in book.entries] == [
        ("patched:plain", "The reason."),
        ("patched:builtin", "Found."),
    ]
    book.undo()
    assert target.builtin is len


def test_what_was_left_under_anothers_patch_wakes_in_the_next_ledger_and_is_taken_back_by_identity(target: Any) -> None:
    surface = Surface("s")
    surface.wrap("patched:plain", also=("patched:again",))(around("w"))
    surface.wrap("patched:Child.static")(around("s"))
    before, first = everything(target), ledger()
    first.apply(surface)
    ours, static = target.plain, vars(target.Child)["static"]
    target.plain = lambda x: ("theirs", ours(x))
    target.Child.static = staticmethod(lambda x: "theirs")
    assert sorted(first.undo()) == ["patched:Child.static", "patched:plain"] and target.again is before["module.plain"]

    second = Ledger(first.ctx, reversed(first.left))
    second.apply(surface)
    assert target.plain(1) == ("theirs", ("w", ("plain", 1, None))), "once, below what stands on top"
    assert target.again is ours and target.Child.static(1) == "theirs"
    target.plain, target.Child.static = ours, static
    assert second.undo() == []
    assert everything(target) == before


def test_what_was_put_back_by_somebody_else_is_patched_anew(target: Any) -> None:
    surface = Surface("s")
    surface.wrap("patched:plain")(around("w"))
    before, first, plain = everything(target), ledger(), target.plain
    first.apply(surface)
    target.plain = lambda x: "theirs"
    assert first.undo() == ["patched:plain"]
    target.plain = plain
    second = Ledger(first.ctx, first.left)
    second.apply(surface)
    assert target.plain(1) == ("w", ("plain", 1, None))
    assert second.undo() == [] and everything(target) == before
