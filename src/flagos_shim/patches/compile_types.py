"""``x.type()`` and ``isinstance(x, torch.cuda.FloatTensor)`` give the same answer compiled as they do in eager mode."""

from __future__ import annotations

import inspect
from typing import Any

from .._context import Context
from .._patching import Surface
from .cuda_types import PREFIX, TENSORS

surface = Surface("compile_types", after="torch._dynamo")


def _name(kind: Any) -> str | None:
    """What torch.cuda calls a tensor type of the vendor's; None for anything else."""
    import torch

    return next((name for name in TENSORS if kind is getattr(torch.cuda, name, None)), None)


@surface.wrap("torch._dynamo.variables.tensor:TensorVariable.method_type", optional=True)
def method_type(ctx: Context, original: Any) -> Any:
    """Compiled, `x.type()` says `torch.cuda.FloatTensor` as well, and takes it."""
    if not ctx.vendor.indexed:
        return original
    own = f"{ctx.vendor.namespace}."
    with_translator = "tx" in inspect.signature(original).parameters  # dynamo hands it over since torch 2.6

    def method_type(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not ctx.active:
            return original(self, *args, **kwargs)
        from torch._dynamo.variables.constant import ConstantVariable

        at = int(with_translator)
        given = args[at] if len(args) > at else kwargs.get("dtype")
        if given is None:
            said = original(self, *args, **kwargs)
            text = said.value if isinstance(said, ConstantVariable) else None
            if isinstance(text, str) and text.startswith(own):
                return ConstantVariable.create(PREFIX + text[len(own) :])
            return said
        name = _name(given.as_python_constant()) if given.is_python_constant() else None
        if name is None:
            return original(self, *args, **kwargs)
        # By name, since the graph cannot hold the types of some plugins, which are not torch's own kind of type.
        named = ConstantVariable.create(PREFIX + name)
        if len(args) > at:
            args = (*args[:at], named, *args[at + 1 :])
        else:
            kwargs["dtype"] = named
        if not with_translator:
            return original(self, *args, **kwargs)
        return self.call_method(args[0], "type", list(args[1:]), kwargs)

    return method_type


@surface.wrap("torch._dynamo.variables.builtin:BuiltinVariable.call_isinstance")
def call_isinstance(ctx: Context, original: Any) -> Any:
    """Compiled, a tensor on the vendor's device is a `torch.cuda.FloatTensor` as well."""
    if not ctx.vendor.indexed:
        return original

    def call_isinstance(self: Any, tx: Any, arg: Any, kinds: Any) -> Any:
        from torch._dynamo.variables import ConstantVariable, TensorVariable

        if ctx.active and isinstance(arg, TensorVariable) and arg.device is not None and ctx.owns(arg.device):
            found = kinds.as_python_constant() if kinds.is_python_constant() else ()
            for kind in found if isinstance(found, tuple) else (found,):
                if _name(kind) is not None and kind.dtype is arg.dtype:
                    return ConstantVariable.create(True)
        return original(self, tx, arg, kinds)

    return call_isinstance
