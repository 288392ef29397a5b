"""The core of torch.cuda: which devices there are, which is current, what they are, when they come up."""

from __future__ import annotations

import pytest

QUIET = """
import os, torch
from torch.cuda import is_available, device_count
assert is_available() and device_count() == torch.cuda.device_count() >= 1 and type(is_available()) is bool
torch.cuda.manual_seed_all(3); torch.cuda.manual_seed(3); torch.cuda.seed_all(); torch.manual_seed(3)
torch.device("cuda:0"); torch.cuda.is_current_stream_capturing(); torch.cuda.is_tf32_supported()
torch.cuda.memory_allocated(); torch.cuda.memory_stats(); torch.cuda.get_arch_list(); torch.cuda.empty_cache()
assert len(torch.cuda.default_generators) == torch.cuda.device_count()
assert not torch.cuda.is_initialized(), "a question started the device"
torch.cuda.init()
assert torch.cuda.is_initialized() and torch.cuda.is_available()
assert torch.cuda.default_generators[0].get_state().dtype is torch.uint8 and list(torch.cuda.default_generators)
assert torch.cuda._get_device_index("cuda:0", optional=True) == 0 and torch.cuda._get_device_index(0) == 0
"""

PROPERTIES = """
import pickle, torch
p = torch.cuda.get_device_properties("cuda")
assert p == torch.cuda.get_device_properties(0) == torch.cuda.get_device_properties(torch.device("cuda:0"))
for name in ("major", "minor", "multi_processor_count", "total_memory", "warp_size", "is_integrated", "L2_cache_size",
             "is_multi_gpu_board", "max_threads_per_multi_processor", "regs_per_multiprocessor", "clock_rate"):
    assert type(getattr(p, name)) is int, name
assert p.total_memory > 2**20 and p.multi_processor_count >= 1 and p.gcnArchName == "" or isinstance(p.gcnArchName, str)
assert isinstance(p.name, str) and p.name == torch.cuda.get_device_name() == torch.cuda.get_device_name(device="cuda:0")
assert torch.cuda.get_device_capability() == torch.cuda.get_device_capability(0) == (p.major, p.minor)
assert repr(p).startswith("_CudaDeviceProperties(name=") and str(p.total_memory // 2**20) in repr(p)
assert isinstance(p, torch.cuda._CudaDeviceProperties) and "warp_size" in dir(p) and not hasattr(p, "no_such")
try:
    p.name = "x"
except AttributeError:
    pass
else:
    raise AssertionError("properties can be changed")
assert torch.cuda.is_bf16_supported() is True and torch.cuda.is_bf16_supported(including_emulation=False) is True
assert torch.cuda.get_arch_list() == [] and torch.cuda.get_gencode_flags() == "" and not torch.cuda.is_tf32_supported()
for wrong in (99, -5):
    for ask in (torch.cuda.get_device_properties, torch.cuda.get_device_name, torch.cuda.get_device_capability):
        try:
            ask(wrong)
        except AssertionError as error:
            assert "Invalid device id" in str(error)
        else:
            raise AssertionError(wrong)
kind = getattr(torch, "AcceleratorError", RuntimeError)
for ask in (torch.cuda.set_device, torch.cuda.synchronize, torch.cuda.memory_allocated, torch.cuda.mem_get_info,
            torch.cuda.current_stream, torch.cuda.utilization):
    try:
        ask(99)
    except kind as error:
        assert "invalid device ordinal" in str(error), error
    else:
        raise AssertionError(ask)
for ask in (torch.cuda.set_device, torch.cuda.memory_allocated, torch.cuda.get_device_name):
    for other in ("meta", "cuda:x"):
        try:
            ask(other)
        except (ValueError, RuntimeError):
            pass
        else:
            raise AssertionError((ask, other))
for function in (torch.cuda.is_available, torch.cuda.memory_stats, torch.cuda.current_stream, torch.cuda.cudart):
    assert pickle.loads(pickle.dumps(function)) is function and function.__doc__
"""

TWO_DEVICES = """
import torch
assert torch.cuda.device_count() == 2
x = torch.ones(1, device="cuda")
for device in (1, "cuda:1", torch.device("cuda", 1), torch.device("cuda:1")):
    for ask in (torch.cuda.get_device_properties, torch.cuda.get_device_name, torch.cuda.memory_allocated,
                torch.cuda.memory_stats, torch.cuda.mem_get_info, torch.cuda.synchronize, torch.cuda.current_stream,
                torch.cuda.default_stream, torch.cuda.get_rng_state, torch.cuda.max_memory_reserved,
                torch.cuda.reset_peak_memory_stats, torch.cuda.memory_summary, torch.cuda.device_memory_used):
        ask(device)
        ask(device=device)
        assert torch.cuda.current_device() == 0, ask
    with torch.cuda.device(device):
        assert torch.cuda.current_device() == 1 and torch.ones(1, device="cuda").get_device() == 1
        with torch.cuda.device(-1), torch.cuda.device(None):
            assert torch.cuda.current_device() == 1
        assert torch.cuda.current_stream().device == torch.device("cuda:1")
    assert torch.cuda.current_device() == 0
try:
    with torch.cuda.device(1):
        raise KeyError
except KeyError:
    assert torch.cuda.current_device() == 0
with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
    assert torch.cuda.current_device() == 1
with torch.cuda.device_of(torch.ones(1)):
    assert torch.cuda.current_device() == 0
torch.cuda.set_device("cuda:1")
native = getattr(torch, x.device.type.__str__())
assert torch.cuda.current_device() == 1 == native.current_device()
torch.cuda.set_device(-1)
assert torch.cuda.current_device() == 1
torch.cuda.set_device(torch.device("cuda", 0))
assert x.get_device() == torch.cuda.current_device() == 0
assert torch.cuda.can_device_access_peer(0, 1) in (True, False) and not torch.cuda.can_device_access_peer(0, 0)
assert torch.cuda.can_device_access_peer(device=0, peer_device="cuda:1") in (True, False)
assert issubclass(torch.cuda.device_of, torch.cuda.device)

torch.cuda.manual_seed_all(5)
a, b = (torch.rand(3, device=f"cuda:{i}").cpu() for i in range(2))
states = torch.cuda.get_rng_state_all()
c = torch.rand(3, device="cuda:1").cpu()
torch.cuda.set_rng_state(states[1], device="cuda:1")
assert torch.equal(c, torch.rand(3, device="cuda:1").cpu()) and not torch.equal(b, c)
with torch.random.fork_rng(devices=[0, 1]):
    torch.rand(3, device="cuda:1")
assert torch.equal(torch.cuda.get_rng_state(1), torch.cuda.get_rng_state("cuda:1"))
"""

# Every function of torch.cuda that takes a device, found at run time, asked of the device that is not the current one.
MOVES = """
import importlib, inspect, pkgutil, warnings
import torch
warnings.simplefilter("ignore")
torch.zeros(1, device="cuda:0")
given = {"fraction": 0.5, "new_state": torch.cuda.get_rng_state(1), "peer_device": 0, "stream": None, "size": 64}
chooses = {"set_device", "_exchange_device", "_maybe_exchange_device", "_set_stream_by_id"}  # moving is what they do
names = [m.name for m in pkgutil.walk_packages(torch.cuda.__path__, "torch.cuda.")]
asked, moved = set(), []
for module in [torch.cuda, torch.accelerator, *map(importlib.import_module, names)]:
    for name, function in list(vars(module).items()):
        if name in chooses or isinstance(function, type) or not callable(function):
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            continue
        devices = [p.name for p in parameters if p.name in ("device", "device_index", "device_id")]
        for device in (1, "cuda:1", torch.device("cuda:1")) if devices else ():
            needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
            arguments = {p.name: given.get(p.name, 0) for p in needed}
            arguments[devices[0]] = device
            try:
                function(**arguments)
                asked.add(name)
            except Exception:  # what it refuses is tested elsewhere
                pass
            if torch.cuda.current_device() != 0:
                moved.append((module.__name__, name, device))
                torch.cuda.set_device(0)
assert not moved, moved
assert len(asked) > 40 and "get_per_process_memory_fraction" in asked, sorted(asked)
"""

EARLY = """
import torch
import torch.cuda.comm
from torch.cuda import Stream, current_device, is_available
from torch.cuda.memory import memory_stats
before = {name: value for name, value in vars(torch.cuda).items()}
functions = {name: getattr(torch.cuda.memory, name) for name in torch.cuda.memory.__all__}
early, none, empty, broadcast = is_available, None, (), getattr(torch._C, "_broadcast", None)
assert not is_available()

import flagos_shim
assert is_available() and current_device() == 0
assert Stream is torch.cuda.Stream and memory_stats is torch.cuda.memory_stats
assert none is None and empty == () and early is is_available
late, stats, refused = torch.cuda.is_available, torch.cuda.memory_stats, torch.cuda.jiterator._create_jit_fn
for name in torch.cuda.memory.__all__:
    assert getattr(torch.cuda, name) is getattr(torch.cuda.memory, name), name

assert flagos_shim.deactivate() == []
assert {n: v for n, v in vars(torch.cuda).items()} == before
assert all(vars(torch.cuda)[name] is value for name, value in before.items())
assert {name: getattr(torch.cuda.memory, name) for name in functions} == functions
assert not is_available() and late() is False and stats() == {}
assert callable(refused("template <typename T> T f(T x) { return x; }"))
assert getattr(torch._C, "_broadcast", None) is broadcast
try:
    torch.ones(1, device="cuda")
except (AssertionError, RuntimeError):
    pass
else:
    raise AssertionError("still routed")
"""

WITHOUT = """
import torch
assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
assert torch.ones(1, device="cuda").get_device() == 0
"""

HIDDEN = """
import os, torch
os.environ["CUDA_VISIBLE_DEVICES"] = {value!r}
assert torch.cuda.device_count() == {count} and torch.cuda.is_available() is {some}
if {count}:
    torch.cuda.synchronize()
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    assert torch.cuda.is_available() and torch.cuda.device_count() == {count}, "CUDA too has read it by now"
else:
    try:
        torch.cuda.current_device()
    except RuntimeError:
        pass
    else:
        raise AssertionError("a device, where none is to be seen")
"""


@pytest.mark.parametrize("code", [QUIET, PROPERTIES], ids=["asking starts nothing", "properties and errors"])
def test_core(code, backend, run_isolated):
    run_isolated(code, backend=backend).ok()


@pytest.mark.parametrize("backend", ["ascend", "mlu", "musa"])
def test_two_devices_and_queries_that_move_nothing(backend, run_isolated):
    run_isolated(TWO_DEVICES, backend=backend).ok()
    run_isolated(MOVES, backend=backend).ok()


def test_names_taken_early_follow_and_all_is_restored(backend, run_isolated):
    if backend != "cpu":  # the plugin cannot be rehearsed without the start-up hook, which activates
        code = EARLY.replace("import torch\n", "import flagos_shim, torch\nflagos_shim.deactivate()\n", 1)
        code = code.replace("\nimport flagos_shim\n", "\nflagos_shim.activate()\n")
        run_isolated(code, backend=backend).ok()
    else:
        env = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        code = EARLY.replace("\nimport flagos_shim\n", "\nimport flagos_shim\nflagos_shim.activate('cpu')\n")
        run_isolated(code, backend=None, env=env).ok()


def test_the_module_is_left_alone_on_request(run_isolated):
    run_isolated(WITHOUT, env={"FLAGOS_DISABLE_CUDA_SHIM": "1"}).ok()


@pytest.mark.parametrize(
    ("backend", "value", "count"),
    [("ascend", "1", 1), ("mlu", "1", 1), ("musa", "1", 1), ("cpu", "", 0), ("cpu", "0", 1)],
)
def test_cards_chosen_by_the_script(backend, value, count, run_isolated):
    run_isolated(HIDDEN.format(value=value, count=count, some=count > 0), backend=backend).ok()


def test_cards_are_counted_by_the_list_where_the_runtime_does_not_know_it(run_isolated):
    # CN_VISIBLE_DEVICES comes before the variable that CUDA's was carried over to, so the plugin sees both cards.
    code = "import torch; print(torch.mlu.device_count(), torch.cuda.device_count(), torch.cuda.is_available())"
    for cards, expected in (("0", "2 1 True"), ("", "2 0 False"), ("1,0", "2 2 True")):
        env = {"CN_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": cards}
        assert run_isolated(code, backend="mlu", env=env).ok().stdout.strip() == expected
