"""TorchScript graphs: ``cuda`` written in scripted code means the vendor's device when it runs, and stays in the text.

TorchScript compiles strings and device literals into a graph that C++ runs, out of reach of functions in Python.  The
graph is rewritten, the executor takes its copy, and the graph is put back: what is printed and saved says ``cuda``,
what runs uses the vendor's device.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._context import Context

# Where a device type is put into a text, that says the vendor's name.
_PRINTS = ("aten::format", "aten::add", "aten::str", "prim::Print", "aten::percentFormat")


class _Rewriter:
    """Rewrites graphs, and remembers how to put them back."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.undo: list[Callable[[], None]] = []

    def rewrite(self, graph: Any) -> None:
        for node in list(_nodes(graph)):
            if node.hasAttribute("Subgraph"):
                self.rewrite(node.g("Subgraph"))
            rule = _RULES.get(node.kind())
            if rule is not None:
                rule(self, graph, node)

    def put_back(self) -> None:
        while self.undo:
            self.undo.pop()()

    def _constant(self, graph: Any, node: Any, value: Any) -> Any:
        with graph.insert_point_guard(node):
            made = graph.insertConstant(value)
        self.undo.append(made.node().destroy)
        return made

    def _insert(self, graph: Any, node: Any, kind: str, inputs: list[Any], like: Any) -> Any:
        made = graph.create(kind, inputs, 1)
        made.insertBefore(node)
        made.output().setType(like)
        self.undo.append(made.destroy)
        return made.output()

    def _instead(self, old: Any, new: Any) -> None:
        old.replaceAllUsesWith(new)
        self.undo.append(lambda: new.replaceAllUsesWith(old))

    def constant(self, graph: Any, node: Any) -> None:
        """A device written as a literal."""
        if node.output().type().kind() != "DeviceObjType":
            return
        device = self.ctx.devices[str(node.output().toIValue())]
        if device.__class__ is not str:
            self._instead(node.output(), self._constant(graph, node, device))

    def device(self, graph: Any, node: Any) -> None:
        """`torch.device(s)`: the string is a constant, or known only when it runs."""
        text = node.inputsAt(0)
        value = text.toIValue()
        kind = str(self.ctx.device_type)
        if value is None:
            for alias in self.ctx.aliases:
                text = self._replaced(graph, node, text, alias, kind)
        elif self.ctx.devices[value].__class__ is not str:
            # With an index beside it the string is a mere kind.
            text = self._constant(graph, node, str(self.ctx.devices[value]))
        else:
            return
        self._input(node, 0, text)

    def cuda(self, graph: Any, node: Any) -> None:
        """`x.cuda()`"""
        no, none = self._constant(graph, node, False), self._constant(graph, node, None)
        device = self._constant(graph, node, self.ctx.make_device(None))
        moved = self._insert(graph, node, "aten::to", [node.inputsAt(0), device, none, no, no], node.output().type())
        self._instead(node.output(), moved)

    def is_cuda(self, graph: Any, node: Any) -> None:
        """`x.is_cuda`"""
        if not self.ctx.vendor.indexed:
            return
        kind = self._constant(graph, node, str(self.ctx.device_type))
        device = self._constant(graph, node, self.ctx.make_device(None))
        of = self._insert(graph, node, "prim::device", [node.inputsAt(0)], device.type())
        name = self._insert(graph, node, "prim::type", [of], kind.type())
        self._instead(node.output(), self._insert(graph, node, "aten::eq", [name, kind], node.output().type()))

    def type(self, graph: Any, node: Any) -> None:
        """`x.device.type` is "cuda" wherever it goes in the graph, save into a text."""
        if not self.ctx.vendor.indexed:
            return
        name, kind = node.output(), str(self.ctx.device_type)
        uses = [use for use in name.uses() if use.user.kind() not in _PRINTS and not _looked_for(use)]
        if not uses:
            return
        named = self._replaced(graph, node, name, kind, "cuda")
        named.node().moveAfter(node)
        for use in uses:
            self._input(use.user, use.offset, named)

    def equal(self, graph: Any, node: Any) -> None:
        """`name == "cuda"`, where the name comes from an argument, an attribute or a global: either name will do."""
        values = [value.toIValue() for value in node.inputs()]
        kind = str(self.ctx.device_type)
        if not self.ctx.vendor.indexed or not {"cuda", kind}.intersection(v for v in values if isinstance(v, str)):
            return
        if any(value.type().kind() != "StringType" for value in node.inputs()):
            return
        for at, value in enumerate(values):
            if value is None:
                self._input(node, at, self._replaced(graph, node, node.inputsAt(at), kind, "cuda"))
            elif value == kind:
                self._input(node, at, self._constant(graph, node, "cuda"))

    def _replaced(self, graph: Any, node: Any, text: Any, old: str, new: str) -> Any:
        words = [self._constant(graph, node, value) for value in (old, new, -1)]
        return self._insert(graph, node, "aten::replace", [text, *words], text.type())

    def _input(self, node: Any, at: int, value: Any) -> None:
        found = node.inputsAt(at)
        node.replaceInput(at, value)
        self.undo.append(lambda: node.replaceInput(at, found))


_RULES: dict[str, Callable[[_Rewriter, Any, Any], None]] = {
    "prim::Constant": _Rewriter.constant,
    "aten::device": _Rewriter.device,
    "aten::cuda": _Rewriter.cuda,
    "prim::is_cuda": _Rewriter.is_cuda,
    "prim::type": _Rewriter.type,
    "aten::eq": _Rewriter.equal,
    "aten::ne": _Rewriter.equal,
}


def _looked_for(use: Any) -> bool:
    """True where a device type is looked for in a text, which has the vendor's: `str(x.device).startswith(kind)`."""
    user = use.user
    return (
        use.offset > 0
        and user.kind() not in ("aten::eq", "aten::ne", "aten::device")
        and user.kind().startswith("aten::")
        and user.inputsAt(0).type().kind() == "StringType"
    )


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def prepare(ctx: Context, functions: Iterable[Any]) -> None:
    """Let compiled functions run on the vendor's device, and have them say ``cuda``.

    Args:
        functions: ``ScriptFunction`` or ``ScriptMethod`` objects that have not run yet.
    """
    import torch

    functions = list(functions)
    _publish(ctx, functions)
    rewriter = _Rewriter(ctx)
    if hasattr(torch, "get_autocast_dtype"):
        enabled, enable = (functools.partial(f, "cpu") for f in (torch.is_autocast_enabled, torch.set_autocast_enabled))
    else:  # before torch 2.4
        enabled, enable = torch.is_autocast_cpu_enabled, torch.set_autocast_cpu_enabled
    amp = enabled()
    try:
        for function in functions:
            rewriter.rewrite(function.graph)
        if rewriter.undo:
            # An executor copies the graph when it is made; there is one for each state of autocast.
            for state in (not amp, amp):
                enable(state)
                for function in functions:
                    # One that could not be compiled raises its own error when it is called.
                    with contextlib.suppress(RuntimeError):
                        function._debug_flush_compilation_cache()
    finally:
        enable(amp)
        rewriter.put_back()


def _publish(ctx: Context, functions: Iterable[Any]) -> None:
    """Have a trace, which recorded the vendor's device, name ``cuda`` as its program did."""
    import torch

    if not ctx.vendor.indexed:
        return
    for function in functions:
        for node in list(_nodes(function.graph)):
            if node.kind() != "prim::Constant" or node.output().type().kind() != "DeviceObjType":
                continue
            device = node.output().toIValue()
            if ctx.owns(device):
                text = "cuda" if device.index is None else f"cuda:{device.index}"
                # torch.device() would give the vendor's device again.
                parsed = torch._C.parse_ir(f'graph():\n  %1 : Device = prim::Constant[value="{text}"]()\n  return (%1)')
                with function.graph.insert_point_guard(node):
                    named = function.graph.insertConstant(next(parsed.nodes()).output().toIValue())
                node.output().replaceAllUsesWith(named)
                node.destroy()
