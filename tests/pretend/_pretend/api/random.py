"""Seeds and states of the device's generators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from . import _lazy
from ._device import current_device, device_count
from ._utils import _get_device_index
from ._vendor import VENDOR, C


def _generator(device: Any) -> torch.Generator:
    return C.default_generator(_get_device_index(device, optional=True))


def get_rng_state(device: Any = VENDOR.name) -> torch.Tensor:
    """The state of one device's generator, 16 bytes."""
    _lazy._lazy_init()
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: torch.Tensor, device: Any = VENDOR.name) -> None:
    """Puts a state back, now or when the device starts."""
    copy = new_state.clone(memory_format=torch.contiguous_format)
    index = _get_device_index(device, optional=True)
    _lazy._lazy_call(lambda: C.default_generator(index).set_state(copy))


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Puts the states of all devices back."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator, now or when the device starts."""
    seed = int(seed)
    _lazy._lazy_call(lambda: C.default_generator(C.current_device()).manual_seed(seed), seed=True)


def manual_seed_all(seed: int) -> None:
    """Seeds all devices' generators, now or when the device starts."""
    seed = int(seed)

    def seed_each() -> None:
        for index in range(device_count()):
            C.default_generator(index).manual_seed(seed)

    _lazy._lazy_call(seed_each, seed_all=True)


def seed() -> None:
    """Gives the current device's generator a random seed."""
    _lazy._lazy_call(lambda: C.default_generator(C.current_device()).seed())


def seed_all() -> None:
    """Gives all devices' generators one random seed."""

    def seed_each() -> None:
        chosen = C.default_generator(0).seed()
        for index in range(1, device_count()):
            C.default_generator(index).manual_seed(chosen)

    _lazy._lazy_call(seed_each)


def initial_seed() -> int:
    """The current device's seed."""
    _lazy._lazy_init()
    return C.default_generator(current_device()).initial_seed()
