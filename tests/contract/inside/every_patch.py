"""The contract that every patch keeps, whatever it means: checked over the ledger as it stands on this torch."""

from __future__ import annotations

import base64
import inspect
import itertools
import pickle
import random
import re
import types
from typing import Any

import _checks
from _snapshot import Snapshot

flagos_shim = _checks.pristine()

import torch  # noqa: E402

from flagos_shim import _activation, _environment, registry  # noqa: E402
from flagos_shim._context import Context  # noqa: E402
from flagos_shim._patching import Ledger, iterate  # noqa: E402
from flagos_shim.patches import SURFACES  # noqa: E402

PRISTINE = Snapshot()


def assert_pristine(what: str = "") -> None:
    found = PRISTINE.differences(Snapshot())
    assert not found, f"{what}: {len(found)} differences\n" + "\n".join(found[:40])


def activate() -> list[Any]:
    flagos_shim.activate(_checks.BACKEND)
    return list(_activation.STATE.current.ledger.entries)


def named(entries: list[Any]) -> list[Any]:
    """Those entries where a function stands in a named place."""
    return [e for e in entries if e.installer is None and isinstance(stand_in(e), types.FunctionType)]


def stand_in(entry: Any) -> Any:
    return entry.new.__func__ if isinstance(entry.new, staticmethod) else entry.new


def wrapped(entries: list[Any]) -> list[Any]:
    return [e for e in named(entries) if getattr(stand_in(e), "__wrapped__", None) is e.original]


def context() -> Context:
    vendor = registry.resolve(_checks.BACKEND)
    return Context(vendor, ("cuda", "flagos"), _activation._import_plugin(vendor), _environment.Changes())


def check_something_is_changed_and_all_of_it_is_restored() -> None:
    entries = activate()
    assert len(entries) > 150 and PRISTINE.differences(Snapshot())
    assert flagos_shim.deactivate() == []
    assert_pristine()


def check_every_order_of_switching_on_and_off() -> None:
    for order in itertools.product("ad", repeat=4):
        for verb in order:
            if verb == "a":
                flagos_shim.activate(_checks.BACKEND)
                assert flagos_shim.status()["active"] and torch.zeros.__wrapped__ is PRISTINE.names["torch"]["zeros"]
            else:
                assert flagos_shim.deactivate() == []
                assert not flagos_shim.status()["active"] and torch.zeros is PRISTINE.names["torch"]["zeros"]
        flagos_shim.deactivate()
        assert torch.zeros is PRISTINE.names["torch"]["zeros"], order
    assert_pristine()


def check_each_surface_alone() -> None:
    for surface in iterate(SURFACES):
        if surface.after is None:
            ctx = context()
            ledger = Ledger(ctx)
            ledger.apply(surface)
            assert ledger.entries or ledger.skipped or surface.finders, surface.name
            ctx.close()
            assert ledger.undo() == [], surface.name
            assert_pristine(surface.name)


def check_surfaces_in_every_order() -> None:
    surfaces = [surface for surface in iterate(SURFACES) if surface.after is None]
    generator = random.Random(0)
    for _ in range(8):
        on, off = generator.sample(surfaces, len(surfaces)), list(range(len(surfaces)))
        generator.shuffle(off)
        ctx = context()
        ledgers = []
        places: dict[tuple[int, str], int] = {}
        for number, surface in enumerate(on):
            ledger = Ledger(ctx)
            ledger.apply(surface)
            ledgers.append(ledger)
            for entry in ledger.entries:
                if entry.installer is None:
                    first = places.setdefault((id(entry.owner), entry.name), number)
                    assert first == number, f"{entry.target} is in {surface.name} and in {on[first].name}"
        ctx.close()
        for number in off:
            assert ledgers[number].undo() == [], on[number].name
        assert_pristine(" ".join(surface.name for surface in on))


def check_stand_ins_look_like_the_originals() -> None:
    wrong = []
    for entry in wrapped(activate()):
        new, original = stand_in(entry), entry.original
        for name in ("__module__", "__qualname__", "__name__") if hasattr(original, "__code__") else ():
            if getattr(new, name) != getattr(original, name):
                wrong.append((entry.target, name, getattr(new, name), getattr(original, name)))
        if new.__doc__ != original.__doc__ or new.__annotations__ != getattr(original, "__annotations__", {}):
            wrong.append((entry.target, "doc or annotations"))
        if signature(new) != signature(original):
            wrong.append((entry.target, signature(new), signature(original)))
    flagos_shim.deactivate()
    assert not wrong, "\n".join(map(str, wrong[:30]))


def signature(function: Any) -> str:
    try:
        return str(inspect.signature(function))
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"


def pickles(function: Any) -> bool:
    try:
        return pickle.loads(pickle.dumps(function)) is function
    except Exception:
        return False


def check_stand_ins_pickle_by_torchs_name() -> None:
    entries = wrapped(activate())
    flagos_shim.deactivate()
    public = {e.target for e in entries if pickles(e.original) and not e.name.startswith("_")}
    assert len(public) > 100
    entries = [entry for entry in wrapped(activate()) if entry.target in public]
    wrong = [entry.target for entry in entries if not pickles(stand_in(entry))]
    wrong += [entry.target for entry in entries if b"flagos" in pickle.dumps(stand_in(entry))]
    flagos_shim.deactivate()
    assert not wrong, wrong


# Calls that would go on for ever, end the process, or leave torch changed.
NOT_CALLED = (
    "init_process_group",
    "launch",
    "spawn",
    "set_default",
    "manual_seed",
    "seed",
    "fork_rng",
    "set_rng_state",
)


def accepts(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def outcome(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    try:
        value = function(*args, **kwargs)
    except Exception as error:
        # Where a function with the wrong arguments was defined is said before its name.
        return f"{type(error).__module__}.{type(error).__name__}: {re.sub(r'[a-zA-Z_.]+<locals>.', '', str(error))}"
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.device}"
    return type(value).__name__ if not isinstance(value, (bool, int, str, tuple)) else repr(value)


def check_stand_ins_held_by_early_binders_are_dormant_afterwards() -> None:
    pairs = [(e.target, stand_in(e), e.original, isinstance(e.owner, type)) for e in wrapped(activate())]
    flagos_shim.deactivate()
    x = torch.ones(2)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}), ((2,), {}), ((2,), {"device": "cuda"}), ((2,), {"device": "flagos:1"}), (("cuda",), {}), ((x,), {}),
        ((x, "cuda:0"), {}), ((x,), {"device": "cuda:1"}), ((2,), {"device": object()}), ((), {"nonsense": 1}),
        ((0,), {}), (("nonsense:0",), {}),
    ]  # fmt: skip
    wrong = []
    for target, new, original, method in pairs:
        if any(name in target for name in NOT_CALLED) or (method and "Tensor" not in target):
            continue
        for args, kwargs in calls:
            fits = accepts(new, args, kwargs)
            if method and (not args or args[0] is not x):
                continue
            ours, theirs = outcome(new, args, dict(kwargs)), outcome(original, args, dict(kwargs))
            if not fits and ours.startswith("builtins.TypeError") and theirs.startswith("builtins.TypeError"):
                continue  # Python itself refuses these arguments, in other words than C code does
            if ours != theirs:
                wrong.append(f"{target} {args} {kwargs}\n    ours   {ours[:300]}\n    torch's {theirs[:300]}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])
    assert len(pairs) > 100


def check_devices_and_tables_are_dormant_afterwards() -> None:
    activate()
    ctx = _activation.STATE.current.ctx
    construct = vars(torch.device)["__new__"].__func__
    assert ctx.devices["cuda"] != "cuda"
    flagos_shim.deactivate()
    assert ctx.devices["cuda"] == "cuda" and ctx.translate("flagos:1") == "flagos:1" and ctx.translate(3) == 3
    assert str(construct(torch.device, "cuda", 1)) == "cuda:1" and ctx.device_kind("cuda") == "cuda"


def check_a_users_patch_on_top_is_left_in_place_and_reported() -> None:
    before = Snapshot()
    for target, owner, name in (
        ("torch:Tensor.to", torch.Tensor, "to"), ("torch:zeros", torch, "zeros"),
        ("torch.nn:Module.to", torch.nn.Module, "to"), ("torch.cuda:is_available", torch.cuda, "is_available"),
    ):  # fmt: skip
        targets = {entry.target for entry in activate()}
        if target not in targets:
            flagos_shim.deactivate()
            continue
        ours = getattr(owner, name)

        def theirs(*args: Any, _ours: Any = ours, **kwargs: Any) -> Any:
            return _ours(*args, **kwargs)

        setattr(owner, name, theirs)
        states = {p["target"]: p["state"] for p in flagos_shim.status()["patches"]}
        assert states[target] == "covered" and list(states.values()).count("covered") == 1
        assert flagos_shim.deactivate() == [target]
        assert vars(owner)[name] is theirs
        if name == "zeros":
            assert theirs(2).device.type == "cpu" and "CUDA" in outcome(theirs, (2,), {"device": "cuda"})
        flagos_shim.activate(_checks.BACKEND)
        assert flagos_shim.deactivate() == [target] and vars(owner)[name] is theirs
        if owner is torch.Tensor:
            del torch.Tensor.to
        else:
            setattr(owner, name, ours.__wrapped__)
        assert before.differences(Snapshot()) == [], target


def check_compiling_a_plain_factory_works_before_during_and_after() -> None:
    def plain(x: Any) -> Any:
        return torch.zeros(2) + x

    def routed(x: Any) -> Any:
        return torch.zeros(2, device="cuda").cpu() + x

    def compiled(function: Any) -> Any:
        torch._dynamo.reset()
        return torch.compile(function, fullgraph=True, backend="eager")(torch.ones(2)).tolist()

    assert compiled(plain) == [1, 1]
    activate()
    assert compiled(plain) == [1, 1]
    assert compiled(routed) == [1, 1]
    flagos_shim.deactivate()
    assert compiled(plain) == [1, 1]
    activate()
    assert compiled(plain) == compiled(routed) == [1, 1]
    flagos_shim.deactivate()
    assert compiled(plain) == [1, 1]


def check_what_was_pickled_while_active() -> None:
    activate()
    made = [
        torch.zeros, torch.Tensor.to, torch.device("cuda:0"), torch.device("cuda:0").type, torch.float32, torch.ones,
        torch.fft.fftfreq, torch.nn.Linear(2, 2), torch.Size([1]), torch.cuda.is_available, torch.device,
    ]  # fmt: skip
    text = pickle.dumps(made)
    flagos_shim.deactivate()
    assert b"flagos" not in text
    print("PICKLED", base64.b64encode(text).decode())


if __name__ == "__main__":
    _checks.run(globals())
