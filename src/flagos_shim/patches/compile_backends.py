"""``torch.compile(backend=...)``: the default and the vendors' product names mean the vendor's best compiler."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterable
from typing import Any

from .. import _settings
from .._context import Context
from .._patching import Surface
from ..failures import BackendUnavailableError
from ..registry import vendors

NAMES = ("flagos", "ascend_ge", "mlu_bangc")

# What torch registers whether or not it is installed, and the package that it needs.
_NEEDED = {"openxla": "torch_xla", "tvm": "tvm"}

_REGISTRY = "torch._dynamo.backends.registry"

default = Surface("compile_backends")
names = Surface("compile_backend_names", after="torch._dynamo")
surface = (default, names)


@default.wrap("torch:compile")
def compile_(ctx: Context, original: Any) -> Any:
    """`torch.compile(model)` uses the vendor's best back end; one that the program names is left as it is."""
    if ctx.vendor.compile_backend is None or ctx.vendor.identity:
        return original

    def compile(*args: Any, **kwargs: Any) -> Any:
        if ctx.active and kwargs.get("backend") is None:
            kwargs["backend"] = NAMES[0]
        return original(*args, **kwargs)

    return compile


@default.wrap("torch:_TorchCompileInductorWrapper.__call__")
def inductor(ctx: Context, original: Any) -> Any:
    """`backend="inductor"` is the vendor's inductor where it has one, and says so where it has none."""
    if not ctx.vendor.indexed or ctx.vendor.identity:
        return original

    def __call__(self: Any, model_: Any, inputs_: Any) -> Any:
        if not ctx.active or not _on_device(ctx, model_, inputs_):
            return original(self, model_, inputs_)
        if _settings.REHEARSE.read() is not None:
            return _rehearsed(ctx, model_, inputs_)
        try:
            return original(self, model_, inputs_)
        except Exception as error:
            if _inductor_knows(str(ctx.device_type)):
                raise
            raise _unavailable(ctx, "inductor", f"it has no code generator for {ctx.device_type!r}") from error

    return __call__


@functools.lru_cache(maxsize=1)
def _best(ctx: Context) -> Callable[..., Any]:
    """The back end behind the names: the vendor's own, or inductor where it has none or the graph is the host's."""
    import torch

    def flagos(gm: Any, example_inputs: list[Any], *, mode: Any = None, options: Any = None, **_: Any) -> Any:
        """The best compiler of the vendor in force."""
        wanted = ctx.vendor.compile_backend
        if not ctx.active or wanted is None or not _on_device(ctx, gm, example_inputs):
            return torch._TorchCompileInductorWrapper(mode, options, None)(gm, example_inputs)
        if _settings.REHEARSE.read() is not None:
            return _rehearsed(ctx, gm, example_inputs)
        if mode is not None or options is not None:
            ctx.log.info("torch.compile: mode and options are inductor's; the back end %r does without them.", wanted)
        try:
            return torch._dynamo.lookup_backend(wanted)(gm, example_inputs)
        except (ImportError, torch._dynamo.exc.InvalidBackend) as error:
            raise _unavailable(ctx, wanted, str(error).strip().partition("\n")[0]) from error

    flagos._tags = ()  # type: ignore[attr-defined]  # what torch's register_backend adds
    return flagos


names.forget("flagos_shim.patches.compile_backends:_best.cache_clear")


def _enrol_name(name: str) -> None:
    @names.enrol(f"{_REGISTRY}:_BACKENDS")
    def known(ctx: Context, _original: Any) -> tuple[str, Any]:
        """A product name of a vendor's compiler means the best one of the vendor in force."""
        import torch

        lazy = hasattr(torch._dynamo.backends.registry, "_COMPILER_FNS")
        return name, None if lazy else _best(ctx)

    @names.enrol(f"{_REGISTRY}:_COMPILER_FNS", optional=True)
    def function(ctx: Context, _original: Any) -> tuple[str, Any]:
        """A product name of a vendor's compiler means the best one of the vendor in force."""
        return name, _best(ctx)


for _name in NAMES:
    _enrol_name(_name)


def _rehearsed(ctx: Context, gm: Any, example_inputs: list[Any]) -> Any:
    import torch

    _say_rehearsed(ctx)
    return torch._dynamo.lookup_backend("aot_eager")(gm, example_inputs)


@functools.lru_cache(maxsize=1)
def _say_rehearsed(ctx: Context) -> None:
    ctx.log.warning(
        "Rehearsal: no compiler makes code for the memory that stands in for %s. Compiled graphs are traced and "
        "differentiated as on the device, and then run by eager kernels (aot_eager).", ctx.vendor.title,
    )  # fmt: skip


def _on_device(ctx: Context, gm: Any, example_inputs: Iterable[Any]) -> bool:
    import torch

    values = [*example_inputs, *gm.parameters(), *gm.buffers()]
    for node in gm.graph.nodes:
        made = node.meta.get("example_value", node.meta.get("val"))
        values.extend(made if isinstance(made, (list, tuple)) else (made,))
    return any(isinstance(value, torch.Tensor) and ctx.owns(value.device) for value in values)


def _inductor_knows(kind: str) -> bool:
    from torch._inductor.codegen.common import get_scheduling_for_device

    return get_scheduling_for_device(kind) is not None


def _usable(ctx: Context, name: str) -> bool:
    """False for a back end that torch lists although what it needs is not installed, or is another vendor's plugin."""
    from torch._dynamo.backends import registry

    point = getattr(registry, "_BACKENDS", {}).get(name)  # an entry point, where a package other than torch has it
    package = _NEEDED.get(name) or str(getattr(point, "value", "torch")).partition(":")[0].partition(".")[0]
    others = {vendor.package for vendor in vendors().values()} - {ctx.vendor.package}
    return package not in others and importlib.util.find_spec(package) is not None


def _unavailable(ctx: Context, wanted: str, reason: str) -> BackendUnavailableError:
    import torch

    left_out = {*NAMES, wanted}
    installed = [name for name in torch._dynamo.list_backends() if name not in left_out and _usable(ctx, name)]
    return BackendUnavailableError(
        f"torch.compile on {ctx.vendor.title} asked for the back end {wanted!r}, but {reason}. "
        f"Installed here: {', '.join(installed)}. Install what {wanted!r} needs, or name another, "
        'e.g. torch.compile(..., backend="aot_eager"), which needs no compiler.'
    )
