# Must hold: other libraries are not told that a vendor's memory is CUDA's; torch itself exchanges it with itself.
import torch

x = torch.arange(3.0, device="cuda")
if x.is_cuda and torch.version.cuda is None and torch.version.hip is None:
    assert not hasattr(x, "__cuda_array_interface__"), "CuPy would read this address as one of CUDA's"
    kind, index = x.__dlpack_device__()
    assert int(kind) not in (1, 2) and index == 0
assert not hasattr(torch.ones(1), "__cuda_array_interface__")
y = torch.from_dlpack(x)
assert y.device == x.device and y.data_ptr() == x.data_ptr()
if x.is_cuda:
    try:
        x.numpy()
    except TypeError as e:
        assert "Tensor.cpu()" in str(e)
    else:
        raise AssertionError("NumPy was given device memory")
assert x.cpu().numpy().sum() == 3 and x.numpy(force=True).sum() == 3
print("OK")
