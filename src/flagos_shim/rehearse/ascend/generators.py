"""Random numbers: an NPU generator keeps seed and position, a CPU generator seeded from both draws."""

from __future__ import annotations

from collections.abc import Callable

import torch

_STEP = 4  # as a CUDA or NPU generator moves by whole groups of four


def check(generator: torch.Generator | None, written: torch.Tensor | None) -> None:
    """See that a generator that a program gave is one for the device of ``written`` (None: the NPU).

    Raises:
        RuntimeError: it is not; as torch_npu and torch raise it.
    """
    if generator is None:
        return
    wanted = "npu" if written is None else written.device.type
    if generator.device.type != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{generator.device.type}'")


def host_generator(
    generator: torch.Generator | None, device: torch.device
) -> tuple[torch.Generator, Callable[[], None]]:
    """Return the CPU generator that draws for ``generator`` (None: the default one of ``device``).

    The second value moves the NPU generator on and is to be called after drawing.
    """
    chosen = generator if generator is not None else torch.npu.default_generators[device.index]
    state = chosen.get_state()
    seed, offset = state.view(torch.int64).tolist()[:2]
    drawn = torch.Generator().manual_seed((seed * 1_000_003 + offset) % (1 << 63))

    def advance() -> None:
        state.view(torch.int64)[1] = offset + _STEP
        chosen.set_state(state)

    return drawn, advance
