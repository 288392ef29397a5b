"""Keeps one notice of torch_npu off the terminal, which has no cause in a rehearsal and no remedy.

At its first allocation torch_npu 2.13 says, on every chip before the Ascend 950 and whatever CANN is installed, that
"the current CANN and Soc versions require processing for 32 padding size". It is written by C++ straight to file
descriptor 2, once a process. So the first allocation is made here, when the device is initialised, and what was
written meanwhile is passed on without that line; the allocator's statistics start at nothing afterwards.
"""

from __future__ import annotations

import os
import sys
import tempfile

import torch
import torch_npu

from .host_memory import runtime

_NOTICE = b"require processing for 32 padding size"


def keep_off() -> None:
    """Arrange for it; called after torch_npu's import, before the device is initialised."""
    torch.npu._lazy_call(_first_allocation)


def _first_allocation() -> None:
    library = runtime()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as written:
        terminal = os.dup(2)
        os.dup2(written.fileno(), 2)
        library.rehearse_suspend_failures(1)  # this is not a call of the program's
        try:
            torch.ops.aten.empty_strided((1,), (1,), device=torch.device("npu", torch.npu.current_device()))
            torch_npu._C._npu_emptyCache()  # torch.npu.empty_cache() does nothing before the end of initialisation
        finally:
            library.rehearse_suspend_failures(0)
            os.dup2(terminal, 2)
            os.close(terminal)
        written.seek(0)
        rest = b"".join(line for line in written if _NOTICE not in line)
    if rest:
        os.write(2, rest)
    torch.npu.reset_peak_memory_stats()
    torch.npu.reset_accumulated_memory_stats()
