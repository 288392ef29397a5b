"""Models trained compiled against eager, guards, dynamic shapes, what torch's own traced code sees, and going off again."""

from __future__ import annotations

import os
import sys
import types
import warnings

import torch
import torch.nn.functional as F
from _compilers import run, same
from torch import nn
from torch._dynamo.utils import counters

import flagos_shim

warnings.simplefilter("ignore")
BACKEND = os.environ["FLAGOS_DEVICE_BACKEND"]
ACCELERATOR = BACKEND == "ascend"


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def forward(self, x):
        q, k, v = (part.unsqueeze(1) for part in self.qkv(self.norm(x)).chunk(3, -1))
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device, dtype=torch.bool).tril()
        x = x + F.scaled_dot_product_attention(q, k, v, attn_mask=mask).squeeze(1)
        return x + self.mlp(x)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(11, 16)
        self.place = nn.Embedding(8, 16)
        self.blocks = nn.ModuleList([Block(16), Block(16)])
        self.head = nn.Linear(16, 11)

    def forward(self, tokens):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        x = self.token(tokens.to(device)) + self.place(torch.arange(tokens.shape[1], device=device))
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.training else block(x)
        return self.head(x) if x.is_cuda or x.device.type == "cpu" else self.head(x) * 0


class Still(Transformer):
    """Without dropout."""

    def __init__(self) -> None:
        super().__init__()
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0


class Recogniser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
        self.sequence = nn.LSTM(16, 8, bidirectional=True)
        self.head = nn.Linear(16, 5)

    def forward(self, images):
        images = images.cuda(non_blocking=True)
        x = self.features(images).flatten(1, 2).permute(2, 0, 1)
        state = (
            torch.zeros(2, images.shape[0], 8, device="cuda"),
            images.new_zeros(2, images.shape[0], 8, device="cuda"),
        )
        return self.head(self.sequence(x, state)[0]).log_softmax(-1)


def train(model, batch, loss_of, backend, steps=4):
    torch.manual_seed(0)
    net = model().cuda()
    call = net if backend is None else torch.compile(net, backend=backend, fullgraph=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        optimizer.zero_grad()
        loss = loss_of(call, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return torch.stack(losses)


def _language(call, tokens):
    return F.cross_entropy(call(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].cuda().flatten())


def _language_amp(call, tokens):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return _language(call, tokens)


def _text(call, images):
    out = call(images)
    lengths = torch.full((images.shape[0],), out.shape[0], dtype=torch.long)
    return F.ctc_loss(out, torch.tensor([[1, 2], [3, 4]], device="cuda"), lengths, torch.full_like(lengths, 2))


TOKENS = torch.arange(18).reshape(2, 9) % 11
IMAGES = torch.linspace(0, 1, 2 * 8 * 12).reshape(2, 1, 8, 12)
BACKENDS = ("eager", "aot_eager") if ACCELERATOR else ("eager", "aot_eager", "inductor")


def check_transformer_without_dropout_gives_the_same_losses():
    eager = train(Still, TOKENS, _language, None)
    for backend in BACKENDS:
        counters.clear()
        assert torch.allclose(train(Still, TOKENS, _language, backend), eager, atol=1e-3), backend
        assert not counters["graph_break"] and counters["stats"]["unique_graphs"] == 1, dict(counters)
        torch._dynamo.reset()


def check_dropout_follows_the_seed():
    layers = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)).cuda()
    x = torch.ones(4, 8, device="cuda")
    compiled = torch.compile(layers, backend="eager", fullgraph=True)
    for seed in range(3):
        torch.cuda.manual_seed_all(seed)
        torch.manual_seed(seed)
        want = layers(x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x), want)


def check_recomputed_dropout_is_the_same_dropout():
    def f(x):
        return torch.utils.checkpoint.checkpoint(lambda y: F.dropout(y, 0.5) * torch.sin(y), x, use_reentrant=False)

    x = torch.full((64,), 1.0, device="cuda", requires_grad=True)
    y = torch.compile(f, backend="aot_eager", fullgraph=True)(x)
    y.sum().backward()
    assert torch.equal(y != 0, x.grad != 0) and 0 < int((y != 0).sum()) < 64
    drawn = train(Transformer, TOKENS, _language, "aot_eager")
    torch._dynamo.reset()
    assert torch.equal(train(Transformer, TOKENS, _language, "aot_eager"), drawn)


def check_transformer_under_autocast():
    eager = train(Still, TOKENS, _language_amp, None)
    assert not torch.equal(eager, train(Still, TOKENS, _language, None)), "autocast did nothing"
    for backend in ("eager", "aot_eager"):
        assert torch.allclose(train(Still, TOKENS, _language_amp, backend), eager, atol=0.03), backend
        torch._dynamo.reset()


def check_recogniser_gives_the_same_losses():
    torch._dynamo.config.allow_rnn = True
    eager = train(Recogniser, IMAGES, _text, None)
    for backend in BACKENDS:
        counters.clear()
        assert torch.allclose(train(Recogniser, IMAGES, _text, backend), eager, atol=1e-3), backend
        assert not counters["graph_break"] and counters["stats"]["unique_graphs"] == 1, dict(counters)
        torch._dynamo.reset()


def check_default_back_end_trains():
    torch._dynamo.reset()
    losses = train(Recogniser, IMAGES, _text, "flagos")
    assert torch.allclose(losses, train(Recogniser, IMAGES, _text, None), atol=1e-3)
    torch._dynamo.reset()


def check_shapes_become_dynamic_once():
    counters.clear()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def grow(x):
        return x + torch.zeros(x.shape[0], device="cuda") + torch.arange(x.shape[0], device=x.device).to("cuda")

    for length in (3, 4, 5, 6, 7, 9):
        torch.compiler.cudagraph_mark_step_begin()
        grow(torch.ones(length, device="cuda"))
    assert counters["stats"]["unique_graphs"] == 2, dict(counters["stats"])
    again = torch.compile(
        lambda x: x.new_ones(x.shape, device="cuda") + x, backend="eager", dynamic=True, fullgraph=True
    )
    counters.clear()
    for length in (3, 4, 5):
        again(torch.ones(length, device="cuda"))
    assert counters["stats"]["unique_graphs"] == 1, dict(counters["stats"])


def check_devices_in_closures_defaults_and_attributes():
    import pickle

    device, kind = torch.device("cuda:0"), torch.zeros(1, device="cuda").device.type
    loaded = pickle.loads(pickle.dumps(device))

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.device, self.kind, self.table = device, kind, {"device": device, "kinds": [kind, "cpu"]}

        def forward(self, x, where=device):
            y = x.to(where) + torch.zeros(2, device=loaded) + torch.zeros(2, device=self.device)
            y = y + (1 if self.kind == "cuda" else 2) + (4 if "cuda" in self.table["kinds"] else 8)
            return y + torch.zeros(2, device=self.table["device"]), loaded == self.device, self.kind

    holder, x = Holder(), torch.ones(2, device="cuda")
    counters.clear()
    compiled = torch.compile(holder, backend="eager", fullgraph=True)
    for _ in range(3):
        same(holder(x), compiled(x))
    assert counters["stats"]["unique_graphs"] == 1
    branch = torch.compile(lambda x: x * 2 if x.is_cuda else x * 3, backend="eager", fullgraph=True)
    for value in (torch.ones(2), x, torch.ones(2), x):
        same(value * 2 if value.is_cuda else value * 3, branch(value))


def check_traced_code_of_torch_sees_the_plain_name():
    code = "def inside(x):\n    return x * (2 if x.device.type == 'cuda' else 3), {KIND: 5}[x.device.type], TYPE(x.device.type)"
    module = sys.modules["torch.made_up"] = types.ModuleType("torch.made_up")
    theirs = vars(module)
    theirs.update(KIND=str(torch.zeros(1, device="cuda").device.type), TYPE=str)
    exec(code, theirs)
    inside, x = theirs["inside"], torch.ones(2, device="cuda")
    same(inside(x), torch.compile(inside, backend="eager", fullgraph=True)(x))
    assert inside(x)[0].tolist() == [3.0, 3.0] and inside(x)[1] == 5

    def outside(x):
        return inside(x)[0] * (7 if x.device.type == "cuda" else 11)

    same(outside(x), torch.compile(outside, backend="eager", fullgraph=True)(x))
    handed = types.FunctionType(compile("lambda k: k == 'cuda'", "<torch>", "eval").co_consts[0], theirs)

    def handing(x):
        return x * (2 if handed(x.device.type) else 3)

    same(handing(x), torch.compile(handing, backend="eager", fullgraph=True)(x))


def check_compiled_code_survives_an_early_binding_and_a_patch_on_top():
    early = torch.zeros
    compiled = torch.compile(lambda x: x + early(2, device="cuda"), backend="aot_eager", fullgraph=True)
    assert compiled(torch.ones(2, device="cuda")).tolist() == [1.0, 1.0]
    calls = []

    def on_top(*args, **kwargs):
        calls.append(args)
        return early(*args, **kwargs)

    torch.zeros = on_top
    try:
        assert torch.zeros(2, device="cuda").device.type == str(torch.device("cuda").type)
        assert (
            torch.compile(lambda x: x + torch.zeros(2, device="cuda"), backend="eager")(
                torch.ones(2, device="cuda")
            ).sum()
            == 2
        )
    finally:
        torch.zeros = early
    assert calls


def check_optimizer_step_and_functional_transforms_compile():
    layer = nn.Linear(2, 2).cuda()
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2, device="cuda")).sum().backward()
    torch.compile(optimizer.step, backend="eager")()
    per_sample = torch.compile(
        torch.func.vmap(lambda x: x.cuda() + torch.ones(2, device="cuda")), backend="eager", fullgraph=True
    )
    assert per_sample(torch.ones(3, 2)).tolist() == [[2.0, 2.0]] * 3


def check_going_off_and_on_again():
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable, constant_fold_functions

    def host(x):
        return x + torch.zeros(2) + torch.ones_like(x, device="cpu") + (1 if x.is_cuda else 2) + torch.full((2,), 1.0)

    kept = torch.compile(lambda x: x.to("cpu") + torch.zeros(2), backend="aot_eager", fullgraph=True)
    kept(torch.ones(2))
    flagos_shim.deactivate()
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        same(host(torch.ones(2)), torch.compile(host, backend=backend, fullgraph=True)(torch.ones(2)))
    assert kept(torch.ones(2)).tolist() == [1.0, 1.0]
    assert (
        torch.cuda.is_available in constant_fold_functions
        and torch.full in TorchInGraphFunctionVariable._get_handlers()
    )
    ours = [
        key
        for table in (constant_fold_functions, TorchInGraphFunctionVariable._get_handlers())
        for key in table
        if getattr(key, "__globals__", {}).get("__name__", "").startswith("flagos_shim.")
    ]
    assert not ours, ours
    assert "flagos" not in torch._dynamo.list_backends()
    flagos_shim.activate(BACKEND)
    same(
        torch.zeros(2, device="cuda"),
        torch.compile(lambda: torch.zeros(2, device="cuda"), backend="eager", fullgraph=True)(),
    )


run(globals())
