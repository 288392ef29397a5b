# Must hold: tensors, weights, indices or a generator of another device are an error, also in attention and recurrent layers.
import torch
import torch.nn.functional as F

a, b = torch.ones(2, device="cuda"), torch.ones(2)
if a.is_cuda:
    q = torch.ones(1, 1, 2)
    for name, call in {
        "add": lambda: a + b,
        "add_": lambda: a.add_(b),
        "cat": lambda: torch.cat([a, b]),
        "linear": lambda: torch.nn.Linear(2, 2)(a),
        "cross_entropy": lambda: F.cross_entropy(torch.ones(2, 3, device="cuda"), torch.tensor([0, 1])),
        "embedding": lambda: torch.nn.Embedding(3, 2).cuda()(torch.tensor([1])),
        "attention": lambda: F.scaled_dot_product_attention(q.cuda(), q, q.cuda()),
        "lstm": lambda: torch.nn.LSTM(2, 2)(q.cuda()),
        "gru": lambda: torch.nn.GRU(2, 2).cuda()(q),
        "index a CPU tensor": lambda: b[torch.tensor([0], device="cuda")],
        "gather": lambda: a.gather(0, torch.tensor([0])),
        "out=": lambda: torch.add(a, a, out=b),
        "grad": lambda: setattr(torch.ones(2, device="cuda", requires_grad=True), "grad", b),
        "CPU generator": lambda: torch.rand(2, device="cuda", generator=torch.Generator()),
    }.items():
        try:
            call()
        except RuntimeError as e:
            assert not isinstance(e, torch.cuda.OutOfMemoryError), name
        else:
            raise AssertionError(f"{name}: two devices were mixed")
# what CUDA allows
assert (a + torch.tensor(2.0)).device == a.device and a[torch.tensor([0])].device == a.device
a[torch.tensor([1])] = 3.0
a[0] = torch.tensor(5.0)
b.copy_(a)
assert b.tolist() == [5.0, 3.0] and a.fill_(torch.tensor(2.0)).tolist() == [2.0, 2.0]
p = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(4, 2, 2, device="cuda"), [4, 2])
assert torch.nn.LSTM(2, 3).cuda()(p)[0].data.device == a.device
print("OK")
