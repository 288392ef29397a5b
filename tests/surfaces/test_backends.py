"""torch.backends: every switch of CUDA's libraries, found at run time, can be read, set and set back."""

from __future__ import annotations

EVERY_SWITCH = """
import importlib, inspect, pkgutil, types, warnings
import torch
warnings.simplefilter("ignore")
# Those of CUDA, and what stands beside them in torch.backends itself; the others are of other devices.
names = ["torch.backends", *(f"torch.backends.{n}" for n in ("cuda", "cudnn", "cusparselt", "miopen"))]
q = torch.ones(1, 1, 2, 4, device="cuda")
values = {"tensor": q, "enabled": True}
if hasattr(torch.backends.cuda, "SDPAParams"):
    values["params"] = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, *(False,) * (torch.__version__ > "2.5"))
used, failures = [], []


def attempt(what, function, *arguments):
    used.append(what)
    try:
        return function(*arguments)
    except Exception as error:
        failures.append(f"{what}: {type(error).__name__}: {error}")


def switches(what, owner):
    '''Reads and sets back every attribute that an object of torch.backends computes.'''
    described = {n for kind in type(owner).__mro__ for n, v in vars(kind).items() if hasattr(v, "__get__")}
    for name in sorted(described):
        if name.startswith("__") or callable(vars(type(owner)).get(name)):
            continue
        value = attempt(f"{what}.{name}", getattr, owner, name)
        if hasattr(vars(type(owner))[name], "__set__") and name not in ("size", "conv", "rnn"):
            attempt(f"{what}.{name} = {value}", setattr, owner, name, value)


for module_name in names:
    module = importlib.import_module(module_name)
    inner = getattr(module, "m", module)  # behind the objects that torch puts in place of some modules
    if not isinstance(inner, types.ModuleType):
        inner = module
    if module is not inner:
        switches(module_name, module)
    for name, value in list(vars(inner).items()):
        what = f"{module_name}.{name}"
        if name.startswith("_") or isinstance(value, (type, types.ModuleType)):
            continue
        if inspect.isfunction(value) and value.__module__.startswith("torch.backends"):
            if name in ("disable_global_flags", "contextmanager"):  # cannot be taken back
                continue
            needed = [
                p.name for p in inspect.signature(value).parameters.values()
                if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            found = attempt(what, value, *(values[n] for n in needed))
            if hasattr(found, "__enter__"):
                attempt(f"with {what}", lambda: found.__enter__() or found.__exit__(None, None, None))
        elif type(value).__module__.startswith("torch.backends"):
            switches(what, value)
            if hasattr(type(value), "__getitem__"):  # the plans of one device
                switches(f"{what}[0]", value[0])
assert not failures, "\\n".join(failures)
assert len(used) > 40 and "torch.backends.cuda.cufft_plan_cache[0].max_size" in used, used
"""

REMEMBERED = """
import torch
m, C = torch.backends.cuda, torch._C
assert m.preferred_linalg_library("magma") == m.preferred_linalg_library() == C._LinalgBackend.Magma
assert m.preferred_linalg_library("cusolver") == m.preferred_linalg_library() == C._LinalgBackend.Cusolver
assert m.preferred_linalg_library("default") == m.preferred_linalg_library(C._LinalgBackend.Default)
assert torch.linalg.inv(torch.eye(2, device="cuda")).tolist() == [[1, 0], [0, 1]]
if hasattr(m, "preferred_blas_library"):
    assert m.preferred_blas_library("cublaslt") == m.preferred_blas_library() == C._BlasBackend.Cublaslt
if hasattr(m, "preferred_rocm_fa_library"):
    assert m.preferred_rocm_fa_library("aotriton") == m.preferred_rocm_fa_library()
for call in (lambda: m.preferred_linalg_library("lapack"), lambda: m.preferred_linalg_library(3)):
    try:
        call()
    except RuntimeError as error:
        assert str(error).startswith("Unknown input value"), error
    else:
        raise AssertionError("accepted")

plans = m.cufft_plan_cache
assert plans.size == 0 and plans.max_size == 4096
plans.max_size = 4
assert plans.max_size == plans[0].max_size == plans["cuda:0"].max_size == 4
if torch.cuda.device_count() > 1:
    plans[1].max_size = 9
    assert (plans[0].max_size, plans[1].max_size) == (4, 9) and plans["cuda:1"].size == 0
assert plans.clear() is None and plans[0].clear() is None
for bad in (-1, 1.5, None):
    try:
        plans.max_size = bad
    except RuntimeError as error:
        assert "0 or more" in str(error) and repr(bad) in str(error), error
    else:
        raise AssertionError(bad)
try:
    plans[0].size = 3
except RuntimeError as error:
    assert "read-only" in str(error)
else:
    raise AssertionError("size was set")
try:
    plans[9]
except (RuntimeError, ValueError) as error:
    assert "device" in str(error), error
else:
    raise AssertionError("a tenth device")
assert torch.fft.fft(torch.ones(4, device="cuda")).real.tolist() == [4, 0, 0, 0]

if hasattr(m, "cublas_workspace_size"):
    assert m.cublas_workspace_size() == m.cublaslt_workspace_size() == 0
    assert m.cublas_workspace_size(1 << 20) == m.cublas_workspace_size() == 1 << 20
    assert m.blas_workspace_size(backend="cublas") == 1 << 20
    assert m.cublaslt_workspace_size() == 0 == m.blas_workspace_size(backend="cublaslt")
    try:
        m.cublas_workspace_size(-1)
    except RuntimeError as error:
        assert "0 or more" in str(error)
    else:
        raise AssertionError("-1 bytes")
"""


def test_every_switch_can_be_read_and_set(backend, run_isolated):
    run_isolated(EVERY_SWITCH, backend=backend).ok()


def test_what_was_chosen_is_remembered(backend, run_isolated):
    run_isolated(REMEMBERED, backend=backend).ok()
