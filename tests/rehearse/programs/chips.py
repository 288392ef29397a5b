"""Starts the device as each chip that is named, in a fork of this process, which has imported the plugin once."""

import os
import sys

import torch
import torch_npu  # noqa: F401


def start(chip):
    os.environ["FLAGOS_SHIM_REHEARSE_CHIP"] = chip
    product = torch.ones(2, 3, device="npu") @ torch.full((3, 2), 2.0, device="npu")
    assert product.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    print(torch.npu.get_device_name(0), flush=True)


for chip in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            start(chip)
        except BaseException as error:
            print(f"{chip}: {type(error).__name__}: {error}", flush=True)
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
