# Must hold: what names a device without ordinal is of the current one; text written from a device names it in `torch.load` too.
import enum
import io

import torch
from torch.nn.parallel import parallel_apply, replicate, scatter


class Kind(str, enum.Enum):
    CPU = "cpu"
    CUDA = "cuda"


generator = torch.Generator("cuda")
assert generator.device == torch.device("cuda", torch.cuda.current_device()) and generator.device.index == 0
assert torch.Generator(device="cuda:0").device == generator.device and torch.Generator("cpu").device.type == "cpu"

x = torch.ones(2, device="cuda")
for key in ("cuda:0", str(x.device), f"{x.device.type}:{x.device.index}"):
    file = io.BytesIO()
    torch.save({"w": x}, file)
    file.seek(0)
    places = {key: "cpu"}
    assert torch.load(file, map_location=places)["w"].device.type == "cpu", key
    assert places == {key: "cpu"}

model, count = torch.nn.Linear(2, 1).cuda(), torch.cuda.device_count()
for devices in ([f"cuda:{i}" for i in range(count)], [torch.device("cuda", i) for i in range(count)], list(range(count))):
    parts = scatter(torch.ones(2 * count, 2), devices)
    outputs = parallel_apply(replicate(model, devices), parts, devices=devices)
    assert [output.get_device() for output in outputs] == list(range(count))

assert x.device.type == Kind.CUDA and x.device.type != Kind.CPU
assert torch.backends.cuda.is_built()
print("OK")
