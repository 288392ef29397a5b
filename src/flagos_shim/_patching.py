"""Declarations of patches, and the ledger: the only place that assigns to objects of torch or of a plugin.

A patch says *what* is changed and *why*; how it is applied, recorded and undone is the same for all and stands here.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Optional

from ._context import Context
from ._importhook import when_imported
from ._slots import Constructor, ExceptionSlots, delete_type_name, set_type_name
from .failures import PatchError

Build = Callable[[Context, Any], Any]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


@dataclass(frozen=True)
class Patch:
    """One change: at ``target`` ("module:qualified.name") stands afterwards what ``build(ctx, original)`` returns.

    ``also`` names other places that hold the same original.  ``verb`` is "wrap" (a function around the original),
    "replace" (another object), "provide" (the name may be absent), "construct" (``build(ctx, type)`` returns a
    rewriter of constructor arguments), "install" (``build`` returns an installer of C slots) or "enrol" (the target is a list, set or dict of torch's; ``build`` returns the
    item, or the ``(key, value)`` pair).  An ``optional`` target is absent on some supported torch or plugin.
    """

    target: str
    build: Build
    why: str
    verb: str = "wrap"
    also: tuple[str, ...] = ()
    optional: bool = False
    probe: tuple[Any, ...] = ()


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

    def install(self, target: str) -> Callable[[Build], Build]:
        """Declare an object with ``install``, ``covered`` and ``restore`` for what only C slots can change."""
        return self._declare("install", target, (), False)

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
    """One place that was changed: who owns the name, what the owner itself held, what stands there now."""

    surface: str
    target: str
    why: str
    owner: Any
    name: str
    own: Any
    new: Any
    undo: Optional[Callable[[], bool]] = None
    original: Any = None
    state: str = field(default="active")


class Ledger:
    """Applies surfaces and takes them back, newest first."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.entries: list[Entry] = []
        self.skipped: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._cancel: list[Callable[[], None]] = []
        self._forgets: list[str] = []

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
        mark = len(self.entries)
        try:
            for patch in [*surface.patches, *(p for find in surface.finders for p in find(self.ctx))]:
                self._apply_patch(surface.name, patch)
        except Exception as error:
            self._undo_down_to(mark)
            raise PatchError(f"Surface {surface.name!r}: {error}") from error
        self._forgets.extend(surface.forgets)
        forget(surface.forgets)

    def _apply_patch(self, surface: str, patch: Patch) -> None:
        shared: dict[int, Any] = {}
        for target in (patch.target, *patch.also):
            try:
                owner, name, own, original = resolve(target)
            except (ImportError, AttributeError) as error:
                if patch.optional or target is not patch.target:
                    self.skipped[target] = f"absent: {error}"
                    continue
                raise PatchError(f"the target {target} is not there: {error}") from error
            if original is MISSING and patch.verb != "provide":
                if patch.optional or target is not patch.target:
                    self.skipped[target] = "absent on this torch or plugin"
                    continue
                raise PatchError(f"the target {target} is not there")
            entry = Entry(surface, target, patch.why, owner, name, own, None, original=original)
            if patch.verb in ("construct", "install"):
                built = patch.build(self.ctx, original)
                installer = Constructor(original, built, patch.probe) if patch.verb == "construct" else built
                installer.install()
                entry.undo = functools.partial(_uninstall, installer)
            elif patch.verb == "enrol":
                entry.undo = _enrol(original, patch.build(self.ctx, original))
            else:
                if id(original) not in shared:
                    new = patch.build(self.ctx, original)
                    if patch.verb == "wrap":
                        _dress(new, original, target)
                    shared[id(original)] = new
                new = shared[id(original)]
                entry.new = staticmethod(new) if isinstance(own, staticmethod) else new
                assign(owner, name, entry.new)
            self.entries.append(entry)

    def rebind(self, skip: tuple[str, ...]) -> None:
        """Bring names that modules took before activation (``from torch.cuda import is_available``) along.

        Args:
            skip: top-level packages whose modules keep what they hold: torch itself, the plugin, this package.
        """
        swap = {id(e.original): e for e in self.entries if isinstance(e.owner, ModuleType) and e.new is not None}
        for module_name, module in list(sys.modules.items()):
            if module_name.partition(".")[0] in skip or not isinstance(module, ModuleType):
                continue
            for name, value in list(vars(module).items()):
                found = swap.get(id(value))
                if found is not None and found.original is value:
                    why = f"Taken from {found.target} before activation."
                    entry = Entry("early names", f"{module_name}:{name}", why, module, name, value, found.new)
                    entry.original = value
                    assign(module, name, found.new)
                    self.entries.append(entry)

    def undo(self) -> list[str]:
        """Take everything back, newest first; return the targets that somebody else has covered since.

        A covered target is left in place: what stands on top is not ours to remove, and ours below it is dormant.
        """
        for cancel in self._cancel:
            cancel()
        self._cancel.clear()
        covered = self._undo_down_to(0)
        forget(self._forgets)
        return covered

    def _undo_down_to(self, mark: int) -> list[str]:
        covered = []
        while len(self.entries) > mark:
            entry = self.entries.pop()
            if entry.undo is not None:
                clean = entry.undo()
            elif vars(entry.owner).get(entry.name, MISSING) is not entry.new:
                clean = False
            else:
                assign(entry.owner, entry.name, entry.own)
                clean = True
            if not clean:
                covered.append(entry.target)
        return covered


def resolve(target: str) -> tuple[Any, str, Any, Any]:
    """Find a target without binding it.

    Returns:
        ``(owner, name, what the owner itself holds or MISSING, the original object or MISSING)``; a static method is
        unwrapped, a name inherited from a base class is found there.

    Raises:
        ImportError, AttributeError: the module, or the owner inside it, is not there.
    """
    module_name, _, path = target.partition(":")
    owner: Any = importlib.import_module(module_name)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    own = vars(owner).get(name, MISSING)
    original = own
    if original is MISSING and isinstance(owner, type):
        original = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), MISSING)
    if original is MISSING and isinstance(owner, ModuleType):
        original = getattr(owner, name, MISSING)  # a module with __getattr__, such as torch's lazy submodules
    return owner, name, own, original.__func__ if isinstance(original, staticmethod) else original


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


def forget(targets: Iterable[str]) -> None:
    """Call the named functions, as far as their modules have been imported."""
    for target in targets:
        module_name, _, path = target.partition(":")
        module = sys.modules.get(module_name)
        if module is not None:
            functools.reduce(lambda o, n: getattr(o, n, lambda: None), path.split("."), module)()


def _dress(new: Any, original: Any, target: str) -> None:
    """Give a stand-in the original's names, so that it pickles, prints and documents itself as torch's.

    A builtin's own qualified name does not lead back to it (``_VariableFunctionsClass.zeros``), so it gets the
    target's.  ``__wrapped__`` lets ``inspect.signature`` answer as for the original, also where that is an error.
    """
    module_name, _, path = target.partition(":")
    python = hasattr(original, "__code__")
    new.__module__ = original.__module__ if python else module_name
    new.__qualname__ = original.__qualname__ if python else path
    new.__name__ = path.rpartition(".")[2] if not python else original.__name__
    new.__doc__ = original.__doc__
    new.__wrapped__ = original


def _uninstall(installer: Constructor | ExceptionSlots) -> bool:
    if installer.covered():
        return False
    installer.restore()
    return True


def _enrol(container: Any, item: Any) -> Callable[[], bool]:
    """Put ``item`` into a list (first), set or dict, and return what takes it out again."""
    if isinstance(container, dict):
        key, value = item
        found = container.get(key, MISSING)
        container[key] = value

        def take_out() -> bool:
            if container.get(key) is not value:
                return False
            if found is MISSING:
                del container[key]
            else:
                container[key] = found
            return True

        return take_out
    add = functools.partial(container.insert, 0) if isinstance(container, list) else container.add
    add(item)

    def remove() -> bool:
        present = item in container
        if present:
            container.remove(item)
        return present

    return remove


def iterate(surfaces: Iterable[str]) -> Iterator[Surface]:
    """Import the modules of the table of contents and give their surfaces, in order."""
    for name in surfaces:
        module = importlib.import_module(f"flagos_shim.patches.{name}")
        yield from (module.surface,) if isinstance(module.surface, Surface) else module.surface
