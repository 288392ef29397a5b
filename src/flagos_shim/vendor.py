"""The contract that a vendor is written against: one frozen object, mostly data.

Silence means "the same name as in torch.cuda": a name that is in neither ``renames`` nor ``absent`` is looked up in the
vendor's own device module at run time.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .failures import FlagosShimError

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Probe:
    """How to tell, without starting a driver, whether the machine has the vendor's devices.

    Attributes:
        files: glob patterns of device files, e.g. ``/dev/davinci[0-9]*``.
        home: variables that say where the vendor's SDK is installed, e.g. ``ACME_HOME``.
        library: a library that the SDK brings, named in the advice when the plugin cannot be loaded.
    """

    files: tuple[str, ...] = ()
    home: tuple[str, ...] = ()
    library: str | None = None


@dataclass(frozen=True)
class Fused:
    """A fused operator of the plugin's that can stand for a function of torch's where it applies.

    Attributes:
        targets: the places that hold the function, e.g. ``torch.nn.functional:linear``, and where torch's C++ finds it.
        build: "module:name" of a function which is given the vendor's device type and torch's function, and returns
            one of the same signature.  That calls torch's own wherever the fused operator does not apply.
    """

    targets: tuple[str, ...]
    build: str


@dataclass(frozen=True)
class Vendor:
    """Everything the shim knows about one vendor.

    Attributes, in the order every vendor file keeps:
        name: what ``FLAGOS_DEVICE_BACKEND`` says.
        title: the vendor and chip, for people.
        aliases: other names for the same.
        package: the plugin's import name, imported only once the vendor is chosen; None where torch itself suffices.
        own_packages: further packages of the vendor's whose code is to see devices by their true name.
        requirement: what to give pip to get the plugin, for the advice; None where it is not on PyPI.
        plugin_follows_torch: True where the plugin's release number must be torch's.
        recommended_torch: the torch release that the attested plugin is for, e.g. "2.4"; None where it follows torch.
        device_type: torch's name of its devices, e.g. "npu".
        namespace: dotted name of the device module that stands for ``torch.cuda``; None where there is none.
        indexed: False where there is one device without ordinal (cpu).
        identity: True where ``torch.cuda`` already is the device (NVIDIA and HIP builds): only ``flagos`` is routed.
        probe: see Probe.
        toolkit: the name in ``torch.version`` under which the plugin gives its SDK's version, e.g. "cann".
        visible_devices: the variable that chooses cards, as CUDA_VISIBLE_DEVICES does.
        visible_ascending: True where the vendor's runtime takes only an ascending list.
        environment: CUDA variable -> the vendor's counterpart, carried over when that is unset.
        allocator_options: options of PYTORCH_CUDA_ALLOC_CONF that the vendor's allocator knows too.
        collective: name of the collective back end in torch.distributed.
        process_group: "module:class" of the plugin's process group, which stands for ``ProcessGroupNCCL``.
        trace_library: the library with which the plugin traces in torch's profiler; where it cannot be loaded,
            operators are timed with events, for which the plugin must have registered itself.
        before_load: "module:name" of a function of the plugin's that its own ``torch.load`` calls with ``map_location``
            first, for files of its older releases; torch's own ``torch.load`` stands in its place.
        amp_dtypes: the types that autocast computes in, by their names in torch; what the plugin says goes first.
        compile_backend: the vendor's best ``torch.compile`` back end; None means torch's default.
        fused: switch, e.g. "FUSED_LINEAR" -> Fused; the variable FLAGOS_<NAME>_<SWITCH>=1 asks for it.
        renames: name in torch.cuda -> dotted name in the namespace.
        lacking: "module:name" that the plugin's code uses and has forgotten to define -> the name in torch.cuda that
            it means; defined there where it is still missing.
        absent: name in torch.cuda -> what to use instead; a promise that somebody has looked.
        capability: what ``get_device_capability`` answers where the plugin gives None.
        errors: rules that recognise the vendor's error texts; for this and the next two, "module:name" may stand for
            the object, which is then imported when it is first needed: see `read`.
        error_codes: the vendor's codes and their meaning.
        fallback: a regular expression that finds, in the plugin's warnings, the operator that it computes on the CPU.
        strict: variables that make the plugin refuse to compute an operator on the CPU; set by FLAGOS_SHIM_STRICT=1.
        telemetry: the reader of the vendor's SMI tool.
        conflicts: modules that patch torch for the same purpose -> what to remove.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    package: str | None = None
    own_packages: tuple[str, ...] = ()
    requirement: str | None = None
    plugin_follows_torch: bool = False
    recommended_torch: str | None = None
    device_type: str = "cpu"
    namespace: str | None = None
    indexed: bool = True
    identity: bool = False
    probe: Probe = field(default_factory=Probe)
    toolkit: str | None = None
    visible_devices: str | None = None
    visible_ascending: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    allocator_options: tuple[str, ...] = ()
    collective: str | None = None
    process_group: str | None = None
    trace_library: str | None = None
    before_load: str | None = None
    amp_dtypes: tuple[str, ...] = ("float16", "bfloat16")
    compile_backend: str | None = None
    fused: Mapping[str, Fused] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    capability: tuple[int, int] = (8, 0)
    errors: tuple[Any, ...] | str = ()
    error_codes: Mapping[str, Any] | str = field(default_factory=dict)
    fallback: str | None = None
    strict: Mapping[str, str] = field(default_factory=dict)
    telemetry: Any | None = None
    conflicts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in (self.name, *self.aliases):
            if not _NAME.fullmatch(name):
                raise FlagosShimError(
                    f"Vendor name {name!r} is not valid: use lower-case letters, digits and _, a letter first."
                )
        both = sorted(set(self.renames) & set(self.absent))
        if both:
            raise FlagosShimError(f"Vendor {self.name!r}: {', '.join(both)} stand both in renames and in absent.")
        if self.device_type == "cuda" and not self.identity:
            raise FlagosShimError(f"Vendor {self.name!r}: device_type 'cuda' needs identity=True.")
        if self.indexed and not self.identity and self.namespace is None:
            raise FlagosShimError(f"Vendor {self.name!r}: an accelerator needs a namespace, e.g. 'torch.acme'.")

    @property
    def names(self) -> tuple[str, ...]:
        """The name and its aliases."""
        return (self.name, *self.aliases)

    def read(self, name: str) -> Any:
        """What the field ``name`` (``errors``, ``error_codes`` or ``telemetry``) holds, imported where it says where.

        Raises:
            ImportError, AttributeError: there is nothing at the place that the field names.
        """
        value = getattr(self, name)
        return at(value) if isinstance(value, str) else value


def at(place: str) -> Any:
    """The object that "module:name" names.

    Raises:
        ImportError, AttributeError: there is nothing at that place.
    """
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
