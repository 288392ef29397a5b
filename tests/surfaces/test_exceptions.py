"""Device errors of the real plugin in torch's own terms, wherever they are raised."""

from __future__ import annotations

import pytest

from flagos_shim import registry

OUT_OF_MEMORY = """
import gc, torch, traceback
big = dict(dtype=torch.float32, device="cuda")
model = torch.nn.Linear(1024, 1024).cuda()          # 4 MiB of the 64
optimizer = torch.optim.Adam(model.parameters())


def factory():
    return torch.empty(100 << 20, dtype=torch.uint8, device="cuda")


def operator():
    x = torch.ones(20 << 18, **big)                  # 20 MiB
    return [x * 2 for _ in range(10)]


def forward():
    x = torch.ones(8 << 10, 1024, **big)             # 32 MiB, and as much for the result
    return model(x)


def backward():
    x = torch.ones(11 << 18, requires_grad=True, **big)
    y = x
    for _ in range(3):
        y = y * 1.5
    return torch.autograd.grad(y.expand(2, -1).sum(), x, create_graph=True), y.square().sum().backward()


def move():
    return torch.ones(100 << 20, dtype=torch.uint8).cuda()


def step():
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(9 << 18, **big)) for _ in range(3)])
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad = torch.ones_like(parameter) if parameter is not None else None
    optimizer.step()


for call in (factory, operator, forward, backward, move, step):
    try:
        call()
    except torch.cuda.OutOfMemoryError as error:
        caught = error
    else:
        raise AssertionError(f"{call.__name__}: no error")
    text = str(caught)
    assert text.startswith("CUDA out of memory. Tried to allocate ") and "NPU out of memory" in text, text
    assert len(caught.args) == 1 and isinstance(caught, RuntimeError) and type(caught) is torch.OutOfMemoryError
    assert caught.vendor == "ascend" and caught.category == "resource" and caught.hint
    assert str(caught.__cause__).startswith("NPU out of memory"), repr(caught.__cause__)
    assert call.__name__ in "".join(traceback.format_exception(type(caught), caught, caught.__traceback__))
    caught = error = None
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.ones(4, device="cuda").sum().item() == 4, "the device works afterwards"
"""

NOT_OURS = """
import pickle, torch


def caught(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("no error")


class Mine(RuntimeError):
    def __init__(self, text, extra):
        super().__init__(text)
        self.extra = extra


vendor_text = "NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 1 GiB total capacity)"


def wrapper():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        raise RuntimeError(f"loading shard 3 failed: {error}") from error


def quoting():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        raise RuntimeError(str(error) + " while loading") from None


def throw(error):
    raise error


a = torch.ones(2, 3, device="cuda")
for call, kind in (
    (wrapper, RuntimeError), (quoting, RuntimeError), (lambda: throw(Mine(vendor_text, 1)), Mine),
    (lambda: throw(ValueError(vendor_text)), ValueError), (lambda: a @ a, RuntimeError), (lambda: a.view(4), RuntimeError),
    (lambda: throw(RuntimeError("mine: NPU out of memory budget")), RuntimeError), (lambda: a.sum(dim=9), IndexError),
    (lambda: throw(RuntimeError(vendor_text, 2)), RuntimeError), (lambda: throw(NotImplementedError()), NotImplementedError),
    (lambda: torch.ones(1 << 50), RuntimeError),     # host memory
):
    error = caught(call)
    assert type(error) is kind and not hasattr(error, "vendor_code"), (kind, error)
assert "could not" not in str(caught(wrapper)) and caught(wrapper).__cause__.vendor == "ascend"
assert RuntimeError("a", 2).args == ("a", 2) and RuntimeError().args == () and repr(RuntimeError("x")) == "RuntimeError('x')"
assert Mine("a", 1).args == ("a",) and Mine("a", 1).extra == 1
raised = caught(lambda: throw(RuntimeError(vendor_text)))    # older plugins raise it as a plain RuntimeError
assert type(raised) is torch.OutOfMemoryError and raised.args[0].endswith(vendor_text)
back = pickle.loads(pickle.dumps(raised))
assert (type(back), back.args, back.vendor, back.hint) == (type(raised), raised.args, "ascend", raised.hint)
import flagos_shim
late = type("Late", (RuntimeError,), {})
flagos_shim.deactivate()
plain = RuntimeError(vendor_text)
assert type(plain) is RuntimeError and plain.args == (vendor_text,) and late("x").args == ("x",)
assert "__init__" not in vars(torch.OutOfMemoryError) and str(torch.OutOfMemoryError(vendor_text)) == vendor_text
"""

# function to fail, the call that meets it, class, beginning of the text
CODES = [
    ("aclrtSynchronizeDeviceWithTimeout:507035", "torch.cuda.synchronize()", "AcceleratorError", "execution"),
    ("aclrtSynchronizeDeviceWithTimeout:507015", "torch.cuda.synchronize()", "AcceleratorError", "execution"),
    ("aclrtSynchronizeDeviceWithTimeout:107002", "torch.cuda.synchronize()", "AcceleratorError", "parameter"),
    ("aclrtSynchronizeDeviceWithTimeout:207001", "torch.cuda.synchronize()", "OutOfMemoryError", "resource"),
    ("aclrtSynchronizeDeviceWithTimeout:107001", "torch.cuda.synchronize()", "AcceleratorError", "parameter"),
    ("exp:561103", "torch.ones(2, device='cuda').exp()", "NotImplementedError", "parameter"),
]


@pytest.mark.parametrize(("failure", "call", "kind", "category"), CODES, ids=[c[0] for c in CODES])
def test_injected_codes(failure, call, kind, category, run_isolated):
    # CANN's own line says EL0004 where memory is short, which tells more than the number.
    code = "EL0004" if kind == "OutOfMemoryError" else failure.partition(":")[2]
    found = run_isolated(
        f"""
import json, torch
torch.ones(1, device="cuda")
try:
    {call}
except RuntimeError as error:
    print(json.dumps([type(error).__name__, str(error), error.vendor, error.vendor_code, error.category, error.hint,
                      type(error.__cause__).__name__, str(error.__cause__)]))
""",
        env={"FLAGOS_SHIM_REHEARSE_FAIL": failure},
    ).json
    assert found[0] == kind and found[2:5] == ["ascend", code, category], found
    assert code in found[1].partition(". ")[0] or kind == "OutOfMemoryError", found[1]
    assert found[5] and found[6] == "RuntimeError" and found[1].endswith(found[7]), found


def on(backend, code):
    """A program for Ascend with the words of another vendor: the plugins word this alike but for the device's name."""
    return code.replace("NPU", registry.resolve(backend).device_type.upper()).replace('"ascend"', f'"{backend}"')


@pytest.mark.parametrize(("backend", "old"), [("ascend", 0), ("mlu", 0), ("mlu", 1), ("musa", 0), ("musa", 1)])
def test_out_of_memory_from_anywhere(backend, old, run_isolated):
    env = {"FLAGOS_SHIM_REHEARSE_MEMORY_MB": "64", "PRETEND_MEMORY_MB": "64", "PRETEND_OLD_OOM": str(old)}
    run_isolated(on(backend, OUT_OF_MEMORY), backend=backend, env=env).ok()


@pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])
def test_what_is_not_the_devices_stays_as_it_is(backend, run_isolated):
    run_isolated(on(backend, NOT_OURS), backend=backend).ok()


# The pretend device's failures in the vendors' words: call, class, beginning of the text, vendor_code, category.
BAD_ORDINAL = "getattr(torch, '{0}').set_device(7)"
PRETEND_FAILURES = {
    "mlu": {
        "synchronize": "CNRT error: failed to call the driver-api function.",
        "mm": "CNNL error: CNNL_STATUS_BAD_PARAM",
        "bmm": "CNNL error: CNNL_STATUS_EXECUTION_FAILED",
        "event_record": "CNRT error: out of memory.",
        "exp": "CNRT error: a wording that nobody has listed.",
    },
    "musa": {
        "synchronize": "MUSA error: unspecified launch failure",
        "event_record": "MUSA error: out of memory",
    },
}
PRETEND_ERRORS = {
    "mlu": [
        ("torch.cuda.synchronize()", "AcceleratorError", "Driver failed (cnrtErrorCndrvFuncCall, CNRT error: failed",
         "CNRT error: failed to call the driver-api function", "fatal"),
        ("x.mm(x)", "RuntimeError", "Invalid operator argument (CNNL_STATUS_BAD_PARAM). CNNL error: ",
         "CNNL_STATUS_BAD_PARAM", "parameter"),
        ("x[None].bmm(x[None])", "AcceleratorError", "Kernel failed (CNNL_STATUS_EXECUTION_FAILED). CNNL error: ",
         "CNNL_STATUS_EXECUTION_FAILED", "execution"),
        ("torch.cuda.Event().record()", "OutOfMemoryError", "CUDA out of memory. Tried to allocate ",
         "CNRT error: out of memory", "resource"),
        ("x.exp()", "AcceleratorError", "Device runtime error (CNRT error: a wording",
         "CNRT error: a wording that nobody has listed", "execution"),
        (BAD_ORDINAL.format("mlu"), "AcceleratorError", "Invalid argument (cnrtErrorArgsInvalid, CNRT error: ",
         "CNRT error: invalid argument", "parameter"),
        ("x.softmax(0)", "NotImplementedError", "Operator not supported. The operator 'aten::_softmax' is not", "",
         "parameter"),
    ],
    "musa": [
        ("torch.cuda.synchronize()", "AcceleratorError", "Device runtime error (MUSA error: unspecified",
         "MUSA error: unspecified launch failure", "execution"),
        ("torch.cuda.Event().record()", "OutOfMemoryError", "CUDA out of memory. Tried to allocate ",
         "MUSA error: out of memory", "resource"),
        (BAD_ORDINAL.format("musa"), "AcceleratorError", "Invalid device ordinal (MUSA error: invalid device ordinal)",
         "MUSA error: invalid device ordinal", "parameter"),
        ("x.softmax(0)", "NotImplementedError", "Operator not supported. Could not run 'aten::_softmax'", "",
         "parameter"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("backend", PRETEND_ERRORS)
def test_errors_in_the_words_of_other_vendors(backend, run_isolated):
    failures = PRETEND_FAILURES[backend]
    found = run_isolated(
        f"""
import json, torch
x, found = torch.ones(2, 2, device="cuda"), []
for call in {[call for call, *_ in PRETEND_ERRORS[backend]]!r}:
    try:
        eval(call)
    except RuntimeError as error:
        found.append([type(error).__name__, str(error), error.vendor_code, error.category, error.vendor, error.hint,
                      type(error.__cause__).__name__, str(error.__cause__)])
    else:
        found.append([call])
print(json.dumps(found))
""",
        backend=backend,
        env={
            "PRETEND_FAIL": ";".join(f"{name}={text}" for name, text in failures.items()),
            "PRETEND_UNSUPPORTED": "_softmax",
            "FLAGOS_SHIM_STRICT": "1",
        },
    ).json
    for (call, kind, begins, code, category), raised in zip(PRETEND_ERRORS[backend], found):
        assert len(raised) == 8, f"{call}: no error"
        assert raised[0] == kind and raised[1].startswith(begins) and raised[2:5] == [code, category, backend], raised
        assert raised[5] and raised[6] == "RuntimeError" and raised[7] in raised[1], raised
        assert raised[7] in failures.values() or "_softmax" in raised[7] or "set_device" in call, raised


def test_an_uncaught_error_is_shown_translated(run_isolated):
    run = run_isolated("import torch\ntorch.empty(1 << 50, dtype=torch.uint8, device='cuda')\n")
    assert run.returncode == 1
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " in run.stderr
    assert "Hint: " in run.stderr


def test_from_threads_and_loader_workers(run_isolated, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text("""
import threading, torch
from torch.utils.data import DataLoader, Dataset


class Broken(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, i):
        raise RuntimeError("NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 1 GiB total capacity)")


if __name__ == "__main__":
    seen = []
    threading.excepthook = lambda args: seen.append(args.exc_value)
    thread = threading.Thread(target=lambda: torch.empty(1 << 50, dtype=torch.uint8, device="cuda"))
    thread.start(), thread.join()
    assert type(seen[0]) is torch.OutOfMemoryError and seen[0].vendor == "ascend"
    try:
        next(iter(DataLoader(Broken(), num_workers=1)))
    except torch.cuda.OutOfMemoryError as error:
        assert "CUDA out of memory" in str(error) and "DataLoader worker process 0" in str(error), error
    else:
        raise AssertionError
    print("OK")
""")
    assert run_isolated(script).ok().stdout.split()[-1] == "OK"


def test_operators_the_plugin_lacks(run_isolated):
    strict = run_isolated(
        """
import json, torch
x = torch.ones(3, device="cuda")
try:
    torch.igamma(x, x)
except NotImplementedError as error:
    print(json.dumps([error.vendor, error.category, str(error)]))
""",
        env={"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"},
    ).json
    assert strict[0] == "ascend" and "aten::igamma" in strict[2]
