"""``FLAGOS_<VENDOR>_POOL_SIZE``: the allocator's own statistics show that it is warm, and on which card."""

from __future__ import annotations

import pytest

ACCELERATORS = pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])
SIZE = 100_000_000

# Each way a program may begin, in a child of its own, since a device starts once a process.
WARM = """
import os, sys
import torch
size = int(sys.argv[1])
first = {
    "tensor": lambda: torch.ones(1, device="cuda"), "tensor on 1": lambda: torch.ones(1).to(torch.device("cuda", 0)),
    "init": torch.cuda.init, "set_device": lambda: (torch.cuda.set_device(1), torch.ones(1, device="cuda")),
    "device": lambda: torch.cuda.device(1).__enter__(), "model": lambda: torch.nn.Linear(2, 2).cuda(),
}
assert torch.cuda.is_available() and torch.cuda.device_count() == 2
torch.cuda.manual_seed_all(3)
torch.cuda.memory_stats()
assert not torch.cuda.is_initialized() and torch.cuda.memory_reserved() == 0, "asking has started the device"
for name, begin in first.items():
    child = os.fork()
    if child == 0:
        try:
            begin()
            here = 1 if name in ("set_device", "device") else 0
            kept = [torch.cuda.memory_allocated(device) for device in (0, 1)]
            assert torch.cuda.memory_reserved(here) >= size > 50_000_000, (name, torch.cuda.memory_reserved(here))
            assert torch.cuda.memory_reserved(1 - here) == 0 and max(kept) < 4096, (name, kept)
            assert torch.cuda.max_memory_allocated(here) < 4096, name
            reserved = torch.cuda.memory_reserved(here)
            x = torch.empty(size - (4 << 20), dtype=torch.uint8, device=f"cuda:{here}")
            assert torch.cuda.memory_reserved(here) == reserved, "the tensor does not come out of the pool"
            del x
            torch.cuda.empty_cache()
            assert torch.cuda.memory_reserved(here) < size
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""

TOO_MUCH = """
import torch
x = torch.ones(4, device="cuda")
assert x.sum().item() == 4 and torch.cuda.memory_allocated() == 512 and torch.cuda.memory_reserved() < 8 << 20
torch.ones(4, device="cuda:1")
"""

UNDONE = """
import torch, flagos_shim
native = torch.get_device_module("flagos")
kind = str(torch.device("cuda").type)
assert flagos_shim.deactivate() == []
torch.ones(1, device=kind)
assert getattr(torch, kind).memory_reserved() < 8 << 20, "dormant"
flagos_shim.activate()
assert torch.cuda.memory_reserved() >= 100_000_000, "at once, since the device is in use"
"""


@ACCELERATORS
def test_the_first_use_warms_the_card_that_is_used(backend, run_isolated):
    run_isolated(WARM, backend=backend, args=[str(SIZE)], env={f"FLAGOS_{backend.upper()}_POOL_SIZE": str(SIZE)}).ok()


@ACCELERATORS
def test_more_than_there_is_is_one_warning(backend, run_isolated):
    run = run_isolated(TOO_MUCH, backend=backend, env={f"FLAGOS_{backend.upper()}_POOL_SIZE": str(1 << 45)}).ok()
    line = f"FLAGOS_{backend.upper()}_POOL_SIZE={1 << 45}: "
    assert run.stderr.count("POOL_SIZE") == run.stderr.count(line) == 1, run.stderr
    assert "did not give that much, so nothing is reserved: CUDA out of memory." in run.stderr


@pytest.mark.parametrize("backend", ["mlu", "musa"])
def test_undone_before_the_first_use(backend, run_isolated):
    run_isolated(UNDONE, backend=backend, env={f"FLAGOS_{backend.upper()}_POOL_SIZE": str(SIZE)}).ok()


def test_what_is_no_number_of_bytes_is_said_at_activation(run_isolated):
    value = "1G"
    run = run_isolated("import torch", backend="cpu", env={"FLAGOS_CPU_POOL_SIZE": value})
    assert run.returncode == 1
    assert run.last_error == (
        f"flagos_shim.failures.FlagosShimError: FLAGOS_CPU_POOL_SIZE={value!r} cannot be read: expected a number of "
        "bytes, e.g. 1073741824. Correct it or unset it."
    )


def test_other_vendors_variables_and_the_cpu(run_isolated):
    code = "import torch; print(torch.ones(2, device='cuda').sum().item())"
    run = run_isolated(code, backend="cpu", env={"FLAGOS_MLU_POOL_SIZE": "many", "FLAGOS_CPU_POOL_SIZE": " "}).ok()
    assert run.stdout == "2.0\n" and run.stderr == ""
    run = run_isolated(code, backend="cpu", env={"FLAGOS_CPU_POOL_SIZE": "4096"}).ok()
    assert run.stderr == "FLAGOS_CPU_POOL_SIZE=4096 has no effect: CPU has no device memory.\n"
