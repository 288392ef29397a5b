"""Compiles the device (``../csrc``) once into a cache and loads it as an extension module.

The compiler is called directly: torch's own ``cpp_extension.load`` would need ninja, and imports setuptools in
every process. The cache key covers sources, torch, Python and compiler, so a changed file builds a new library beside
the old one. ``PRETEND_CACHE`` names the folder (default: ``flagos_shim_pretend`` in the user's cache), ``CXX`` the
compiler.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import torch

MODULE = "_pretend_C"
CSRC = Path(__file__).resolve().parent.parent / "csrc"


def _flags() -> list[str]:
    # torch/extension.h decides the C++ standard: 20 from torch 2.12 on, 17 before.
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    include = Path(torch.__file__).parent / "include"
    return [
        f"-std=c++{20 if release >= (2, 12) else 17}",
        "-O1",
        "-fPIC",
        "-fvisibility=hidden",
        "-w",
        f"-DPRETEND_MODULE={MODULE}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *_pybind11(),
        f"-I{include}",
        f"-I{include / 'torch/csrc/api/include'}",
        f"-I{sysconfig.get_paths()['include']}",
    ]


def _pybind11() -> list[str]:
    """What torch says it built its classes with; older ones are known only to a module that says the same."""
    said = {name: getattr(torch._C, f"_PYBIND11_{name}", None) for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")}
    return [f'-DPYBIND11_{name}="{value}"' for name, value in said.items() if value is not None]


def _cache() -> Path:
    return Path(
        os.environ.get("PRETEND_CACHE")
        or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "flagos_shim_pretend")
    )


def _key(compiler: list[str], sources: list[Path]) -> str:
    key = hashlib.sha256(repr((torch.__version__, sys.version_info[:2], compiler, _flags())).encode())
    for source in sources:
        key.update(source.name.encode() + source.read_bytes())
    return key.hexdigest()[:20]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"the pretend device does not compile:\n{shlex.join(command)}\n{done.stdout[-4000:]}")


def _made(target: Path, command: list[str]) -> str:
    """Runs ``command`` with ``-o`` a passing name unless ``target`` is there, so that a cut-off run leaves nothing."""
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        _run([*command, "-o", str(unfinished)])
        os.replace(unfinished, target)
    return str(target)


def library() -> Path:
    """The path of the built library, building it first where the cache lacks it (one process does, others wait)."""
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    cache, headers, sources = _cache(), sorted(CSRC.glob("*.h")), sorted(CSRC.glob("*.cpp"))
    target = cache / f"{MODULE}-{_key(compiler, headers + sources)}.so"
    if target.exists():
        return target
    (cache / "objects").mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        objects = [
            _made(
                cache / "objects" / f"{source.stem}-{_key(compiler, [*headers, source])}.o",
                [*compiler, *_flags(), "-c", str(source)],
            )
            for source in sources
        ]
        libraries = Path(torch.__file__).parent / "lib"
        _made(
            target,
            [
                *compiler,
                "-shared",
                *objects,
                f"-L{libraries}",
                f"-Wl,-rpath,{libraries}",
                "-ltorch",
                "-ltorch_cpu",
                "-lc10",
                "-ltorch_python",
            ],
        )
    return target


def load() -> ModuleType:
    """The extension module, from ``sys.modules`` if this process has it already."""
    if MODULE not in sys.modules:
        path = str(library())
        loader = importlib.machinery.ExtensionFileLoader(MODULE, path)
        spec = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[MODULE] = module
        loader.exec_module(module)
    return sys.modules[MODULE]
