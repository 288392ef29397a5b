"""Run by test_cuda_coverage.py under one back end: uses every name of torch.cuda and prints what it found as JSON."""

from __future__ import annotations

import inspect
import json
import sys
import types
import warnings

import torch

from flagos_shim import _coverage
from flagos_shim._activation import current
from flagos_shim._patching import resolve

warnings.simplefilter("ignore")

# What a build of torch without CUDA says when its own code is reached.
CUDA_ONLY = (
    "not compiled with CUDA", "compiled without CUDA", "libcudart", "Cannot initialize CUDA", "dummy base class",
    "NVTX functions not installed", "CUDA driver", "not linked with support for cuda", "pynvml", "_C._cuda",
    "torch._C' has no attribute",
)  # fmt: skip
# Calls that would take the device away from the rest of the probe, or need another library's objects.
INSPECTED_ONLY = {
    "torch.cuda.change_current_allocator", "torch.cuda.CUDAPluggableAllocator", "torch.cuda.memory._CUDAAllocator",
    "torch.cuda.make_graphed_callables", "torch.cuda.graph", "torch.cuda._lazy_call",
    "torch.cuda.memory._record_memory_history", "torch.cuda.memory._save_segment_usage",
    "torch.cuda.memory._save_memory_usage", "torch.cuda.memory._dump_snapshot",
    "torch.cuda.memory._set_allocator_settings", "torch.cuda.tunable.write_file_on_exit", "torch.cuda._sleep",
    "torch.cuda._CudaDeviceProperties",
}  # fmt: skip


def example(name: str) -> object:
    """A value for a parameter of that name."""
    cuda, tensor = torch.cuda, torch.ones(4, device="cuda")
    makers = {
        "device": lambda: 0, "peer_device": lambda: 0, "obj": lambda: tensor, "stream": cuda.current_stream,
        "stream_ptr": lambda: 0, "data_ptr": lambda: 0, "index": lambda: 0, "size": lambda: 512,
        "mem_ptr": lambda: cuda.caching_allocator_alloc(512), "fraction": lambda: 0.5, "cycles": lambda: 1,
        "new_state": cuda.get_rng_state, "new_states": cuda.get_rng_state_all, "seed": lambda: 1, "offset": lambda: 4,
        "msg": lambda: "a mark", "range_id": lambda: cuda.nvtx.range_start("a range"), "code": lambda: 1,
        "range_handle": lambda: cuda.nvtx._device_range_start("a range"), "debug_mode": lambda: 0, "res": lambda: 0,
        "inputs": lambda: [tensor], "outputs": lambda: [tensor.clone()], "tensors": lambda: [tensor],
        "tensor": lambda: tensor, "devices": lambda: [0], "fwd": lambda: abs, "bwd": lambda: abs, "val": lambda: False,
        "duration": lambda: 10, "iterations": lambda: 10, "filename": lambda: "results.csv", "buffer_size": lambda: 0,
        "enable": lambda: False, "metadata": lambda: "text", "pool": cuda.MemPool, "code_string": lambda: "",
        "num_outputs": lambda: 1, "kernel_source": lambda: "", "kernel_name": lambda: "k", "s": lambda: None,
        "num_ranks": lambda: 1, "uid": lambda: b"", "rank": lambda: 0, "filename_pattern": lambda: "*",
        "num_gpus": lambda: 1, "stream_id": lambda: cuda.current_stream().stream_id, "allocator": lambda: None,
        "device_index": lambda: 0, "device_type": lambda: cuda.current_stream().device_type,
    }  # fmt: skip
    return makers[name]()


def use(thing: object) -> None:
    """Call a function or construct a class with whatever it requires."""
    try:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    name = getattr(thing, "__name__", "")
    if name == "_get_generator":  # takes nothing but a torch.device
        thing(torch.device("cuda:0"))  # type: ignore[operator]
        return
    if name == "_lazy_init":  # as programs call it: nameless calls of it are C++'s
        torch.cuda._lazy_init()
        return
    if name in ("broadcast", "scatter") and "devices" in inspect.signature(thing).parameters:  # type: ignore[arg-type]
        thing(example("tensor"), [0])  # type: ignore[operator]
        return
    needed = [
        p.name for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    found = thing(*(example(name) for name in needed))  # type: ignore[operator]
    if isinstance(found, types.GeneratorType):
        list(found)
    elif hasattr(found, "__enter__") and not isinstance(found, (torch.Stream, torch.cuda.Stream)):
        with found:
            pass


def own_code(function: object) -> set[str]:
    """Names of torch._C's CUDA part that a function of torch's own refers to, and that are not there."""
    code = getattr(inspect.unwrap(function), "__code__", None)  # type: ignore[arg-type]
    prefixes = ("_cuda_", "_nccl_", "_CUDA", "_gds_")
    return {n for n in code.co_names if n.startswith(prefixes) and not hasattr(torch._C, n)} if code else set()


def main() -> None:
    active = current()
    assert active is not None
    problems = {}
    for decision in active.ctx.names:
        name, problem = decision.name, None
        thing = resolve(decision.targets[0])[3]
        others = [place for place in decision.targets[1:] if resolve(place)[3] is not thing]
        if others and decision.patch is not None:
            problems[name] = f"copies differ: {others}"
            continue
        if decision.state == _coverage.OWN and isinstance(thing, types.FunctionType) and own_code(thing):
            problems[name] = f"torch's own reaches {sorted(own_code(thing))}"
            continue
        if not callable(thing) or name in INSPECTED_ONLY:
            continue
        if isinstance(thing, type) and issubclass(thing, BaseException) and thing is not torch.cuda.CudaError:
            continue
        try:
            use(thing)
            if decision.state == _coverage.UNSUPPORTED:
                problem = "unsupported, but it raised nothing"
        except NotImplementedError as error:
            text = str(error)
            vendor = active.vendor.title
            if decision.state != _coverage.UNSUPPORTED:
                problem = f"raised {text}"
            elif (
                not text.startswith(f"{name} is not supported on {vendor}: ")
                or len(text) < len(name) + len(vendor) + 30
            ):
                problem = f"does not say the name, the vendor and what to use: {text}"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem is not None:
            problems[name] = problem
    # What needs an argument that makes no sense without a second library was only inspected; all else was used.
    json.dump(
        {
            "names": {place: d.state for d in active.ctx.names for place in d.targets},
            "table": _coverage.table(active.ctx),
            "problems": problems,
            "cuda_only": {n: p for n, p in problems.items() if any(text in p for text in CUDA_ONLY)},
        },
        sys.stdout,
    )


main()
