"""What Python's own attribute assignment cannot reach: names of C types, and their constructors.

``torch.device`` must stay the same type object (isinstance, annotations, pickle, ``weights_only``, TorchScript and
dynamo all compare it by identity), yet ``torch.device("cuda")`` must give the vendor's device.  CPython keeps the
function that makes an instance in the type's ``tp_new`` slot; replacing it through ctypes keeps the type object
and can be taken back to the bit.  The offset of the slot is fixed for 64-bit CPython 3.8 to 3.13 with the
GIL; it is verified on the type in question before it is written, and afterwards.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any, Callable

from .failures import PatchError

_TP_NEW_OFFSET = 312
_TP_NEW = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)

Arguments = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class SlotError(PatchError):
    """A constructor cannot be replaced on this interpreter; the message says why."""


def type_dict(owner: type) -> dict[str, Any]:
    """The dictionary that a C type keeps its names in (its ``__dict__`` is only a read-only view)."""
    (found,) = (d for d in gc.get_referents(owner.__dict__) if isinstance(d, dict))
    return found


def set_type_name(owner: type, name: str, value: Any) -> None:
    """Put a name into a C type, and drop the interpreter's cached look-ups of it."""
    type_dict(owner)[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def delete_type_name(owner: type, name: str) -> None:
    """Take a name out of a C type again."""
    del type_dict(owner)[name]
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def supported() -> str | None:
    """None where constructors can be replaced here, otherwise the reason why not."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if sys.maxsize <= 2**32 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return "not a 64-bit interpreter"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "the free-threaded build of CPython lays types out differently"
    return None


def _python_constructor_slot() -> int | None:
    """The slot function of every class with a ``__new__`` written in Python: it calls ``__new__``, errors and all."""

    class _First:
        def __new__(cls) -> Any:
            return None

    class _Second:
        def __new__(cls) -> Any:
            return None

    slots = [ctypes.c_void_p.from_address(id(c) + _TP_NEW_OFFSET).value for c in (_First, _Second, object)]
    return slots[0] if slots[0] == slots[1] != slots[2] else None


class Constructor:
    """The ``tp_new`` slot of one C type, replaced so that the arguments are rewritten first.

    The slot gets CPython's own function for classes whose ``__new__`` is written in Python, and the type a ``__new__``
    that rewrites and then calls the C constructor.  (A ctypes callback in the slot would lose exceptions.)
    """

    def __init__(self, owner: type, rewrite: Arguments, probe: tuple[Any, ...] | None) -> None:
        """Verify the slot without changing it.

        Args:
            owner: the C type.
            rewrite: maps the call's ``(args, kwargs)`` to those that the type's own constructor gets, as a tuple of
                the two, or to a finished instance.
            probe: arguments for one construction by the slot as found; the result must be an instance of ``owner``.
                None where making one would start a device; the slot is then only looked at.

        Raises:
            SlotError: the slot cannot be verified here.
        """
        reason = supported()
        if reason is not None:
            raise SlotError(f"The constructor of {owner.__name__} cannot be replaced: {reason}.")
        self.owner = owner
        self._slot = ctypes.c_void_p.from_address(id(owner) + _TP_NEW_OFFSET)
        self._found = self._slot.value
        self._ours = _python_constructor_slot()
        if not self._found or not self._ours or self._found == self._ours:
            raise SlotError(f"{owner.__name__} has no C constructor at the expected place.")
        native = _TP_NEW(self._found)
        if probe is not None and not isinstance(native(owner, probe, None), owner):
            raise SlotError(f"The slot found in {owner.__name__} is not its constructor.")

        def construct(cls: type, /, *args: Any, **kwargs: Any) -> Any:
            made = rewrite(args, kwargs)
            if made.__class__ is not tuple:
                return made
            args, kwargs = made
            return native(cls, args, id(kwargs) if kwargs else None)

        self._probe = probe
        self._new = staticmethod(construct)
        self._found_new = type_dict(owner).get("__new__")

    def install(self) -> None:
        """Put the rewriting constructor in, and see that it constructs.

        Raises:
            PatchError: it does not; the type's own is back.
        """
        set_type_name(self.owner, "__new__", self._new)
        self._slot.value = self._ours
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(self.owner))
        if self._probe is None:
            return
        try:
            if not isinstance(self.owner(*self._probe), self.owner):
                raise PatchError(f"The constructor of {self.owner.__name__} does not take effect.")
        except BaseException:
            self.restore()
            raise

    def covered(self) -> bool:
        """True where somebody else has replaced the constructor since."""
        return self._slot.value != self._ours or type_dict(self.owner).get("__new__") is not self._new

    def restore(self) -> None:
        """Put the type's own constructor back."""
        self._slot.value = self._found
        if self._found_new is None:
            delete_type_name(self.owner, "__new__")
        else:
            set_type_name(self.owner, "__new__", self._found_new)


def class_in_front(owner: type, rewrite: Arguments, target: str) -> type:
    """A class to stand for ``owner`` where its constructor cannot be replaced; it makes ``owner``'s instances.

    isinstance, issubclass, annotations, subclasses, the class's attributes and its pickle are as with ``owner``.
    Code that compares types by identity, as torch.compile does, takes it for another class.

    Args: as of `Constructor`; target: "module:name", under which it pickles.
    """
    module, _, name = target.partition(":")

    class InFront(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any) -> Any:
            if not bases:
                return super().__new__(cls, name, bases, body)
            return type(name, tuple(owner if isinstance(base, cls) else base for base in bases), body, **options)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            made = rewrite(args, kwargs)
            return owner(*made[0], **made[1]) if made.__class__ is tuple else made

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, owner)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, owner)

        def __getattr__(cls, attribute: str) -> Any:
            return getattr(owner, attribute)

    front: type = InFront(name, (), {"__module__": module, "__doc__": owner.__doc__})
    return front


class ExceptionSlots:
    """``__new__`` and ``__init__`` of a builtin exception class, replaced by functions written in Python.

    C code raises by calling the class (``PyErr_SetString`` -> ``RuntimeError(text)``), so this sees every exception of
    exactly that class as it comes to be, and costs nothing where none does.
    """

    _OFFSETS = (("__new__", _TP_NEW_OFFSET), ("__init__", _TP_NEW_OFFSET - 16))

    def __init__(self, owner: type[BaseException], **replacements: Any) -> None:
        """Args: owner: the class; replacements: ``new`` and ``init``, plain functions of ``(cls or self, *args)``.

        Raises:
            SlotError: the slots cannot be verified here.
        """

        class _Model:
            def __new__(cls) -> Any:
                return object.__new__(cls)

            def __init__(self) -> None:
                pass

        reason = supported()
        if reason is not None:
            raise SlotError(f"The constructor of {owner.__name__} cannot be replaced: {reason}.")
        self.owner = owner
        self._parts: list[tuple[str, Any, Any, ctypes.c_void_p, int | None, int | None]] = []
        for name, offset in self._OFFSETS:
            slot = ctypes.c_void_p.from_address(id(owner) + offset)
            ours = ctypes.c_void_p.from_address(id(_Model) + offset).value
            expected = ctypes.c_void_p.from_address(id(BaseException) + offset).value
            if slot.value != expected or slot.value == ours:
                raise SlotError(f"{name} of {owner.__name__} is not at the expected place, or replaced already.")
            function = replacements[name.strip("_")]
            new = staticmethod(function) if name == "__new__" else function
            self._parts.append((name, type_dict(owner)[name], new, slot, slot.value, ours))

    def install(self) -> None:
        """Put the functions in."""
        for name, _, new, slot, _, ours in self._parts:
            set_type_name(self.owner, name, new)
            slot.value = ours

    def covered(self) -> bool:
        """True where somebody else has replaced one of them since."""
        return any(type_dict(self.owner).get(name) is not new for name, _, new, *_ in self._parts)

    def restore(self) -> None:
        """Put the class's own back."""
        for name, found, _, slot, value, _ in self._parts:
            slot.value = value
            set_type_name(self.owner, name, found)
