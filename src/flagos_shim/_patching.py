"""Declarations of patches, and the ledger: the only place that assigns to objects of torch or of a plugin.

A patch says *what* is changed and *why*; how it is applied, recorded and undone is the same for all and stands here.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable

from ._context import Context
from ._importhook import when_imported
from ._slots import Constructor, SlotError, class_in_front, delete_type_name, set_type_name
from ._targets import MISSING as MISSING
from ._targets import Enrolment, dress, forget, resolve
from .failures import PatchError

Build = Callable[[Context, Any], Any]


@dataclass(frozen=True)
class Patch:
    """One change: at ``target`` ("module:qualified.name") stands afterwards what ``build(ctx, original)`` returns.

    ``also`` names other places that hold the same original.  ``verb`` is "wrap" (a function around the original),
    "replace" (another object), "provide" (the name may be absent), "construct" (``build(ctx, type)`` returns a
    rewriter of constructor arguments), "install" (``build`` returns an installer of C slots) or "enrol" (the target is
    a list, set or dict of torch's; ``build`` returns the item, or the ``(key, value)`` pair).  Where ``build`` returns
    the original, nothing is changed.  An ``optional`` target is absent on some supported torch or plugin.
    """

    target: str
    build: Build
    why: str
    verb: str = "wrap"
    also: tuple[str, ...] = ()
    optional: bool = False
    probe: tuple[Any, ...] | None = ()


class Surface:
    """The patches of one part of torch, applied together or not at all."""

    def __init__(self, name: str, *, after: str | None = None) -> None:
        """Args: name: shown by ``status``; after: the module whose import this surface waits for."""
        self.name = name
        self.after = after
        self.patches: list[Patch] = []
        self.finders: list[Callable[[Context], Iterable[Patch]]] = []
        self.forgets: list[str] = []

    def wrap(self, target: str, *, also: tuple[str, ...] = (), optional: bool = False) -> Callable[[Build], Build]:
        """Declare a function around the original; the first docstring line of ``build`` is the reason shown."""
        return self._declare("wrap", target, also, optional)

    def replace(self, target: str, *, also: tuple[str, ...] = (), optional: bool = False) -> Callable[[Build], Build]:
        """Declare another object in the original's place."""
        return self._declare("replace", target, also, optional)

    def provide(self, target: str) -> Callable[[Build], Build]:
        """Declare an object for a name that may be absent."""
        return self._declare("provide", target, (), False)

    def enrol(self, target: str, *, optional: bool = False) -> Callable[[Build], Build]:
        """Declare an item for a container of torch's."""
        return self._declare("enrol", target, (), optional)

    def construct(self, target: str, probe: tuple[Any, ...]) -> Callable[[Build], Build]:
        """Declare a rewriter of the arguments that a C type is constructed with."""

        def declare(build: Build) -> Build:
            self.patches.append(Patch(target, build, _reason(build), "construct", probe=probe))
            return build

        return declare

    def install(self, target: str, *, optional: bool = False) -> Callable[[Build], Build]:
        """Declare an object with ``install``, ``covered`` and ``restore`` for what no assignment can change."""
        return self._declare("install", target, (), optional)

    def discover(self, find: Callable[[Context], Iterable[Patch]]) -> Callable[[Context], Iterable[Patch]]:
        """Declare a function that finds further patches on the torch and plugin at hand."""
        self.finders.append(find)
        return find

    def forget(self, *targets: str) -> None:
        """Name functions ("module:function") that clear a table torch has memoised; called after apply and undo."""
        self.forgets.extend(targets)

    def _declare(self, verb: str, target: str, also: tuple[str, ...], optional: bool) -> Callable[[Build], Build]:
        def declare(build: Build) -> Build:
            self.patches.append(Patch(target, build, _reason(build), verb, also, optional))
            return build

        return declare


def _reason(build: Build) -> str:
    return (build.__doc__ or "").strip().partition("\n")[0]


@dataclass
class Entry:
    """One place that was changed: who owns the name, what the owner itself held, what stands there now.

    ``installer`` has ``install``, ``covered`` and ``restore``, where the change is not that of a name.
    """

    surface: str
    target: str
    why: str
    owner: Any
    name: str
    own: Any
    original: Any
    new: Any = None
    installer: Any = None

    def covered(self) -> bool:
        """True where something else stands in this place since."""
        if self.installer is not None:
            return bool(self.installer.covered())
        return vars(self.owner).get(self.name, MISSING) is not self.new

    def make(self) -> None:
        """Make the change."""
        if self.installer is not None:
            self.installer.install()
        else:
            assign(self.owner, self.name, self.new)

    def take_back(self) -> None:
        """Restore what was found."""
        if self.installer is not None:
            self.installer.restore()
        else:
            assign(self.owner, self.name, self.own)


class Ledger:
    """Applies surfaces and takes them back, newest first."""

    def __init__(self, ctx: Context, left: Iterable[Entry] = ()) -> None:
        """Args: ctx: the activation; left: what the ledger before this one, of the same context, left in place."""
        self.ctx = ctx
        # Where somebody has put back what we had found, there is nothing of ours to wake.
        left = [e for e in left if e.installer is None and vars(e.owner).get(e.name, MISSING) is not e.own]
        self._woken = {(id(entry.owner), entry.name): entry for entry in left}
        self.entries: list[Entry] = left
        self.left: list[Entry] = []
        self.skipped: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._cancel: list[Callable[[], None]] = []
        self._forgets: list[str] = []
        # Never held while something is imported: a surface that waits comes within the import that it waits for.
        self._lock = threading.Lock()
        self._closed = False

    def apply(self, surface: Surface) -> None:
        """Apply one surface, or queue it for the import it waits for.

        Raises:
            PatchError: a target is missing or cannot be changed; nothing of this surface is left behind.
        """
        if surface.after is None:
            self._apply_now(surface)
            return

        def later(_module: ModuleType) -> None:
            try:
                self._apply_now(surface)
            except PatchError as error:
                # Raising would make the program's own `import` fail for a part that it may not need.
                self.failures[surface.name] = str(error)
                self.ctx.log.warning("The surface %r could not be applied: %s", surface.name, error)

        self._cancel.append(when_imported(surface.after, later))

    def _apply_now(self, surface: Surface) -> None:
        fresh: list[Entry] = []
        try:
            for patch in [*surface.patches, *(p for find in surface.finders for p in find(self.ctx))]:
                self._apply_patch(surface.name, patch, fresh)
            forget(surface.forgets)
            with self._lock:
                kept = not self._closed
                if kept:
                    self.entries.extend(fresh)
                    self._forgets.extend(surface.forgets)
        except BaseException as error:
            _take_back(fresh)
            forget(surface.forgets)
            if isinstance(error, Exception):
                raise PatchError(f"Surface {surface.name!r}: {error}") from error
            raise
        if not kept:  # deactivated by another thread meanwhile
            _take_back(fresh)
            forget(surface.forgets)

    def _apply_patch(self, surface: str, patch: Patch, fresh: list[Entry]) -> None:
        shared: dict[int, Any] = {}
        for target in (patch.target, *patch.also):
            try:
                owner, name, own, original = resolve(target)
                if original is MISSING and patch.verb != "provide":
                    raise AttributeError("no such name on this torch or plugin")
            except (ImportError, AttributeError) as error:
                if patch.optional or target is not patch.target:
                    self.skipped[target] = f"absent: {error}"
                    continue
                raise PatchError(f"the target {target} is not there: {error}") from error
            woken = self._woken.get((id(owner), name))
            if woken is not None:
                made = woken.new
                shared[id(woken.original)] = made.__func__ if isinstance(made, staticmethod) else made
                continue
            entry = Entry(surface, target, patch.why, owner, name, own, original)
            if patch.verb in ("construct", "install", "enrol"):
                try:
                    entry.installer, entry.new = self._built(patch, target, original)
                except SlotError as error:
                    self.skipped[target] = str(error)
                    continue
            else:
                if id(original) not in shared:
                    shared[id(original)] = patch.build(self.ctx, original)
                    if patch.verb == "wrap" and shared[id(original)] is not original:
                        dress(shared[id(original)], original, target)
                new = shared[id(original)]
                if new is original:
                    self.skipped[target] = "torch's own does it on this back end"
                    continue
                keep = isinstance(own, staticmethod) and not isinstance(new, staticmethod)
                entry.new = staticmethod(new) if keep else new
            fresh.append(entry)
            entry.make()

    def _built(self, patch: Patch, target: str, original: Any) -> tuple[Any, Any]:
        """The installer of a patch, or what to assign instead where a constructor cannot be replaced here."""
        built = patch.build(self.ctx, original)
        if patch.verb != "construct":
            return (Enrolment(original, built) if patch.verb == "enrol" else built), None
        try:
            return Constructor(original, built, patch.probe), None
        except SlotError as error:
            self.skipped[target] = f"{error} A class stands in front of it, which torch.compile does not know."
            return None, class_in_front(original, built, target)

    def rebind(self, skip: Iterable[str]) -> None:
        """Bring names that modules took before activation (``from torch.cuda import is_available``) along.

        Args:
            skip: top-level packages whose modules keep what they hold: torch itself, the plugin, this package.
        """
        # Functions and classes only: a constant such as None has other meanings elsewhere.
        swap = {id(e.original): e for e in self.entries if isinstance(e.owner, ModuleType) and callable(e.original)}
        skipped = frozenset(skip)
        for module_name, module in list(sys.modules.items()):
            if module_name.partition(".")[0] in skipped or not isinstance(module, ModuleType):
                continue
            held = vars(module)
            # Nearly every module holds none of them, which this tells without a Python step for each of its names.
            if swap.keys().isdisjoint(map(id, list(held.values()))):
                continue
            for name, value in list(held.items()):
                found = swap.get(id(value))
                if found is not None and found.original is value and found.installer is None:
                    why = f"Taken from {found.target} before activation."
                    entry = Entry("early names", f"{module_name}:{name}", why, module, name, value, value, found.new)
                    entry.make()
                    self.entries.append(entry)

    def undo(self) -> list[str]:
        """Take everything back, newest first; return the targets that somebody else has covered since.

        A covered target is left in place: what stands on top is not ours to remove, and ours below it is dormant,
        until a ledger of the same context is given ``left``.
        """
        for cancel in self._cancel:
            cancel()
        self._cancel.clear()
        with self._lock:
            self._closed = True
        self.left = _take_back(self.entries)
        forget(self._forgets)
        return [entry.target for entry in self.left]


def _take_back(entries: list[Entry]) -> list[Entry]:
    covered = []
    while entries:
        entry = entries.pop()
        if entry.covered():
            covered.append(entry)
        else:
            entry.take_back()
    return covered


def assign(owner: Any, name: str, value: Any) -> None:
    """Set a name on a module, class or C type; MISSING takes the owner's own entry away."""
    if value is MISSING:
        try:
            delattr(owner, name)
        except TypeError:
            delete_type_name(owner, name)
        return
    try:
        setattr(owner, name, value)
    except TypeError:
        set_type_name(owner, name, value)


def iterate(surfaces: Iterable[str]) -> Iterator[Surface]:
    """Import the modules of the table of contents and give their surfaces, in order."""
    for name in surfaces:
        module = importlib.import_module(f"flagos_shim.patches.{name}")
        yield from (module.surface,) if isinstance(module.surface, Surface) else module.surface
