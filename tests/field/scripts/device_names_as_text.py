# Must hold: x.device.type stays "cuda" through what programs do with text: split, lower, match, sets, argparse, YAML.
import argparse
import collections
import json

import torch

x = torch.ones(1, device="cuda")
kind = x.device.type
want = "cuda" if x.is_cuda else "cpu"
for same in (kind, kind.lower(), kind.strip(), kind.split(":")[0], kind.partition(":")[0]):
    assert same == want and not same != want and same in (want, "mps"), same
assert kind.startswith(want) and kind.endswith(want) and want in kind
assert {want: 1}[kind] == 1 and kind in {want} and {kind} == {want} and (kind, 0) == (want, 0)
assert collections.Counter(p.device.type for p in torch.nn.Linear(2, 2).cuda().parameters()) == {want: 2}
match kind:
    case "cuda" | "cpu":
        pass
    case _:
        raise AssertionError(kind)
# the text leads back to the same place
for text in (kind, f"{kind}:{x.device.index or 0}", str(x.device), json.loads(json.dumps(kind))):
    assert torch.device(text).type == want and torch.zeros(1, device=text).device == x.device, text
parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=["cuda", "cpu"], default=kind)
assert torch.zeros(1, device=parser.parse_args([]).device).device == x.device
try:
    import yaml
except ImportError:
    yaml = None
if yaml is not None:
    for dump in (yaml.safe_dump, yaml.dump):
        text = dump({"device": kind, "name": str(x.device)})
        back = yaml.safe_load(text)
        assert back["device"] == want and torch.device(back["name"]) == x.device, text
print("OK")
