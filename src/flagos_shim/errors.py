"""What an accelerator's error means, as data; and what a translated exception carries.

A vendor's plugin reports its errors as text. This module holds the two kinds of data that turn such a text into an
exception of torch's own class: :class:`ErrorRule` recognises a text, :class:`ErrorCode` says what a code in it means.
Nothing here imports torch, and a vendor author writes data only; see :class:`ErrorRule` for how.

**The contract on a translated exception.** Its class is torch's (``torch.OutOfMemoryError``,
``torch.AcceleratorError``, ``torch.distributed.DistBackendError``, ``NotImplementedError``, ``RuntimeError``; all of
them are RuntimeErrors), it has one argument, ``__cause__`` is the exception as the plugin raised it, and it has the
attributes of :class:`DeviceError`:

* ``vendor``: the back end's name, e.g. ``"ascend"``;
* ``vendor_code``: the code as the vendor prints it, always a string: ``"507035"``, ``"EL0004"``, ``"ERR00100"``,
  ``"CNNL_STATUS_BAD_PARAM"``; ``""`` where the vendor gave none;
* ``category``: ``"resource"`` (free something, then retry), ``"parameter"`` (the call or the set-up is wrong; retrying
  does not help), ``"execution"`` (a kernel or a collective failed; restart the process or the step) or ``"fatal"`` (the
  device or a link is at fault);
* ``hint``: one or two English sentences on what to do; also shown below the traceback on Python 3.11 and newer.

All four are plain strings in the exception's ``__dict__``, so they travel with pickle, and an exception pickled here
loads where this package is not installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Category = Literal["resource", "parameter", "execution", "fatal"]
"""How bad it is; see the module's docstring."""

Raises = Literal["out_of_memory", "accelerator", "not_implemented", "distributed", "runtime", "unchanged"]
"""Which class of torch's an error becomes; ``unchanged`` leaves the exception alone (e.g. host out of memory)."""

ATTRIBUTES = ("vendor", "vendor_code", "category", "hint")
"""The attributes of a translated exception."""


class DeviceError(Protocol):
    """What every translated exception offers besides being torch's class. For annotations; nothing inherits from it."""

    vendor: str
    vendor_code: str
    category: Category
    hint: str


@dataclass(frozen=True)
class ErrorCode:
    """One code of a vendor.

    ``code`` is the code as the vendor prints it and ``name`` its public name (``""`` where it has none). ``summary`` is
    the standard sentence a translated text begins with: a noun phrase, no full stop. ``cause`` and ``remedy`` are whole
    sentences. The fields ending in ``_zh`` say the same in Chinese. ``decisive`` is False for a code that only says in
    which layer it happened ("inner error"): another code in the same text is then preferred to it.
    """

    code: str
    name: str
    summary: str
    category: Category
    raises: Raises
    cause: str
    remedy: str
    summary_zh: str
    cause_zh: str
    remedy_zh: str
    decisive: bool = True


@dataclass(frozen=True)
class ErrorRule:
    """One shape of error text.

    How to write one. Copy a real text out of a log, and find the words in it that only the vendor writes.

    * ``name``: short, for tests and the documentation.
    * ``pattern``: a regular expression that must match at the *beginning* of the text, so that a user's own sentence
      which quotes the vendor's words is not taken for the device's. Where the telling words really stand further on,
      begin it with ``[\\s\\S]*?``.
    * ``default``: what the error is when the text holds no code that the vendor's table knows.
    * ``codes``: regular expressions with one group each (``re.MULTILINE`` is on), the most telling first; what a group
      holds is looked up in the vendor's table. The first decisive code wins, else the first one found.
    * ``scope``: put before a code when looking it up, for numbers that mean something else elsewhere (``"HCCL:"``).
    * ``final``: True where the class is the rule's whatever code stands in the text; a code's own sentence and category
      are then used only if the code is decisive and of the same class.
    * ``hint``, ``hint_zh``: added to the code's remedy (e.g. how to get the true place of an asynchronous error).
    * ``exception``: the rule applies only to exceptions whose class has this name.

    Rules are tried in order, the first that matches decides; put the specific before the general, and a rule whose
    default says ``unchanged`` first of all where a text must be left alone. :func:`check` finds mistakes.
    """

    name: str
    pattern: str
    default: ErrorCode
    codes: tuple[str, ...] = ()
    scope: str = ""
    final: bool = False
    hint: str = ""
    hint_zh: str = ""
    exception: str = ""


@dataclass(frozen=True)
class Explanation:
    """One answer of ``flagos-diagnose --explain``, in one language (``lang`` is ``"en"`` or ``"zh"``)."""

    vendor: str
    code: str
    name: str
    category: Category
    raises: Raises
    meaning: str
    cause: str
    remedy: str
    lang: str


class Advice(NamedTuple):
    """Cause and remedy in both languages, shared by the codes of a :func:`group`."""

    cause: str
    remedy: str
    cause_zh: str
    remedy_zh: str


def group(
    category: Category,
    raises: Raises,
    advice: Advice,
    rows: Iterable[tuple[str, str, str, str]],
    *,
    scope: str = "",
    decisive: bool = True,
) -> dict[str, ErrorCode]:
    """Codes that share category, class and advice; a row is (code, public name, summary, summary in Chinese).

    A code ending in ``*`` stands for all codes with that beginning that have no entry of their own.
    """
    return {
        scope + code: ErrorCode(
            code, name, summary, category, raises, advice.cause, advice.remedy,
            summary_zh, advice.cause_zh, advice.remedy_zh, decisive,
        )
        for code, name, summary, summary_zh in rows
    }  # fmt: skip


def code_table(*groups: Mapping[str, ErrorCode]) -> dict[str, ErrorCode]:
    """One table out of several groups. Raises ValueError naming the code that stands in two of them."""
    table: dict[str, ErrorCode] = {}
    for part in groups:
        twice = sorted(table.keys() & part.keys())
        if twice:
            raise ValueError(f"code table: {', '.join(twice)} is given twice; each code has one entry")
        table.update(part)
    return table


def lookup(code: str, codes: Mapping[str, ErrorCode], scope: str = "") -> ErrorCode | None:
    """The entry of a code: its own, else the ``*`` entry with the longest matching beginning, else None."""
    key = scope + code
    found = codes.get(key)
    length = len(key)
    while found is None and length > len(scope):
        length -= 1
        found = codes.get(key[:length] + "*")
    return found


def check(rules: Iterable[ErrorRule], codes: Mapping[str, ErrorCode]) -> list[str]:
    """The mistakes in a vendor's error data, each as a sentence; empty when there are none.

    For a vendor's own tests. Checked: that every expression compiles and every ``codes`` expression has exactly one
    group, that names of rules are unique, and that no text is missing.
    """
    mistakes: list[str] = []
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            mistakes.append(f"rule {rule.name!r}: the name is used twice")
        seen.add(rule.name)
        for expression, groups in [(rule.pattern, None), *((one, 1) for one in rule.codes)]:
            try:
                compiled = re.compile(expression)
            except re.error as error:
                mistakes.append(f"rule {rule.name!r}: {expression!r} is no regular expression: {error}")
                continue
            if groups is not None and compiled.groups != groups:
                mistakes.append(f"rule {rule.name!r}: {expression!r} has {compiled.groups} groups, expected one")
    for key, entry in [*((rule.name, rule.default) for rule in rules), *codes.items()]:
        for field in ("summary", "cause", "remedy", "summary_zh", "cause_zh", "remedy_zh"):
            if not getattr(entry, field):
                mistakes.append(f"{key!r}: {field} is empty")
    return mistakes
