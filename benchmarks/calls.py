"""The calls that are timed, as data.

An expression is Python as a program would write it.  ``{d}`` is the device's name (``npu``, ``cuda``, ``cpu``) and
``{m}`` its module (``torch.npu``, ``torch.cuda``); the names it may use are made by `namespace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# To reach: seconds on top of the native call, and for a step the ratio.
NO_DEVICE, NAMES_DEVICE = 0.15e-6, 0.35e-6

LIMITS = {"none": NO_DEVICE, "names": NAMES_DEVICE, "asks": NAMES_DEVICE, "ratio": 1.01}


@dataclass(frozen=True)
class Call:
    """One expression.

    Attributes:
        expression: what is timed.
        kind: "none" (names no device), "names" (names one), "asks" (a question to torch.cuda), "block" (calls several
            patched functions; no limit), "floor" (what any Python function in front of torch's costs), "ratio" (a whole
            step).
        native: the native spelling, where it is not the same with another device name.
        cpu: False where plain CPU torch has no such call.
        kernel: True where a kernel of the rehearsal runs, which is Python that calls patched functions itself, so that
            the row says more about the rehearsal than about the shim; such a row is judged on the CPU only.
        main: True for a row of the short table, which the README shows.
        targets: the patched functions that this times.
        label: what the row is called, where that is not the expression.
    """

    expression: str
    kind: str
    native: str | None = None
    cpu: bool = True
    kernel: bool = False
    main: bool = False
    targets: tuple[str, ...] = ()
    label: str | None = None

    def spelled(self, way: str, device: str) -> str:
        """The expression for one way."""
        text = self.native if way == "native" and self.native is not None else self.expression
        return text.replace("{d}", device).replace("{m}", f"torch.{device}")

    @property
    def what(self) -> str:
        """The row's name for people."""
        if self.label is not None:
            return self.label
        return f"`{self.expression.replace('{d}', 'cuda').replace('{m}', 'torch.cuda')}`"


# No stand-in can cost less: a function that only hands its arguments on to one of torch's that nobody patches.
FLOOR = (
    Call("hand_on_neg(x)", "floor", native="torch.neg(x)", main=True, label="floor: handing on a positional argument"),
    Call("hand_on_sum(x, dim=0)", "floor", native="torch.sum(x, dim=0)", main=True, label="floor: and a keyword"),
)

MAIN = (
    Call("y.to(dtype)", "none", main=True, targets=("torch:Tensor.to",)),
    Call("x.to(dtype)", "none", targets=("torch:Tensor.to",)),
    Call("torch.zeros(2)", "none", main=True, targets=("torch:zeros",)),
    Call("torch.zeros(2, dtype=dtype)", "none", main=True, targets=("torch:zeros",)),
    Call("torch.tensor(1.0)", "none", targets=("torch:tensor",)),
    Call("y.new_zeros(2)", "none", kernel=True, main=True, targets=("torch:Tensor.new_zeros",)),
    Call("torch.zeros_like(y)", "none", kernel=True, targets=("torch:zeros_like",)),
    Call("y.is_cuda", "none", native="y.is_npu", cpu=False, main=True, targets=("torch:Tensor.is_cuda",)),
    Call("x.is_cuda", "none", native="x.is_npu", targets=("torch:Tensor.is_cuda",), cpu=False),
    Call("y.device.type", "none", main=True, targets=("torch:device.type",)),
    Call("y.device.type == '{d}'", "none", targets=("torch:device.type",)),
    Call("x.device.type == '{d}'", "none", targets=("torch:device.type",)),
    Call("torch.device('cpu')", "none", main=True, targets=("torch:device",)),
    Call("module(y)", "none", kernel=True, main=True),
    Call("y + y", "none", kernel=True),
    Call("y.to('{d}')", "names", main=True, targets=("torch:Tensor.to",)),
    Call("y.to(device)", "names", main=True, targets=("torch:Tensor.to",)),
    Call("y.to('{d}:0')", "names", targets=("torch:Tensor.to",), native="y.to('npu:0')", cpu=False),
    Call("y.to(device='{d}')", "names", targets=("torch:Tensor.to",)),
    Call("y.to('{d}', dtype)", "names", targets=("torch:Tensor.to",)),
    Call("y.to('{d}', non_blocking=True)", "names", targets=("torch:Tensor.to",)),
    Call("y.{d}()", "names", main=True, targets=("torch:Tensor.cuda",)),
    Call("y.{d}(0)", "names", cpu=False, targets=("torch:Tensor.cuda",)),
    Call("torch.empty(2, device='{d}')", "names", main=True, targets=("torch:empty",)),
    Call("torch.empty(2, device=device)", "names", targets=("torch:empty",)),
    Call("torch.zeros(2, device='{d}', dtype=dtype)", "names", kernel=True, targets=("torch:zeros",)),
    Call("torch.tensor(1.0, device='{d}')", "names", kernel=True, targets=("torch:tensor",)),
    Call("y.new_zeros(2, device='{d}')", "names", kernel=True, targets=("torch:Tensor.new_zeros",)),
    Call("torch.device('{d}')", "names", main=True, targets=("torch:device",)),
    Call("torch.device('{d}:0')", "names", main=True, targets=("torch:device",)),
    Call("torch.device('{d}', 0)", "names", targets=("torch:device",)),
    Call("torch.device(device)", "names", targets=("torch:device",)),
    Call("module.to('{d}')", "block", main=True, targets=("torch._C:_nn._parse_to",)),
    Call("module.to(dtype)", "block", targets=("torch._C:_nn._parse_to",)),
    Call("{m}.is_available()", "asks", cpu=False, main=True, targets=("torch.cuda:is_available",)),
    Call("{m}.current_device()", "asks", cpu=False, main=True, targets=("torch.cuda:current_device",)),
    Call("{m}.memory_allocated()", "asks", cpu=False, main=True, targets=("torch.cuda.memory:memory_allocated",)),
    Call("{m}.synchronize()", "asks", cpu=False, targets=("torch.cuda:synchronize",)),
    Call("{m}.current_stream()", "asks", cpu=False, targets=("torch.cuda:current_stream",)),
    Call("{m}.device_count()", "asks", cpu=False, targets=("torch.cuda:device_count",)),
    Call("{m}.empty_cache()", "asks", cpu=False, targets=("torch.cuda.memory:empty_cache",)),
    Call("{m}.max_memory_allocated()", "asks", cpu=False, targets=("torch.cuda.memory:max_memory_allocated",)),
    Call("{m}.set_device(0)", "asks", cpu=False, targets=("torch.cuda:set_device",)),
    Call("{m}.is_initialized()", "asks", cpu=False, targets=("torch.cuda:is_initialized",)),
    Call("{m}.get_device_name()", "asks", cpu=False, targets=("torch.cuda:get_device_name",)),
    Call("torch.autocast('{d}', enabled=False)", "block", targets=("torch.amp.autocast_mode:autocast.__init__",)),
    Call("torch.is_autocast_enabled('{d}')", "asks", targets=("torch:is_autocast_enabled",)),
)

# Arguments for the factories and methods that are found on torch at run time; each is timed without a device and, where
# it takes one, with one.
_ARGUMENTS = {
    "torch:arange": "3",
    "torch:as_tensor": "x",
    "torch:asarray": "x",
    "torch:bartlett_window": "4",
    "torch:blackman_window": "4",
    "torch:empty": "2",
    "torch:empty_like": "x",
    "torch:empty_permuted": "(2, 3), (0, 1)",
    "torch:empty_strided": "(2,), (1,)",
    "torch:eye": "2",
    "torch:full": "(2,), 1.0",
    "torch:full_like": "x, 1.0",
    "torch:hamming_window": "4",
    "torch:hann_window": "4",
    "torch:kaiser_window": "4",
    "torch:linspace": "0, 1, 3",
    "torch:logspace": "0, 1, 3",
    "torch:ones": "2",
    "torch:ones_like": "x",
    "torch:rand": "2",
    "torch:rand_like": "x",
    "torch:randint": "5, (2,)",
    "torch:randint_like": "x, 5",
    "torch:randn": "2",
    "torch:randn_like": "x",
    "torch:randperm": "3",
    "torch:scalar_tensor": "1.0",
    "torch:sparse_coo_tensor": "index, values, (3,)",
    "torch:tensor": "1.0",
    "torch:tril_indices": "2, 2",
    "torch:triu_indices": "2, 2",
    "torch:zeros": "2",
    "torch:zeros_like": "x",
    "torch.fft:fftfreq": "4",
    "torch.fft:rfftfreq": "4",
    "torch:Tensor.new_empty": "2",
    "torch:Tensor.new_empty_strided": "(2,), (1,)",
    "torch:Tensor.new_full": "(2,), 1.0",
    "torch:Tensor.new_ones": "2",
    "torch:Tensor.new_tensor": "1.0",
    "torch:Tensor.new_zeros": "2",
}

# Takes a device in no form that a small call on the rehearsed device can be made with.
_NEVER_NAMES = ("torch:sparse_coo_tensor", "torch:kaiser_window")


def _called(target: str, arguments: str) -> str:
    module, _, name = target.partition(":")
    return f"x.{name.partition('.')[2]}({arguments})" if name.startswith("Tensor.") else f"{module}.{name}({arguments})"


def each_factory() -> list[Call]:
    """Every factory and ``new_*`` method that can be called with small arguments, without and with a device."""
    rows = []
    for target, arguments in _ARGUMENTS.items():
        rows.append(Call(_called(target, arguments), "none", targets=(target,)))
        if target not in _NEVER_NAMES:
            expression = _called(target, f"{arguments}, device='{{d}}'")
            rows.append(Call(expression, "names", kernel="empty" not in target, targets=(target,)))
    return rows


STEPS = (
    Call("ocr_step('{d}')", "ratio", main=True, label="training step of examples/ocr"),
    Call("transformer_step('{d}')", "ratio", main=True, label="training step of a small transformer"),
)


def table() -> list[Call]:
    """All rows, each expression once."""
    return list({call.expression: call for call in (*each_factory(), *MAIN, *FLOOR)}.values())


def namespace(device: str) -> dict[str, Any]:
    """What the expressions may use: ``x`` on the CPU, ``y`` on the device, ``module`` on the device, ``dtype`` ..."""
    import torch

    def hand_on(function: Any) -> Any:
        def handed_on(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return handed_on

    module = torch.nn.Linear(2, 2).to(device)
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return {
        "__name__": "program",
        "torch": torch,
        "x": torch.ones(2, 3),
        "y": torch.ones(2, 2, device=device),
        "module": module,
        "dtype": torch.float32,
        "device": torch.device(device),
        "index": torch.tensor([[0, 2]]),
        "values": torch.tensor([1.0, 2.0]),
        "hand_on_neg": hand_on(torch.neg),
        "hand_on_sum": hand_on(torch.sum),
    }
