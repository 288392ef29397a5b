"""Device memory is a budget for each chip: what does not fit is torch's own OutOfMemoryError in torch_npu's words."""

from __future__ import annotations

import json

import pytest

from .conftest import Run

PROGRAM = """
    import json, torch, torch_npu
    from torch import nn

    MB, seen = 1 << 20, {}

    def out_of_memory(name, function):
        try:
            function()
            seen[name] = "no error"
        except torch.OutOfMemoryError as error:
            seen[name] = str(error)
        torch.npu.empty_cache()

    def fill(megabytes):
        held = []
        try:
            while True:
                held.append(torch.empty(megabytes * MB // 4, device="npu"))
        except torch.OutOfMemoryError:
            return held

    out_of_memory("factory", lambda: torch.empty(100 * MB, dtype=torch.uint8, device="npu"))
    x, y = torch.ones(6 * MB, device="npu"), torch.ones(6 * MB, device="npu")
    out_of_memory("operator", lambda: x + y)
    out_of_memory("copy", lambda: torch.ones(8 * MB).npu())
    del y
    a = torch.ones(MB, device="npu", requires_grad=True)
    b = a.exp().sum()
    held = fill(1)
    out_of_memory("backward", b.backward)
    del held, x, a, b
    torch.npu.empty_cache()
    model = nn.Linear(1024, 1024, bias=False).npu()
    model(torch.ones(1, 1024, device="npu")).sum().backward()
    held = fill(1)
    out_of_memory("optimizer", torch.optim.Adam(model.parameters()).step)
    del held
    torch.npu.empty_cache()
    torch.optim.Adam(model.parameters()).step()
    stats = torch.npu.memory_stats()
    seen["afterwards"] = [torch.ones(3, device="npu").sum().item(), torch.npu.max_memory_allocated() <= 64 * MB,
                          stats["num_ooms"] >= 5, torch.npu.memory_allocated() // MB]
    print(json.dumps(seen))
"""


@pytest.mark.parametrize("configuration", ["", "expandable_segments:True"])
def test_out_of_memory_is_raised_and_the_device_is_usable_afterwards(run: Run, configuration: str) -> None:
    variables = {"PYTORCH_NPU_ALLOC_CONF": configuration} if configuration else {}
    seen = json.loads(run(PROGRAM, FLAGOS_SHIM_REHEARSE_MEMORY_MB="64", **variables).stdout.splitlines()[-1])
    assert seen.pop("afterwards") == [3.0, True, True, 8]
    assert set(seen) == {"factory", "operator", "copy", "backward", "optimizer"}
    for name, text in seen.items():
        assert text.startswith("NPU out of memory. Tried to allocate "), (name, text)
        assert "64.00 MiB total capacity" in text


def test_statistics_count_what_the_allocator_holds(run: Run) -> None:
    code = """
        import json, torch, torch_npu
        MB = 1 << 20
        x = torch.empty(30 * MB, dtype=torch.uint8, device="npu")
        seen = [torch.npu.memory_allocated() // MB, torch.npu.memory_reserved() // MB]
        del x
        seen += [torch.npu.memory_allocated(), torch.npu.max_memory_allocated() // MB, torch.npu.mem_get_info()[0] // MB]
        torch.npu.empty_cache()
        seen += [torch.npu.memory_reserved(), torch.npu.mem_get_info()[0] // MB]
        print(json.dumps(seen))
    """
    out = run(code, FLAGOS_SHIM_REHEARSE_MEMORY_MB="128").stdout
    assert json.loads(out.splitlines()[-1]) == [30, 32, 0, 30, 96, 0, 128]
