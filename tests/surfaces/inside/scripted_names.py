# ruff: noqa: UP006, UP035
"""TorchScript under the shim: device types take the branch that eager mode takes; autocast inside; foreign files."""

import io
import warnings
import zipfile
from typing import Dict, List

import torch
from _compilers import FOLDER, run, without_the_shim
from torch import nn

warnings.simplefilter("ignore")
X = torch.ones(2, 2, device="cuda")
V = str(X.device.type)


def is_gpu(k: str) -> bool:
    return k == "cuda"


def helper(x: torch.Tensor) -> bool:
    return is_gpu(x.device.type)


def joined(x: torch.Tensor) -> bool:
    k = x.device.type
    if x.numel() == 0:
        k = "none"
    return k == "cuda"


def two(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.device.type == y.device.type and y.device.type != "cuda"


def looped(xs: List[torch.Tensor]) -> int:
    n = 0
    for x in xs:
        if x.device.type == "cuda":
            n += 1
    return n


def held(x: torch.Tensor):
    kinds = [x.device.type]
    table: Dict[str, int] = {x.device.type: 1}
    return kinds[0] == "cuda", "cuda" in kinds, "cuda" in table, table.get("cuda", 0)


def text(x: torch.Tensor):
    k = x.device.type
    return (
        k.startswith("cuda"),
        k.lower() == "cuda",
        k.split(":")[0] == "cuda",
        "cuda" in k,
        str(x.device).startswith(k),
        f"{k}!",
        k + "!",
    )


def returned(x: torch.Tensor) -> str:
    return x.device.type


def used(x: torch.Tensor):
    k = x.device.type
    if x.numel() == 0:
        k = "cpu"
    return torch.zeros([1], device=k).device == x.device, torch.device(k).type == x.device.type


class Kind(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = torch.ones(1, device="cuda").device.type

    def forward(self, x):
        return x * 2 if self.k == "cuda" else x * 3


def check_the_same_branches():
    for function, args in (
        (is_gpu, (X.device.type,)),
        (is_gpu, ("cuda",)),
        (is_gpu, ("other",)),
        (helper, (X,)),
        (joined, (X,)),
        (two, (X, X)),
        (two, (X, X.cpu())),
        (looped, ([X, X.cpu()],)),
        (held, (X,)),
        (held, (X.cpu(),)),
        (text, (X,)),
        (text, (X.cpu(),)),
        (used, (X,)),
    ):
        scripted = torch.jit.script(function)
        for _ in range(3):
            assert scripted(*args) == function(*args), (function.__name__, scripted(*args), function(*args))
    assert (torch.jit.script(returned)(X) == "cuda") is (returned(X) == "cuda")
    if V != "cpu":
        both = torch.jit.CompilationUnit(f"def f(k: str) -> bool:\n  return k == '{V}'\n").f
        assert both(V) and both(X.device.type) and not both("cpu")


def check_an_attribute_that_holds_a_device_type():
    module = Kind()
    scripted = torch.jit.script(module)
    assert torch.equal(scripted(X), module(X))
    scripted.save(FOLDER / "kind.pt")
    assert torch.equal(torch.jit.load(FOLDER / "kind.pt")(X), module(X))
    with zipfile.ZipFile(FOLDER / "kind.pt") as file:
        assert V == "cpu" or not any(V.encode() in file.read(n) for n in file.namelist() if n.endswith((".pkl", ".py")))


class Gpu(nn.Module):
    def forward(self, x):
        return x * 2 if helper(x) else x * 3


def check_a_saved_file_takes_its_branch_without_this_package():
    torch.jit.script(Gpu()).save(FOLDER / "gpu.pt")
    assert torch.equal(torch.jit.load(FOLDER / "gpu.pt")(X), Gpu()(X))
    without_the_shim("print(torch.jit.load(sys.argv[1])(torch.ones(1)).item())", FOLDER / "gpu.pt")


def lower(x: torch.Tensor):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = torch.mm(x, x)
    return y, torch.mm(x, x)


def older(x: torch.Tensor):
    with torch.cuda.amp.autocast():
        y = torch.mm(x, x)
    return y


def off(x: torch.Tensor):
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):
        y = torch.mm(x, x)
    return y


def hosts(x: torch.Tensor):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, x)
    return y


def check_autocast_inside():
    x = X.clone().requires_grad_()
    for function in (lower, older, off):
        scripted = torch.jit.script(function)
        for _ in range(3):
            found, wanted = scripted(x), function(x)
            pairs = zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]
            for one, other in pairs:
                assert one.dtype is other.dtype and one.device == other.device and torch.equal(one, other), function
    assert hosts(X.cpu()).dtype is torch.jit.script(hosts)(X.cpu()).dtype is torch.bfloat16
    torch.jit.script(lower)(x)[0].sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [[4, 4], [4, 4]]
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(lower), file)
    file.seek(0)
    assert torch.jit.load(file)(X)[0].dtype is torch.bfloat16


def check_files_of_any_vendor():
    saved = io.BytesIO()
    torch.jit.save(torch.jit.script(nn.Linear(2, 2)), saved)
    for tag in (b"cuda:0", b"npu:0", b"mlu:0", b"musa:0", b"cuda:1"):
        file = io.BytesIO()
        written = torch._C.PyTorchFileWriter(file)
        saved.seek(0)
        reader = torch._C.PyTorchFileReader(saved)
        for name in reader.get_all_records():
            if name not in ("version", "byteorder", ".data/serialization_id"):
                data = reader.get_record(name)
                if name.endswith(".pkl"):
                    data = data.replace(b"X\x03\x00\x00\x00cpu", b"X" + len(tag).to_bytes(4, "little") + tag)
                written.write_record(name, data, len(data))
        written.write_end_of_file()
        for where in (None, "cpu", "cuda", "cuda:0", torch.device("cpu")):
            if where is None and tag == b"cuda:1" and V == "cpu":
                continue
            file.seek(0)
            kind = torch.jit.load(file, map_location=where).weight.device.type
            assert kind == ("cpu" if str(where) == "cpu" else X.device.type), (tag, where, kind)


def check_switched_off():
    import flagos_shim

    was = "ascend" if V == "npu" else V
    flagos_shim.deactivate()

    @torch.jit.script
    def plain(x: torch.Tensor):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.mm(x, x)
        return y

    with torch.autograd.profiler.profile():
        assert plain(X.cpu()).dtype is torch.bfloat16
    flagos_shim.activate(was)
    assert torch.jit.script(lower)(X)[0].dtype is torch.bfloat16


run(globals())
