"""Trains small networks on the NPU and on the CPU and prints, as JSON, which of them end differently and how."""

import copy
import json
import warnings

import torch
import torch.nn.functional as F
import torch_npu  # noqa: F401
from torch import nn

warnings.simplefilter("ignore")
DIFFERENT = {}


def check(name, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except Exception as error:
        DIFFERENT[name] = f"{type(error).__name__}: {error}"[:300]


def both(make, steps=4):
    """Call ``make(device)``, which returns a model and a step, train on both devices, compare the weights."""
    weights = []
    for device in ("cpu", "npu"):
        torch.manual_seed(0)
        model, step = make(device)
        for _ in range(steps):
            step()
        weights.append([p.detach().cpu() for p in model.parameters()])
    for a, b in zip(*weights):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5)


def optimizer(cls, **options):
    def make(device):
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(device)
        opt = cls(model.parameters(), lr=1e-2, **options)
        x, y = torch.randn(32, 8).to(device), torch.randint(0, 4, (32,)).to(device)

        def loss():
            opt.zero_grad()
            value = F.cross_entropy(model(x), y)
            value.backward()
            return value

        def step():
            if cls is torch.optim.LBFGS:
                opt.step(loss)
                return
            loss()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()

        return model, step

    both(make)


def mixed_precision(dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)).npu()
    opt, scaler = (
        torch.optim.SGD(model.parameters(), lr=1e-2),
        torch.amp.GradScaler("npu", enabled=dtype is torch.float16),
    )
    x, y = torch.randn(16, 1, 8, 8).npu(), torch.randint(0, 10, (16,)).npu()
    losses = []
    for _ in range(6):
        opt.zero_grad()
        with torch.autocast("npu", dtype=dtype):
            logits = model(x)
            loss = F.cross_entropy(logits, y)
        assert logits.dtype is dtype
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    if scaler.is_enabled():
        scale, before = scaler.get_scale(), [p.clone() for p in model.parameters()]
        opt.zero_grad()
        scaler.scale(model(x).sum() * float("inf")).backward()
        scaler.step(opt)
        scaler.update()
        assert scaler.get_scale() == scale / 2  # the step was left out, because gradients are not finite
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))


def recurrent(cls, **options):
    torch.manual_seed(0)
    model = cls(6, 5, batch_first=True, **options)
    twin, x = copy.deepcopy(model).npu(), torch.randn(4, 7, 6)

    def packed(net, value):
        value = value.detach().requires_grad_()
        lengths = torch.tensor([7, 5, 3, 2])
        sequence = nn.utils.rnn.pack_padded_sequence(value, lengths, batch_first=True)
        out = nn.utils.rnn.pad_packed_sequence(net(sequence)[0], batch_first=True)[0]
        out.pow(2).sum().backward()
        return [out, value.grad, *(p.grad for p in net.parameters()), net(value)[0]]

    for a, b in zip(packed(model, x), packed(twin, x.npu())):
        torch.testing.assert_close(b.cpu(), a, rtol=1e-4, atol=1e-5)
    twin(x.npu())[0].sum().backward()


def cells():
    for cls in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        cell, x = cls(4, 5), torch.randn(3, 4)
        twin = copy.deepcopy(cell).npu()
        a, b = ((out[0] if isinstance(out, tuple) else out) for out in (cell(x), twin(x.npu())))
        b.sum().backward()
        torch.testing.assert_close(b.cpu(), a)


def embedding(sparse, cls):
    def make(device):
        model = nn.Embedding(10, 3, sparse=sparse, padding_idx=0).to(device)
        opt = cls(model.parameters(), lr=0.1)

        def step():
            opt.zero_grad()
            model(torch.tensor([[1, 2, 0], [2, 5, 9]], device=device)).pow(2).sum().backward()
            opt.step()

        return model, step

    both(make)


def transformer():
    torch.manual_seed(0)
    model = nn.Transformer(16, 4, 2, 2, 32, dropout=0.0, batch_first=True)
    twin, source, target = copy.deepcopy(model).npu(), torch.randn(2, 5, 16), torch.randn(2, 6, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    want, got = model(source, target, tgt_mask=mask), twin(source.npu(), target.npu(), tgt_mask=mask.npu())
    want.sum().backward()
    got.sum().backward()
    torch.testing.assert_close(got.cpu(), want, rtol=1e-4, atol=1e-5)
    for a, b in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-3, atol=1e-4)


def crnn():
    def make(device):
        conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        model = nn.ModuleList([conv, nn.LSTM(64, 16, bidirectional=True, batch_first=True), nn.Linear(32, 6)]).to(
            device
        )
        opt = torch.optim.AdamW(model.parameters(), 1e-3)
        x, t = torch.randn(4, 1, 16, 40).to(device), torch.randint(1, 6, (4, 5)).to(device)

        def step():
            opt.zero_grad()
            features = model[0](x).permute(0, 3, 1, 2).flatten(2)
            logits = model[2](model[1](features)[0]).log_softmax(-1).transpose(0, 1)
            F.ctc_loss(logits, t, torch.full((4,), 20), torch.full((4,), 5)).backward()
            opt.step()

        return model, step

    both(make, steps=6)


def derivatives():
    x, w = torch.randn(3, 4).npu().requires_grad_(), torch.randn(4, 4).npu().requires_grad_()
    (first,) = torch.autograd.grad(torch.tanh(x @ w).pow(2).sum(), x, create_graph=True)
    first.pow(2).sum().backward()
    a, b = x.detach().cpu().requires_grad_(), w.detach().cpu().requires_grad_()
    (second,) = torch.autograd.grad(torch.tanh(a @ b).pow(2).sum(), a, create_graph=True)
    second.pow(2).sum().backward()
    torch.testing.assert_close(w.grad.cpu(), b.grad, rtol=1e-4, atol=1e-5)
    from torch.utils.checkpoint import checkpoint

    block = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU()).npu()
    for reentrant in (False, True):
        checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    lstm = nn.LSTM(4, 4).npu()
    out = lstm(x)[0]
    with torch.no_grad():
        lstm.weight_hh_l0.mul_(2)
    try:
        out.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
    else:
        raise AssertionError("a weight that changed between forward and backward went unseen")


def random_numbers():
    torch.manual_seed(3)
    one = torch.rand(5, device="npu")
    torch.manual_seed(3)
    assert torch.equal(one, torch.rand(5, device="npu")) and not torch.equal(one, torch.rand(5, device="npu"))
    state = torch.npu.get_rng_state()
    one = torch.randn(5, device="npu")
    torch.npu.set_rng_state(state)
    assert torch.equal(one, torch.randn(5, device="npu"))
    generator = torch.Generator("npu").manual_seed(1)
    assert sorted(torch.randperm(9, generator=generator, device="npu").tolist()) == list(range(9))
    kept = (F.dropout(torch.ones(10_000, device="npu"), 0.3) > 0).float().mean().item()
    assert 0.67 < kept < 0.73, kept
    x = torch.randn(10_000, device="npu")
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.05
    assert torch.multinomial(torch.ones(5, device="npu"), 3).unique().numel() == 3
    nn.init.trunc_normal_(nn.init.orthogonal_(nn.init.kaiming_normal_(torch.empty(4, 4, device="npu"))))


def main():
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop"):
        for foreach in (True, False):
            check(f"{name} foreach={foreach}", optimizer, getattr(torch.optim, name), foreach=foreach)
    check("LBFGS", optimizer, torch.optim.LBFGS)
    check("SGD with momentum", optimizer, torch.optim.SGD, momentum=0.9, nesterov=True)
    for name in ("Adam", "AdamW", "SGD"):
        check(f"{name} fused", optimizer, getattr(torch.optim, name), fused=True)
    for dtype in (torch.float16, torch.bfloat16):
        check(f"autocast {dtype}", mixed_precision, dtype)
    check("LSTM", recurrent, nn.LSTM, num_layers=2, bidirectional=True)
    check("LSTM with projection", recurrent, nn.LSTM, proj_size=3)
    check("GRU", recurrent, nn.GRU, num_layers=2)
    check("RNN", recurrent, nn.RNN)
    check("cells", cells)
    check("embedding", embedding, False, torch.optim.Adam)
    check("sparse embedding, SparseAdam", embedding, True, torch.optim.SparseAdam)
    check("sparse embedding, SGD", embedding, True, torch.optim.SGD)
    check("transformer", transformer)
    check("CRNN", crnn)
    check("derivatives", derivatives)
    check("random numbers", random_numbers)
    print(json.dumps(DIFFERENT))


main()
