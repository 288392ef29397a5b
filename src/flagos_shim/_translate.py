"""From a vendor's exception to torch's: :func:`translate`, and the wording of out of memory.

Pure Python. torch is only ever looked up among the loaded modules, so that this file costs nothing to import and works
for logs on machines without torch.

An exception is taken for the device's only when its class is one that plugins raise (RuntimeError, or a RuntimeError
of torch's or of a plugin's) and its text *begins* with the vendor's own words, or says that torch carried it over from
somewhere else (a DataLoader worker, a DataParallel replica, the TorchScript interpreter). A user's own error that
mentions memory, or that quotes a device error in a sentence of its own, is not the device's and stays as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .errors import ErrorCode, ErrorRule, Raises, lookup
from .vendors._common_rules import DEVICE_OOM, HOST_OOM, OWN_WORDS

# torch's own carriers of somebody else's exception: torch._utils.ExceptionWrapper and the TorchScript interpreter.
_CARRIER = re.compile(
    r"\A(?:Caught \w+ [^\n]*\.\nOriginal "
    r"|The following operation failed in the TorchScript interpreter\.\n)"
)
# pybind's, before CPython 3.12, when C++ has called Python and the error is of another class than it was raised as.
_REPLACED = re.compile(
    r"\Apybind11::error_already_set: MISMATCH of original and normalized active exception types: "
    r"ORIGINAL [\w.]+ REPLACED BY [\w.]+: ([\s\S]*?)(?:\n\nAt:\n[\s\S]*)?\Z"
)
_TRACEBACK = re.compile(r"^(?:Original )?Traceback[^\n]*\(most recent call last\):$", re.MULTILINE)
# The second name is pybind's: the interpreter ran C++ that called Python, as operators written in Python do.
_RAISED = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?\w*(?:Error|Exception): "
    r"(?:(?:RuntimeError|OutOfMemoryError|AcceleratorError|DistBackendError|NotImplementedError): )?",
    re.MULTILINE,
)
# Where a sentence this module has put in front of a text may end.
_SENTENCE_END = re.compile(r"\. ")
_SENTENCE_ENDS = 4  # "CUDA out of memory. Tried to allocate 1.00 GiB. " has two, a code may hold another

_OOM_BEGINS = "CUDA out of memory."
_UNSTATED = "an amount the vendor does not state"
_SIZE = re.compile(
    r"[Tt]ried to allocate ([\d.]+ ?(?:bytes|[KMGTPE]i?B)\b|more than 1EB)"
    r"|Requested size: ([\d.]+ ?(?:bytes|[KMGTPE]i?B)\b)"
    r"|[Ff]ailed to allocate (\d+ bytes)"
)


@dataclass(frozen=True)
class Verdict:
    """What a text turned out to be. ``code`` is as the vendor prints it, ``entry`` the best description known."""

    rule: ErrorRule
    code: str
    entry: ErrorCode

    @property
    def sentence(self) -> str:
        """The standard sentence with name and code in brackets, e.g. ``Invalid argument (ACL_…, 100000)``."""
        named = ", ".join(part for part in (self.entry.name, self.code) if part)
        return f"{self.entry.summary} ({named})" if named else self.entry.summary

    @property
    def hint(self) -> str:
        """What to do, in English."""
        return " ".join(part for part in (self.entry.remedy, self.rule.hint) if part)


@lru_cache(maxsize=512)
def _compiled(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Compiled at first use: a run without errors compiles no vendor's rules."""
    return re.compile(expression, flags)


def classify(
    text: str, rules: Sequence[ErrorRule], codes: Mapping[str, ErrorCode], exception: str = ""
) -> Verdict | None:
    """The verdict of the first rule that matches ``text``, or None.

    ``exception`` is the name of the class that carried the text, for rules that are limited to one.
    """
    for rule in rules:
        if rule.exception and rule.exception != exception:
            continue
        if _compiled(rule.pattern).match(text) is None:
            continue
        code, entry = _code_in(text, rule, codes)
        if entry is None:
            return Verdict(rule, code, rule.default)
        if rule.final and not (entry.decisive and entry.raises == rule.default.raises):
            entry = replace(rule.default, name=entry.name)
        return Verdict(rule, code, entry)
    return None


def _code_in(text: str, rule: ErrorRule, codes: Mapping[str, ErrorCode]) -> tuple[str, ErrorCode | None]:
    first: tuple[str, ErrorCode | None] = ("", None)
    for expression in rule.codes:
        for match in _compiled(expression, re.MULTILINE).finditer(text):
            code = match.group(1)
            entry = lookup(code, codes, rule.scope) or lookup(code, codes)
            if entry is not None and entry.decisive:
                return code, entry
            if not first[0]:
                first = (code, entry)
    return first


def translate(
    exc: BaseException, vendor_name: str, rules: Sequence[ErrorRule], codes: Mapping[str, ErrorCode]
) -> BaseException:
    """``exc`` itself when it is not the device's error or is translated already, else a new exception to raise for it.

    ``vendor_name`` is the back end's name, ``rules`` and ``codes`` its data. The new exception follows the contract of
    :mod:`flagos_shim.errors`; its traceback is that of ``exc``, so it still ends where the error happened. To raise it:
    ``raise new`` inside the handler, or hand it to whatever reports errors. Never raises.
    """
    if not isinstance(exc, RuntimeError) or "vendor_code" in exc.__dict__:
        return exc
    origin = type(exc).__module__
    if not (origin == "builtins" or origin.startswith("torch")):
        return exc
    text = _only_text(exc)
    if not text or _quotes_another(exc, text):
        return exc
    verdict, raw = _read(text, (*rules, *OWN_WORDS), codes, type(exc).__name__)
    if verdict is None or verdict.entry.raises == "unchanged":
        return exc
    return _build(exc, text, raw, verdict, vendor_name)


def _only_text(exc: BaseException) -> str:
    return exc.args[0] if len(exc.args) == 1 and isinstance(exc.args[0], str) else ""


def _quotes_another(exc: BaseException, text: str) -> bool:
    """Somebody caught an error and raised his own around its text: his class and his words are what he wants seen."""
    inner = exc.__cause__ or exc.__context__
    quoted = _only_text(inner) if inner is not None else ""
    return len(quoted) > 15 and quoted != text and quoted in text


def _read(
    text: str, rules: Sequence[ErrorRule], codes: Mapping[str, ErrorCode], exception: str
) -> tuple[Verdict | None, str]:
    """The verdict on ``text``, and the text as the vendor wrote it: without the sentence that this module put there.

    A text is met again when its exception is copied, comes from another process, or is raised anew by the program.
    """
    for number, end in enumerate(_SENTENCE_END.finditer(text)):
        if number == _SENTENCE_ENDS:
            break
        raw = text[end.end() :]
        verdict = _carried_verdict(raw, rules, codes, exception)
        if verdict is not None and text in (f"{verdict.sentence}. {raw}", _begin_with_out_of_memory(raw)):
            return verdict, raw
    return _carried_verdict(text, rules, codes, exception), text


def _carried_verdict(
    text: str, rules: Sequence[ErrorRule], codes: Mapping[str, ErrorCode], exception: str
) -> Verdict | None:
    carried = carried_text(text)
    return classify(text, rules, codes, exception) if carried == text else _read(carried, rules, codes, exception)[0]


def carried_text(text: str) -> str:
    """The text of the exception that one of torch's carriers brought, or ``text`` itself when there is no carrier."""
    replaced = _REPLACED.match(text)
    if replaced is not None:
        return replaced[1]
    if _CARRIER.match(text) is None:
        return text
    tracebacks = list(_TRACEBACK.finditer(text))
    raised = _RAISED.search(text, tracebacks[-1].end()) if tracebacks else None
    return text if raised is None else text[raised.end() :].rstrip("\n")


def _build(exc: BaseException, text: str, raw: str, verdict: Verdict, vendor_name: str) -> BaseException:
    raises, category = verdict.entry.raises, verdict.entry.category
    told = raw != text
    if type(exc).__name__ == "OutOfMemoryError" or (told and text.startswith(_OOM_BEGINS)):
        raises, category = "out_of_memory", "resource"  # the plugin has decided
    own = verdict.rule in OWN_WORDS and carried_text(text) == text
    if told or own:
        message = text
    elif raises == "out_of_memory":
        message = _begin_with_out_of_memory(text)
    else:
        message = f"{verdict.sentence}. {text}"
    new = _class_for(raises, type(exc))(message)
    new.__dict__.update(vendor=vendor_name, vendor_code=verdict.code, category=category, hint=verdict.hint)
    if raises == "accelerator" and verdict.code.isdigit():
        new.__dict__["error_code"] = int(verdict.code)  # what torch itself sets on an AcceleratorError
    if verdict.hint and sys.version_info >= (3, 11):
        new.add_note(f"Hint: {verdict.hint}")
    if not own:
        new.__cause__ = RuntimeError(raw) if told else exc
    return new.with_traceback(exc.__traceback__)


def _class_for(raises: Raises, given: type[BaseException]) -> type[BaseException]:
    torch = sys.modules.get("torch")
    distributed = sys.modules.get("torch.distributed")
    older = getattr(getattr(torch, "cuda", None), "OutOfMemoryError", RuntimeError)  # torch 2.4 and older
    known: dict[Raises, type[BaseException]] = {
        "out_of_memory": getattr(torch, "OutOfMemoryError", older),
        "accelerator": getattr(torch, "AcceleratorError", RuntimeError),  # torch 2.8 and newer
        "distributed": getattr(distributed, "DistBackendError", RuntimeError),
        "not_implemented": NotImplementedError,
    }
    chosen = known.get(raises, RuntimeError)
    # A plugin that already raised torch's more exact class knew better.
    return given if given in known.values() and issubclass(given, chosen) else chosen


def normalise_out_of_memory(text: str) -> str:
    """The text of an out-of-memory error in the words that programs look for.

    ``CUDA out of memory. Tried to allocate 72.00 MiB. <text>``; the size is the vendor's own. Accelerate looks for
    ``CUDA out of memory.``, Lightning, toma and Ray for ``CUDA`` and ``out of memory``, each in the only argument. A
    text that begins so already, that speaks of host memory, or that no allocator wrote comes back as it is; so this
    can be applied wherever an out-of-memory error is constructed.
    """
    if text.startswith(_OOM_BEGINS) or HOST_OOM.search(text) or not DEVICE_OOM.search(text):
        return text
    return _begin_with_out_of_memory(text)


def _begin_with_out_of_memory(text: str) -> str:
    if text.startswith(_OOM_BEGINS):
        return text
    size = _SIZE.search(text)
    words = next((word for word in size.groups() if word), _UNSTATED) if size is not None else _UNSTATED
    return f"{_OOM_BEGINS} Tried to allocate {words}. {text}"
