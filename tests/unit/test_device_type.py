"""Names that equal two: who asks decides, and whatever they are handed to behaves as with the plain string."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from flagos_shim._device_type import CollectiveName, DeviceType, TracedDeviceType, is_internal

PROGRAM = {"__name__": "train"}
LIBRARY = {"__name__": "accelerate.state"}
TORCH = {"__name__": "torch.optim.adamw"}
NAMELESS: dict[str, Any] = {}
ODD = {"__name__": None}


def ask(expression: str, who: dict[str, Any], x: Any = None, **local: Any) -> Any:
    """What ``expression`` over ``x`` is in the module ``who``, in a function with these local names."""
    return eval(expression, {**who, "x": DeviceType("npu") if x is None else x}, local)


@pytest.mark.parametrize("who", [PROGRAM, LIBRARY, NAMELESS, ODD])
def test_the_programs_code_sees_both_names(who: dict[str, Any]) -> None:
    assert ask("x == 'cuda'", who) and ask("'cuda' == x", who)
    assert ask("x == 'npu'", who) and ask("'npu' == x", who)
    assert ask("not x != 'cuda'", who) and ask("not 'cuda' != x", who)
    assert ask("x in ('cpu', 'cuda')", who) and ask("x in ['npu']", who)
    assert ask("{'cuda': 7}[x]", who) == 7
    assert ask("x in {'cuda', 'cpu'}", who)
    assert ask("x != 'cpu' and not x == 'cpu' and x != 'mlu' and x != 3", who)


def test_torchs_code_sees_the_plain_name() -> None:
    assert ask("x == 'npu' and x != 'cuda' and not x == 'cuda' and not 'cuda' == x", TORCH)
    assert ask("{'npu': 7}[x]", TORCH) == 7
    assert ask("x not in ('cuda', 'cpu')", TORCH)


def test_as_text_it_is_the_vendors_name() -> None:
    assert ask("str(x), f'{x}', repr(x), '%s' % x, x + ':0', ':'.join([x])", PROGRAM) == (
        "npu", "npu", "'npu'", "npu", "npu:0", "npu",
    )  # fmt: skip
    assert json.dumps({"device": DeviceType("npu")}) == '{"device": "npu"}'
    assert ask("x.startswith('np'), x.upper(), len(x), isinstance(x, str)", PROGRAM) == (True, "NPU", 3, True)


def test_copied_it_stays_and_pickled_it_travels_to_a_machine_with_cuda() -> None:
    name = DeviceType("npu")
    assert copy.copy(name) is name and copy.deepcopy([name])[0] is name
    loaded = pickle.loads(pickle.dumps(name))
    assert type(loaded) is str and loaded == "cuda"


def test_two_of_them_are_equal() -> None:
    assert ask("x == y", {**PROGRAM, "y": DeviceType("npu")}) is True
    assert ask("x != y", {**PROGRAM, "y": DeviceType("npu")}) is False


def test_the_collective_has_its_own_other_name() -> None:
    name = CollectiveName("hccl")
    assert ask("x == 'nccl' and x == 'hccl' and x != 'cuda' and x != 'gloo'", PROGRAM, name)
    assert ask("x != 'nccl'", TORCH, name)


class Translator:
    """Stands for dynamo's instruction translator."""

    def __init__(self, module: str, parent: Any = None) -> None:
        self.f_globals, self.parent = {"__name__": module}, parent


def test_a_traced_name_follows_the_code_that_dynamo_traces() -> None:
    name, dynamo = TracedDeviceType("npu"), {"__name__": "torch._dynamo.variables.builtin"}
    both, plain = "x == 'cuda' and not x != 'cuda'", "x != 'cuda' and not x == 'cuda'"
    polyfill = Translator("torch._dynamo.polyfills", parent=Translator("train"))
    for tx in (Translator("__main__"), Translator("torchvision.ops"), polyfill, None):
        assert ask(f"{both} and x == 'npu' and x != 'cpu' and x != 3", dynamo, name, tx=tx)
        assert ask("hash(x)", dynamo, name, tx=tx) == hash("cuda")
    assert ask(f"{plain} and x == 'npu' and x != 'cpu'", dynamo, name, tx=Translator("torch.nn.functional"))
    assert ask("hash(x)", dynamo, name, tx=Translator("torch.nn.functional")) == hash("npu")
    # One that has left the compiler is like any other.
    assert ask(both, PROGRAM, name) and ask(plain, TORCH, name)


def test_who_is_internal() -> None:
    frames = {
        name: eval("__import__('sys')._getframe()", {"__name__": name}) for name in ("torch", "torch.nn", "torchvision")
    }
    assert [name for name, frame in frames.items() if is_internal(frame)] == ["torch", "torch.nn"]
