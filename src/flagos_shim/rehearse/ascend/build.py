"""Compiles the runtime, once, into the user's cache: the shared libraries that the installed torch_npu links to.

What torch_npu links to beyond what the C files define gets a stub that returns 0, so that one source serves several
releases of torch_npu.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import tempfile

from .. import options
from ..errors import RehearsalError
from . import elf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ("runtime.c", "memory.c", "injection.c", "graph.c", "hccl.c")
MARK = "flagos_shim_rehearsal"  # a file in each home built here, by which a home is known from a real CANN
_OURS = re.compile(r"(acl\w|rt[A-Z]|Msprof|Hccl|ge[A-Z]|_ZN2ge)\w+$")
# torch_npu for torch 2.4 links to C++ classes of the graph engine; these two hold a shared pointer, which is none.
_CONSTRUCTOR = re.compile(r"_ZN2ge(12AscendString|8Operator)C[12]E")
_SYSTEM = re.compile(r"(lib(stdc\+\+|m|gcc_s|c|pthread|dl|rt|gomp)\.so|ld-linux)")
# Opened by name at run time, so that no file of torch_npu says it needs them.
_OPENED = ("libacl_tdt_channel.so", "libhcomm.so", "libruntime.so", "libopapi.so", "libmsprofiler.so")
_OPERATOR = rb"\x00(aclnn\w+)GetWorkspaceSize\x00"
_OPERATOR_ARGUMENTS = (
    *("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateFloatArray", "aclCreateBoolArray"),
    *("aclCreateTensorList", "aclCreateScalarList"),
)
# torch_npu reads the release of CANN from here to choose among its code paths.
_CANN_RELEASE = "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\ninnerversion=V100R001C83\narch={arch}\nos=linux\n"


def is_ours(home: str | pathlib.Path) -> bool:
    """Return whether ``home`` is a CANN home that was built here."""
    return (pathlib.Path(home) / MARK).exists()


def compiler(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the C compiler: the variable CC, else cc, gcc or clang; RehearsalError without one."""
    chosen = shlex.split(environ.get("CC", ""))
    missing = f"CC={chosen[0]} was not found" if chosen else "neither cc, gcc nor clang was found"
    for command in [chosen] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0], path=environ.get("PATH")):
            return command
    raise RehearsalError(
        f"Rehearsing Ascend needs a C compiler, once, and {missing}. Install one:\n"
        "    apt-get install gcc libc6-dev        (Debian, Ubuntu)\n"
        "    dnf install gcc glibc-devel          (Fedora, openEuler)"
    )


def _package(name: str) -> pathlib.Path:
    spec = importlib.machinery.PathFinder.find_spec(name)
    if spec is None or spec.origin is None:
        raise RehearsalError(f"Rehearsing Ascend needs {name}, which is not installed here.")
    return pathlib.Path(spec.origin).parent


def _plugin_libraries() -> list[pathlib.Path]:
    plugin = _package("torch_npu")
    return sorted([*plugin.glob("lib/*.so"), *plugin.glob("_C*.so")])


def _home(environ: Mapping[str, str]) -> pathlib.Path:
    """Return where the build of these sources for the installed torch_npu belongs."""
    digest = hashlib.sha256(platform.machine().encode())
    for name in (*SOURCES, "rehearse.h", "build.py"):
        digest.update((HERE / name).read_bytes())
    for file in _plugin_libraries():
        digest.update(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}".encode())
    return pathlib.Path(options.cache_folder(environ)) / "rehearse" / f"ascend-{digest.hexdigest()[:16]}"


def is_built(environ: Mapping[str, str]) -> bool:
    """Return whether nothing is left to compile."""
    return is_ours(_home(environ))


def libraries(home: pathlib.Path, operators_fail: bool) -> list[pathlib.Path]:
    """Return the libraries of ``home`` in the order in which they are to be loaded.

    With ``operators_fail`` the operator library is one that has every operator, and each fails; else it has none, and
    torch_npu says so.
    """
    found = {file.name: file for file in sorted(home.glob("lib64/lib*.so"))}
    first = found.pop("libascendcl.so")
    if operators_fail:
        found["libopapi.so"] = home / "opapi/libopapi.so"
    return [first, *found.values()]


def build(environ: Mapping[str, str]) -> pathlib.Path:
    """Return a CANN home (``lib64/`` with the built libraries), building it where that is not done yet.

    Several processes may call it at once. A build that fails leaves nothing behind; RehearsalError then has the
    compiler's message.
    """
    home = _home(environ)
    if is_ours(home):
        return home
    command = compiler(environ)
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with _locked(home.parent / ".lock"):
            if not is_ours(home):
                with tempfile.TemporaryDirectory(dir=home.parent, prefix=".building-") as scratch:
                    made = pathlib.Path(scratch) / "home"
                    _fill(made, command)
                    os.replace(made, home)
    except OSError as error:
        raise RehearsalError(
            f"The runtime for the rehearsal could not be written to {home.parent}: {error}. "
            "Set FLAGOS_SHIM_CACHE to a folder that can be written to."
        ) from error
    return home


@contextlib.contextmanager
def _locked(file: pathlib.Path) -> Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _compile(command: list[str], *arguments: str) -> None:
    line = [*command, "-shared", "-fPIC", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RehearsalError(
            f"The runtime for the rehearsal could not be compiled. The command was\n    {shlex.join(line)}\n"
            f"and the compiler said\n{done.stdout}{done.stderr}"
        )


def _operator_library(home: pathlib.Path, command: list[str], runtime: pathlib.Path) -> None:
    """Make the libopapi.so for operators that shall fail: it has all of them, and each answers with a code."""
    names = {match[1].decode() for file in _plugin_libraries() for match in re.finditer(_OPERATOR, file.read_bytes())}
    source = home / "opapi.c"
    source.write_text(
        "int rehearse_operator(const char *name);\nstatic char some;\n"
        + "".join(f"void *{name}(void) {{ return &some; }}\n" for name in _OPERATOR_ARGUMENTS)
        + "".join(
            f'int {name}GetWorkspaceSize(void) {{ return rehearse_operator("{name}"); }}\n'
            f"int {name}(void) {{ return 0; }}\n"
            for name in sorted(names)
        )
    )
    folder = home / "opapi"
    folder.mkdir()
    link = [f"-L{runtime}", "-l:libascendcl.so", "-Wl,-rpath,$ORIGIN/../lib64"]
    _compile(command, "-Wl,-soname,libopapi.so", "-o", str(folder / "libopapi.so"), str(source), *link)


def _fill(home: pathlib.Path, command: list[str]) -> None:
    out = home / "lib64"
    for folder in (out, home / "runtime", home / "compiler", home / "opp"):
        folder.mkdir(parents=True)
    arch = platform.machine()
    release = home / f"{arch}-linux"
    release.mkdir()
    (release / "ascend_toolkit_install.info").write_text(_CANN_RELEASE.format(arch=arch))
    plugin = _plugin_libraries()
    torch = sorted(_package("torch").glob("lib/*.so*"))
    linkage = [elf.read(file) for file in plugin]
    names = {file.name for file in [*torch, *plugin]}
    wanted = {name for library in linkage for name in library.needed if not _SYSTEM.match(name)} - names
    main = out / "libascendcl.so"
    sources = [str(HERE / name) for name in SOURCES]
    common = ["-O2", "-std=gnu11", "-Wl,-soname,libascendcl.so", "-o", str(main), *sources]
    _compile(command, *common, "-lpthread", "-lrt", "-lm")
    undefined = {name for library in linkage for name in library.undefined if _OURS.match(name)}
    undefined -= elf.read(main).defined
    undefined -= {name for library in linkage for name in library.defined}
    undefined -= {name for file in torch for name in elf.read(file).defined}
    stubs = home / "stubs.c"
    stub = "long {}(void) {{ return 0; }}\n"
    made = "void {}(void **self) {{ self[0] = self[1] = 0; }}\n"
    stubs.write_text("".join((made if _CONSTRUCTOR.match(name) else stub).format(name) for name in sorted(undefined)))
    _compile(command, *common, str(stubs), "-lpthread", "-lrt", "-lm")
    empty = home / "empty.c"
    empty.write_text("int flagos_shim_rehearsal;\n")
    for name in sorted((wanted | set(_OPENED)) - {main.name}):
        link = ["-Wl,--no-as-needed", f"-L{out}", "-l:libascendcl.so", "-Wl,-rpath,$ORIGIN"]
        _compile(command, f"-Wl,-soname,{name}", "-o", str(out / name), str(empty), *link)
    _operator_library(home, command, out)
    (home / MARK).write_text("Built by flagos_shim for rehearsals; not CANN.\n")
