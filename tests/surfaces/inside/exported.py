# ruff: noqa: B018, E731
"""fx, export, func, modes: graphs and their text name torch's own functions, files say cuda."""

import contextlib
import copy
import functools
import io
import json
import pickle
import pydoc
import warnings
import zipfile

import torch
from _compilers import FOLDER, run, same, without_the_shim
from torch import nn

import flagos_shim

warnings.simplefilter("ignore")
V = str(torch.zeros(1, device="cuda").device.type)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        x = x.to("cuda")
        d = torch.device("cuda")
        y = self.l(x) + torch.zeros(2, device="cuda") + torch.arange(2, device=d) + self.b
        if x.is_cuda:
            y = y * 2
        if x.device.type == "cuda":
            y = y * 3
        return y + torch.zeros(x.shape[0], 2, device=x.device) + x.cuda()


LOADS = """
program = torch.export.load(sys.argv[1])
text = program.graph_module.code
assert "'npu" not in text and "'cuda" not in text, text
assert all(p.device.type == "cpu" for p in program.state_dict.values())
"""


def check_export():
    torch.manual_seed(0)
    n = Net().cuda()
    x = torch.ones(3, 2, device="cuda")
    for strict in (False, True):
        ep = torch.export.export(n, (x,), strict=strict)
        same(ep.module()(x), n(x))
        torch.export.save(ep, FOLDER / "e.pt2")
        back = torch.export.load(FOLDER / "e.pt2")
        same(back.module()(x), n(x))
        ep = torch.export.export(n, (x,), dynamic_shapes={"x": {0: torch.export.Dim("b")}}, strict=strict)
        same(ep.module()(torch.ones(5, 2, device="cuda")), n(torch.ones(5, 2, device="cuda")))
        b = io.BytesIO()
        torch.export.save(ep, b)
        b.seek(0)
        same(torch.export.load(b).module()(x), n(x))
        dec = ep.run_decompositions()
        same(dec.module()(x), n(x))


def check_export_plain():
    n = Net().cuda()
    x = torch.ones(3, 2, device="cuda")
    torch.export.save(torch.export.export(n, (x,)), FOLDER / "e.pt2")
    z = zipfile.ZipFile(FOLDER / "e.pt2")
    blob = b"".join(z.read(k) for k in z.namelist())
    assert b'"npu"' not in blob and b"npu:0" not in blob
    if V == "npu":
        assert b'"cuda"' in blob
    same(torch.export.load(FOLDER / "e.pt2").module()(x), n(x))
    c = torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    torch.export.save(c, FOLDER / "ec.pt2")
    without_the_shim(LOADS, FOLDER / "ec.pt2")


def check_export_to_cpu():
    from torch.export.passes import move_to_device_pass

    n = Net().cuda()
    x = torch.ones(3, 2, device="cuda")
    ep = torch.export.export(n, (x,))
    c = move_to_device_pass(ep, "cpu")
    torch.export.save(c, FOLDER / "em.pt2")
    torch.export.load(FOLDER / "em.pt2")
    without_the_shim(LOADS, FOLDER / "em.pt2")


def check_func():
    from torch.func import functional_call, grad, jacrev, vmap

    f = lambda x: (x.to("cuda") * torch.ones(2, device="cuda")).sum() + (x.cuda() ** 2).sum()
    x = torch.ones(3, 2, device="cuda")
    assert vmap(f)(x).tolist() == [4, 4, 4]
    assert grad(f)(x[0]).tolist() == [3, 3]
    assert vmap(grad(f))(x).tolist() == [[3, 3]] * 3
    assert vmap(lambda y: torch.zeros_like(y, device="cuda") + y.new_ones(2, device="cuda"))(x).shape == (3, 2)
    assert jacrev(lambda y: y.cuda() * 2)(x[0]).tolist() == [[2, 0], [0, 2]]
    n = Net().cuda()
    same(functional_call(n, dict(n.named_parameters()), (x,)), n(x))


def check_make_fx():
    from torch.fx.experimental.proxy_tensor import make_fx as mf

    f = lambda x: x.to("cuda") + torch.zeros(2, device="cuda") + x.cuda()
    for mode in ("real", "fake", "symbolic"):
        g = mf(f, tracing_mode=mode)(torch.ones(2))
        same(g(torch.ones(2)), f(torch.ones(2)))
    if V == "npu":
        assert '"npu' not in g.code and "'npu" not in g.code, g.code
    g = mf(f, pre_dispatch=True)(torch.ones(2))
    same(g(torch.ones(2)), f(torch.ones(2)))


def check_modes():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class L(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func, args[1:] if args and isinstance(args[0], torch.Tensor) else args, dict(kwargs or {})))
            return func(*args, **(kwargs or {}))

    with L():
        torch.zeros(1, device="cuda")
        x = torch.ones(1)
        x.to("cuda")
        x.to(device="cuda")
        x.cuda()
        torch.zeros_like(x, device="cuda")
        x.new_zeros(2, device="cuda")
        x.is_cuda
        x.device
        x.cuda(0)
        torch.arange(0, 3, device="cuda:0")
    F = [s[0] for s in seen]
    for q in (torch.zeros, torch.Tensor.to, torch.Tensor.cuda, torch.zeros_like, torch.Tensor.new_zeros, torch.arange):
        assert q in F, (q, F)
    assert (torch.zeros, (1,), {"device": "cuda"}) in seen, seen
    assert (
        (torch.Tensor.to, ("cuda",), {}) in seen
        and (torch.Tensor.to, (), {"device": "cuda"}) in seen
        and (torch.Tensor.cuda, (), {}) in seen
        and (torch.Tensor.cuda, (0,), {}) in seen
    ), seen
    assert torch.Tensor.is_cuda.__get__ in F, F
    ops = []

    class D(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ops.append((func, dict(kwargs or {})))
            return func(*args, **(kwargs or {}))

    with D():
        torch.zeros(1, device="cuda")
        torch.ones(1).to("cuda")
    names = [str(o[0]) for o in ops]
    assert ("aten.zeros.default" in names and "aten._to_copy.default" in names) or V == "cpu", names
    with torch.device("cuda"):
        assert (
            torch.zeros(1).device == torch.zeros(1, device="cuda").device
            and torch.zeros(1, device="cpu").device.type == "cpu"
        )


def check_subclass():
    calls = []

    class U(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append((func, kwargs))
            return super().__torch_function__(func, types, args, kwargs or {})

    u = torch.ones(2).as_subclass(U)
    r = u.cuda()
    assert type(r) is U and torch.Tensor.cuda in [c[0] for c in calls]
    r = u.to("cuda")
    assert type(r) is U
    torch.zeros_like(u, device="cuda")
    assert any(c[0] is torch.zeros_like and c[1] == {"device": "cuda"} for c in calls), calls


NAMES = (
    "torch.zeros",
    "torch.ones_like",
    "torch.Tensor.to",
    "torch.Tensor.cuda",
    "torch.Tensor.new_zeros",
    "torch.device",
    "torch.cuda.is_available",
    "torch.cuda.current_device",
    "torch.compile",
    "torch.jit.script",
    "torch.jit.load",
    "torch.jit.save",
    "torch.jit.trace",
    "torch.jit.freeze",
    "torch.get_device_module",
    "torch.export.export",
)
DESCRIBE = """
import inspect, json, pydoc
def signature(f):
    try:
        return str(inspect.signature(f)).split(" object at ")[0]
    except (ValueError, TypeError) as error:
        return type(error).__name__
print(json.dumps({n: [signature(eval(n)), eval(n).__name__, (eval(n).__doc__ or "")[:200]] for n in NAMES}))
"""


def check_pickles():
    for name in NAMES:
        function = eval(name)
        data = pickle.dumps(function)
        assert pickle.loads(data) is function and copy.deepcopy(function) is function and b"flagos" not in data, name
        (FOLDER / "function.pkl").write_bytes(data)
        without_the_shim("import pickle; pickle.load(open(sys.argv[1], 'rb'))", FOLDER / "function.pkl")
    assert pickle.loads(pickle.dumps(functools.partial(torch.zeros, 2, device="cuda")))().shape == (2,)


def check_inspection():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(DESCRIBE, {"torch": torch, "NAMES": NAMES})
    theirs = json.loads(without_the_shim(f"NAMES = {NAMES!r}\n" + DESCRIBE))
    theirs.pop("torch.device")  # its constructor is a function of Python's here
    for name in theirs:
        description = json.loads(printed.getvalue())[name]
        assert description == theirs[name], (name, description, theirs[name])
        assert description[2].strip().partition("\n")[0] in pydoc.render_doc(eval(name))


def check_monkey():
    o = torch.zeros
    log = []
    torch.zeros = lambda *a, **k: (log.append(1), o(*a, **k))[1]
    try:
        assert torch.zeros(1, device="cuda").device.type == V
        assert torch.compile(lambda x: x + torch.zeros(1, device="cuda"), backend="eager")(
            torch.ones(1, device="cuda")
        ).tolist() == [1.0]
    finally:
        torch.zeros = o
    assert log


class Fx(nn.Module):
    def forward(self, x):
        return x.to("cuda") + torch.ones_like(x, device=torch.device("cuda"))


def check_gm_pickle():
    g = torch.fx.symbolic_trace(Fx())
    p = pickle.dumps(g)
    assert pickle.loads(p).code == g.code
    same(pickle.loads(p)(torch.ones(2)), Fx()(torch.ones(2)))


def check_fx_after_off():
    g = torch.fx.symbolic_trace(Fx())
    c = g.code
    was = "ascend" if V == "npu" else "cpu"
    flagos_shim.deactivate()
    import torch.fx.graph as G

    assert "repr" not in vars(G)
    g2 = torch.fx.symbolic_trace(nn.Linear(2, 2))
    assert g2(torch.ones(1, 2)).shape == (1, 2)

    class P(nn.Module):
        def forward(self, x):
            return torch.zeros_like(x, device="cpu") + x.to("cpu")

    t = torch.fx.symbolic_trace(P())
    assert "torch.zeros_like(x, device = 'cpu')" in t.code
    t(torch.ones(1))
    flagos_shim.activate(was)
    assert torch.fx.symbolic_trace(Fx()).code == c


def check_generated_code_is_that_of_cuda():
    program = """
class Named(torch.nn.Module):
    def forward(self, x):
        y = torch.ones_like(x, device="cuda") + x.to("cuda") + x.to(device="cuda:1") + x.to("cuda", torch.float32)
        y = y + x.new_zeros(2, device="cuda") + torch.rand_like(x, device="cuda:0") + x.cuda() + x.cuda(0) + x.is_cuda
        return torch.nn.functional.dropout(y, 0.5) + torch.full_like(x, 1.0, dtype=torch.float32, device="cuda")
class Devices(torch.nn.Module):
    def forward(self, x):
        return x.to(torch.device("cuda")) + torch.zeros_like(x, device=torch.device("cuda", 1)) + x.new_ones((2,), device=torch.device("cuda:0"))
"""
    trace = "import torch.fx\nprint(torch.fx.symbolic_trace({}()).code)"
    for name in ("Named", "Devices") if V == "npu" else ("Named",):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program + trace.format(name), {"torch": torch})
        assert printed.getvalue() == without_the_shim(program + trace.format(name)), printed.getvalue()


def check_arguments_are_normalised_by_the_schema():
    from torch.fx.experimental.normalize import NormalizeArgs
    from torch.fx.operator_schemas import normalize_function

    class Likes(nn.Module):
        def forward(self, x):
            return torch.zeros_like(x) + torch.full_like(x, 2.0)

    found = normalize_function(torch.full_like, (torch.ones(2), 2.0), {}, normalize_to_only_use_kwargs=True)
    assert found.kwargs["fill_value"] == 2.0 and not found.args
    same(NormalizeArgs(torch.fx.symbolic_trace(Likes())).transform()(torch.ones(2)), torch.full((2,), 2.0))


run(globals())
