# ruff: noqa: B008, SIM115, UP006, UP035
"""TorchScript under the shim: scripts, traces, files; the same branches and devices as in eager mode."""

import copy
import io
import warnings
from typing import List, Optional, Tuple

import torch
from _compilers import FOLDER, run, same, without_the_shim
from torch import nn

import flagos_shim

warnings.simplefilter("ignore")
V = str(torch.zeros(1, device="cuda").device.type)


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.cuda() + torch.ones([1], device="cuda")


def f_all(x: torch.Tensor, s: str, d: torch.device):
    y = x.is_cuda
    n = 0
    if x.device.type == "cuda":
        n += 1
    if x.device.type != "cuda":
        n += 2
    if x.device.type == "cuda":
        n += 4
    if x.device.type in ("cuda", "mps"):
        n += 8
    if x.device.type == "cpu":
        n += 16
    z = (
        x.to(s)
        + x.to(torch.device("cuda"))
        + x.to(torch.device("cuda", 0))
        + torch.zeros([1], device=torch.device(s))
        + torch.zeros([1], device=d)
        + torch.zeros([1], device="cuda:0")
        + torch.ones_like(x, device="cuda")
        + x.new_zeros([1], device="cuda")
    )
    k = {"cuda": 1, "cpu": 2}
    return (
        y,
        n,
        z,
        k[x.device.type],
        str(x.device),
        f"{x.device.type}",
        x.device == torch.device("cuda:0"),
        helper(x),
        x.device.index,
    )


def cpuz(x: torch.Tensor):
    return x.is_cuda, x.cpu().is_cuda, x.cpu().device.type, x.to("cpu"), x.cpu().is_cpu


def check_everything():
    s = torch.jit.script(f_all)
    x = torch.ones(2, device="cuda")
    for arg in ("cuda", "cuda:0"):
        want = f_all(x, arg, torch.device("cuda"))
        for _ in range(4):
            same(want, s(x, arg, torch.device("cuda")))
    with torch.autocast("cpu"):
        same(want, s(x, "cuda", torch.device("cuda")))
    with torch.autocast("cuda"):
        same(want, s(x, "cuda", torch.device("cuda")))
    assert V not in ("npu",) or '"npu' not in s.code, s.code
    assert "is_cuda" in s.code or "cuda" in s.code


def check_cpus():
    s = torch.jit.script(cpuz)
    x = torch.ones(2, device="cuda")
    for _ in range(3):
        same(cpuz(x), s(x))
    for _ in range(3):
        same(cpuz(x.cpu()), s(x.cpu()))


def check_later_caller():
    h = torch.jit.script(helper)
    h(torch.ones(1))

    @torch.jit.script
    def late(x: torch.Tensor):
        return h(x) * 2

    assert late(torch.ones(1)).tolist() == [4.0]

    @torch.jit.script
    def late2(x: torch.Tensor):
        return helper(x) * 2

    assert late2(torch.ones(1)).tolist() == [4.0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.device = torch.device("cuda")
        self.name = V + ":0"
        self.n2 = "cuda:0"
        self.register_buffer("b", torch.ones(2, device="cuda"))
        self.sub = nn.ModuleList([nn.Linear(2, 2), nn.Dropout(0.0)])

    def forward(self, x):
        x = x.to(self.device)
        for m in self.sub:
            x = m(x)
        if x.is_cuda:
            x = self.lin(x) + self.b
        h = torch.zeros([2], device=self.device)
        return x + h + torch.arange(2, device="cuda")

    @torch.jit.export
    def make(self, d: torch.device = torch.device("cuda:0")) -> torch.Tensor:
        return torch.ones([2], device=d)

    @torch.jit.export
    def names(self) -> Tuple[str, str]:
        return self.name, self.n2


LOADS = """
import zipfile
m = torch.jit.load(sys.argv[1], map_location="cpu")
assert all(p.device.type == "cpu" for p in m.parameters())
text = m.code + (m.make.code if hasattr(m, "make") else "")
assert '"npu' not in text, text
archive = zipfile.ZipFile(sys.argv[1])
assert b"cuda" in b"".join(archive.read(n) for n in archive.namelist() if n.endswith((".py", ".pkl")))
if hasattr(m, "names"):
    print(m.names(), m.device)
"""


def plain(path):
    return without_the_shim(LOADS, path)


def check_module_roundtrip():
    torch.manual_seed(0)
    n = Net().cuda()
    x = torch.ones(1, 2)
    want = n(x)
    s = torch.jit.script(n)
    for _ in range(3):
        assert torch.allclose(s(x).cpu(), want.cpu())
    same(s.make(), torch.ones(2, device="cuda"))
    s.save(str(FOLDER / "n.pt"))
    torch.jit.save(s, FOLDER / "n2.pt", _extra_files={"a.txt": b"npu:0"})
    if V == "npu":
        out = plain(FOLDER / "n.pt")
        assert "('npu:0', 'cuda:0') cuda" in out, out
        plain(FOLDER / "n2.pt")
    b = io.BytesIO()
    torch.jit.save(s, b)
    for kw in (
        {},
        {"map_location": None},
        {"map_location": "cuda"},
        {"map_location": "cuda:0"},
        {"map_location": torch.device("cuda")},
        {"map_location": torch.device("cuda", 0)},
    ):
        for src in (FOLDER / "n.pt", b, open(FOLDER / "n2.pt", "rb")):
            if hasattr(src, "seek"):
                src.seek(0)
            back = torch.jit.load(src, **kw)
            assert back.lin.weight.is_cuda or V == "cpu"
            assert torch.allclose(back(x).cpu(), want.cpu())
            same(back.make(), torch.ones(2, device="cuda"))
            assert back.names() == (V + ":0", "cuda:0"), back.names()
    back = torch.jit.load(FOLDER / "n.pt", map_location="cpu")
    assert back.lin.weight.device.type == "cpu"
    ex = {"a.txt": ""}
    torch.jit.load(FOLDER / "n2.pt", _extra_files=ex)
    assert ex["a.txt"] == b"npu:0", ex
    back = torch.jit.load(FOLDER / "n2.pt")
    back.save(str(FOLDER / "n3.pt"))
    if V == "npu":
        plain(FOLDER / "n3.pt")
    same(torch.jit.load(FOLDER / "n3.pt")(x), back(x))
    c = copy.deepcopy(s)
    assert torch.allclose(c(x).cpu(), want.cpu())


def check_wrong_map_location():
    for bad in ("nope", 3, "cuda:x"):
        try:
            torch.jit.load(FOLDER / "n.pt", map_location=bad)
        except (RuntimeError, ValueError):
            continue
        raise AssertionError(bad)


def check_functions():
    h = torch.jit.script(helper)
    h.save(str(FOLDER / "h.pt"))
    back = torch.jit.load(FOLDER / "h.pt")
    same(back(torch.ones(1)), helper(torch.ones(1)))
    b = io.BytesIO()
    torch.jit.save(h, b)
    b.seek(0)
    same(torch.jit.load(b)(torch.ones(1)), helper(torch.ones(1)))
    if V == "npu":
        plain(FOLDER / "h.pt")


def check_traced():
    def fn(x):
        return x.to("cuda") + torch.zeros(2, device="cuda") + x.cuda() + torch.arange(2, device=x.device).cuda()

    for chk in (True, False):
        t = torch.jit.trace(fn, torch.ones(2), check_trace=chk)
        same(t(torch.ones(2)), fn(torch.ones(2)))
        assert '"npu' not in t.code, t.code
        with torch.autocast("cpu"):
            t(torch.ones(2))
    t.save(str(FOLDER / "t.pt"))
    same(torch.jit.load(FOLDER / "t.pt")(torch.ones(2)), fn(torch.ones(2)))
    if V == "npu":
        plain(FOLDER / "t.pt")
    n = Net().cuda()
    tm = torch.jit.trace(n, torch.ones(1, 2))
    assert torch.allclose(tm(torch.ones(1, 2)).cpu(), n(torch.ones(1, 2)).cpu())
    assert '"npu' not in tm.code, tm.code
    tm.save(str(FOLDER / "t2.pt"))
    back = torch.jit.load(FOLDER / "t2.pt", map_location="cuda")
    assert torch.allclose(back(torch.ones(1, 2)).cpu(), n(torch.ones(1, 2)).cpu())
    if V == "npu":
        plain(FOLDER / "t2.pt")
    t3 = torch.jit.trace_module(n, {"forward": torch.ones(1, 2)})
    assert torch.allclose(t3(torch.ones(1, 2)).cpu(), n(torch.ones(1, 2)).cpu())


def check_frozen():
    n = Net().cuda().eval()
    s = torch.jit.freeze(torch.jit.script(n))
    x = torch.ones(1, 2)
    for _ in range(3):
        assert torch.allclose(s(x).cpu(), n(x).cpu())
    s.save(str(FOLDER / "f.pt"))
    assert torch.allclose(torch.jit.load(FOLDER / "f.pt")(x).cpu(), n(x).cpu())
    if V == "npu":
        plain(FOLDER / "f.pt")
    o = torch.jit.optimize_for_inference(torch.jit.script(n))
    assert torch.allclose(o(x).cpu(), n(x).cpu())


def check_control_flow():
    @torch.jit.script
    def f(x: torch.Tensor, n: int, dev: Optional[torch.device] = None):
        d = x.device if dev is None else dev
        out = torch.jit.annotate(List[torch.Tensor], [])
        for i in range(n):
            if i % 2 == 0:
                out.append(torch.full([1], float(i), device="cuda"))
            else:
                out.append(torch.zeros([1], device=d).cuda())
        fut = torch.jit.fork(helper, x)
        return torch.cat(out), torch.jit.wait(fut)

    a, b = f(torch.ones(1), 4)
    assert a.tolist() == [0, 0, 2, 0] and b.tolist() == [2.0]
    assert a.device == torch.zeros(1, device="cuda").device


@torch.jit.script
class Cls:
    def __init__(self, n: int):
        self.t = torch.zeros([n], device="cuda")

    def add(self):
        return self.t + torch.ones([1], device="cuda")


def check_script_class():
    @torch.jit.script
    def use(n: int):
        return Cls(n).add()

    same(use(2), torch.ones(2, device="cuda"))


def check_cu():
    c = torch.jit.CompilationUnit("def foo(x):\n    return x.cuda() + torch.ones([1], device='cuda')\n")
    same(c.foo(torch.ones(1)), helper(torch.ones(1)))


def check_define():
    class S(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.define("def forward(self, x):\n    return x.cuda()\n")

        @torch.jit.script_method
        def other(self, x):
            return x.to("cuda")

    same(S()(torch.ones(1)), torch.ones(1, device="cuda"))
    same(S().other(torch.ones(1)), torch.ones(1, device="cuda"))


def check_grads():
    s = torch.jit.script(helper)
    x = torch.ones(2, requires_grad=True)
    for _ in range(4):
        x.grad = None
        (s(x) * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]


def check_compile_scripted():
    s = torch.jit.script(helper)
    same(torch.compile(lambda x: s(x) * 1, backend="eager")(torch.ones(1)), helper(torch.ones(1)))


def check_rnn():
    class R(nn.Module):
        def __init__(self):
            super().__init__()
            self.r = nn.LSTM(2, 3)

        def forward(self, x):
            h = torch.zeros([1, x.size(1), 3], device=x.device)
            c = torch.zeros([1, x.size(1), 3], device="cuda")
            o, _ = self.r(x, (h, c))
            return o

    m = R().cuda()
    x = torch.ones(2, 1, 2, device="cuda")
    assert torch.allclose(torch.jit.script(m)(x).cpu(), m(x).cpu())


def check_builtins_all():
    from torch.jit import _builtins as B

    for n in ("zeros", "ones", "full", "arange", "rand", "randn", "empty", "tensor", "linspace", "eye", "zeros_like"):
        assert B._find_builtin(getattr(torch, n)) == "aten::" + n, (n, B._find_builtin(getattr(torch, n)))


def check_lazy():
    m = nn.LazyLinear(2).cuda()
    m(torch.ones(1, 3, device="cuda"))
    m2 = nn.Sequential(nn.LazyConv1d(2, 1)).to("cuda")
    m2(torch.ones(1, 3, 4, device="cuda"))


def check_flagos_name():
    @torch.jit.script
    def f(x: torch.Tensor, s: str):
        return x.to(s)

    same(f(torch.ones(1), "flagos"), torch.ones(1, device="cuda"))


def check_script_if_tracing():
    @torch.jit.script_if_tracing
    def g(x: torch.Tensor):
        if x.sum() > 0:
            return x.cuda()
        return x.cuda() * 2

    t = torch.jit.trace(lambda x: g(x), torch.ones(1))
    same(t(-torch.ones(1)), -2 * torch.ones(1, device="cuda"))


def lambda_like(n: int):
    return torch.zeros([n], device="cuda")


def check_after_off():
    was = "ascend" if V == "npu" else "cpu"
    flagos_shim.deactivate()
    from torch.jit import _builtins as B

    assert B._find_builtin(torch.zeros) == "aten::zeros"

    @torch.jit.script
    def f(n: int):
        return torch.zeros([n]) + torch.ones([n], device="cpu")

    assert f(2).tolist() == [1, 1]
    n = nn.Linear(2, 2)
    s = torch.jit.script(n)
    b = io.BytesIO()
    torch.jit.save(s, b)
    b.seek(0)
    torch.jit.load(b)
    flagos_shim.activate(was)
    h = torch.jit.script(lambda_like)
    assert h(2).device == torch.zeros(1, device="cuda").device


run(globals())
