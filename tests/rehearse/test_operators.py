"""Operators on the rehearsed NPU give what they give on the CPU, forward and backward."""

from __future__ import annotations

import json

from .conftest import Run


def test_operators_agree_with_the_cpu(run: Run) -> None:
    report = json.loads(run("operators.py").stdout.splitlines()[-1])
    assert report["different"] == {}
    assert report["done"] > 250


def test_an_operator_that_torch_npu_lacks_takes_its_own_fallback(run: Run) -> None:
    code = """
        import torch, torch_npu
        x = torch.ones(3, device="npu")
        print(torch.hypot(x, x).device)
    """
    done = run(code)
    assert done.stdout.strip() == "npu:0"
    assert "CAUTION: The operator 'aten::hypot.out' is not currently supported on the NPU backend" in done.stderr
    done = run(code, status=1, TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    assert "The operator 'aten::hypot.out' would execute its main computation on CPU" in done.stderr


def test_unsupported_operators_fail_as_on_a_cann_without_them(run: Run) -> None:
    code = """
        import torch, torch_npu
        x = torch.ones(3, device="npu")
        print((x + 1).sum().item())
        for operation in (lambda: torch.relu(x), lambda: torch.softmax(x, 0)):
            try:
                operation()
            except RuntimeError as error:
                print("error code is 500002" in str(error) and "of Ops kernel is unsupported" in str(error))
    """
    out = run(code, FLAGOS_SHIM_REHEARSE_UNSUPPORTED="relu, _softmax").stdout
    assert out.split() == ["6.0", "True", "True"]


def test_tensors_on_two_devices_do_not_mix(run: Run) -> None:
    code = """
        import torch, torch_npu
        x = torch.ones(3, device="npu")
        for other in (torch.ones(3), torch.ones(3, device="npu:1")):
            for operation in (torch.add, torch.mul, lambda a, b: torch.cat([a, b]), lambda a, b: a.add_(b)):
                try:
                    operation(x, other)
                except RuntimeError as error:
                    print("at least two devices" in str(error))
        print((x + torch.tensor(2.0)).tolist())
    """
    assert run(code).stdout.split("\n")[:9] == ["True"] * 8 + ["[3.0, 3.0, 3.0]"]
