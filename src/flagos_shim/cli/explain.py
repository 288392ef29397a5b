"""``flagos-diagnose --explain``: what an error code, or a text out of a log, means and what to do about it.

:func:`explain` finds the answers, :func:`main` prints them. Works without torch and without any plugin, so that a log
can be read on another machine than the one that failed.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .._translate import classify
from ..errors import ErrorCode, ErrorRule, Explanation, lookup
from ..registry import load
from ..vendor import at
from ..vendors import BUILTIN, NUMBER_SCOPES, OTHER_ERRORS
from . import _output


@dataclass(frozen=True)
class Source:
    """One vendor's error data, as :func:`explain` needs it."""

    vendor: str
    rules: Sequence[ErrorRule]
    codes: Mapping[str, ErrorCode] = field(default_factory=dict)


def _sources() -> Iterator[Source]:
    for vendor in map(load, BUILTIN.values()):
        if vendor.errors:
            yield Source(vendor.name, vendor.read("errors"), vendor.read("error_codes"))
    for name, (rules, codes) in OTHER_ERRORS.items():
        yield Source(name, at(rules), at(codes))


SOURCES = tuple(_sources())

SHOWN_CLASS = {
    "out_of_memory": "torch.cuda.OutOfMemoryError",
    "accelerator": "torch.AcceleratorError (RuntimeError before torch 2.8)",
    "not_implemented": "NotImplementedError",
    "distributed": "torch.distributed.DistBackendError",
    "runtime": "RuntimeError",
    "unchanged": "left as it is",
}
# Where a code stands in running text: a number only after words that announce one (a step count is no code).
_IN_TEXT = re.compile(
    r"(?:error ?code(?: is|:|=)?|errno:?|result ?=|aclnnStatus=|\bret(?:Code)? ?=) ?(\d{1,6})\b"
    r"|\b(E[A-Z]\d{4}|E[1-9]\d{4}(?=:)|ERR\d{5}|[A-Z]+(?:_[A-Z0-9]+){2,})\b"
)
_RAISED = re.compile(r"\b\w*(?:Error|Exception): ")
# Where the vendor's text follows the sentence that this package puts before it.
_AFTER_OURS = re.compile(r"(?<=\)\. )(?=\S)|(?<=\. )(?=\w+ out of memory\b)")
# A log is read line by line; an error's own text is never longer than this.
_MOST_LINES, _MOST_CHARACTERS = 5000, 6000


def explain(query: str, lang: str = "en", sources: Sequence[Source] = SOURCES) -> list[Explanation]:
    """What ``query`` means, the most telling answer first; an empty list when nothing in it is known.

    ``query`` is a code as printed (``507035``, ``EL0004``, ``ERR00100``, ``CNNL_STATUS_BAD_PARAM``), a public name
    (``ACL_ERROR_INVALID_PARAM``), or any text with errors in it, such as a whole log. ``lang`` is ``"en"`` or ``"zh"``.
    Raises ValueError for another language.
    """
    if lang not in ("en", "zh"):
        raise ValueError(f"explain: language {lang!r} is not known; give 'en' or 'zh'")
    query = query.strip()
    found = (list(_named(query, sources)) or list(_in_text(query, sources))) if query else []
    found.sort(key=lambda answer: not answer[2].decisive)
    seen: set[tuple[str, str, str]] = set()
    answers: list[Explanation] = []
    for vendor, code, entry, hint, hint_zh in found:
        key = (vendor, code, entry.summary)
        if key not in seen:
            seen.add(key)
            answers.append(_explanation(vendor, code, entry, hint_zh if lang == "zh" else hint, lang))
    return answers


_Found = tuple[str, str, ErrorCode, str, str]


def _named(query: str, sources: Sequence[Source]) -> Iterator[_Found]:
    """The query is a code or a public name and nothing else."""
    wanted = query.upper()
    for source in sources:
        exact = [
            entry
            for key, entry in source.codes.items()
            if wanted in (key.upper(), entry.code.upper(), entry.name.upper()) and "*" not in key
        ]
        for entry in exact:
            yield source.vendor, entry.code, entry, "", ""
        if not exact and re.fullmatch(r"\d{6}|E[A-Z1-9]\d{4}", wanted):
            family = lookup(wanted, source.codes)
            if family is not None:
                yield source.vendor, wanted, family, "", ""


def _in_text(text: str, sources: Sequence[Source]) -> Iterator[_Found]:
    for source in sources:
        yield from _by_rules(text, source)
        said_before, scoped = NUMBER_SCOPES.get(source.vendor, (None, ""))
        names = {entry.name: entry for entry in source.codes.values() if entry.name}
        for match in _IN_TEXT.finditer(text):
            number, token = match.groups()
            scope = ""
            before = text[max(0, match.start() - 300) : match.start()]
            if number is not None and said_before is not None and re.search(said_before, before):
                scope = scoped
            code = number or token
            entry = lookup(code, source.codes, scope) or names.get(code)
            if entry is not None:
                yield source.vendor, code if entry.name != code else entry.code, entry, "", ""


def _by_rules(text: str, source: Source) -> Iterator[_Found]:
    """Errors without a code: try the rules wherever an error's text may begin, in a log with anything before it."""
    raised = [match.end() for match in _RAISED.finditer(text)]
    begins = {*raised, *(match.start() for match in _AFTER_OURS.finditer(text))}
    offset = 0
    for line in text.splitlines(keepends=True)[:_MOST_LINES]:
        begins.add(offset + len(line) - len(line.lstrip()))
        offset += len(line)
    for start in sorted(begins):
        # An error's text ends where the next one is raised.
        after = bisect_right(raised, start)
        end = min(raised[after] if after < len(raised) else offset, start + _MOST_CHARACTERS)
        verdict = classify(text[start:end], source.rules, source.codes)
        if verdict is not None:
            yield source.vendor, verdict.code, verdict.entry, verdict.rule.hint, verdict.rule.hint_zh


def _explanation(vendor: str, code: str, entry: ErrorCode, hint: str, lang: str) -> Explanation:
    chinese = lang == "zh"
    return Explanation(
        vendor=vendor,
        code=code,
        name=entry.name,
        category=entry.category,
        raises=entry.raises,
        meaning=entry.summary_zh if chinese else entry.summary,
        cause=entry.cause_zh if chinese else entry.cause,
        remedy=" ".join(part for part in (entry.remedy_zh if chinese else entry.remedy, hint) if part),
        lang=lang,
    )


def render(english: Explanation, chinese: Explanation) -> str:
    """One answer as plain text, English first; the Chinese only where the terminal can show it."""
    title = ", ".join(part for part in (english.code, english.name) if part) or english.meaning
    translated = f"  含义：{chinese.meaning}\n  原因：{chinese.cause}\n  处理：{chinese.remedy}"
    return "\n".join(
        (
            f"{title} ({english.vendor})",
            f"  Meaning:   {english.meaning}",
            f"  Cause:     {english.cause}",
            f"  Remedy:    {english.remedy}",
            f"  Category:  {english.category}",
            f"  Raised as: {SHOWN_CLASS[english.raises]}",
            *([translated] if _output.can_show(translated) else []),
        )
    )


def fields(english: Explanation, chinese: Explanation) -> dict[str, str]:
    """One answer as plain data: what :func:`render` shows, the Chinese under names that end in ``_zh``."""
    return {
        **{
            name: getattr(english, name)
            for name in ("vendor", "code", "name", "meaning", "cause", "remedy", "category")
        },
        "raised_as": SHOWN_CLASS[english.raises],
        **{f"{name}_zh": getattr(chinese, name) for name in ("meaning", "cause", "remedy")},
    }


def main(argv: Sequence[str] | None = None, form: str = "text") -> int:
    """Print what the arguments mean; ``-`` reads a log from standard input.

    ``form`` is "text", or "json" for a list of :func:`fields`. Returns 0, 1 for unknown, 2 for misuse.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print("explain: give an error code, a line of a log in quotes, or - to read a log from stdin", file=sys.stderr)
        return 2
    query = sys.stdin.read() if words == ["-"] else " ".join(words)
    answers = list(zip(explain(query, "en"), explain(query, "zh")))
    if form == "json":
        _output.write(json.dumps([fields(*answer) for answer in answers], indent=2))
    elif answers:
        _output.write("\n\n".join(render(*answer) for answer in answers))
    if not answers:
        shown = query.strip()
        shown = shown if len(shown) <= 60 else f"{shown[:60]}… ({len(shown)} characters)"
        print(
            f"Unknown: {shown!r} holds no error code or error text that is known here.\n"
            "Expected a code such as 507035, EL0004, ERR00100, ACL_ERROR_INVALID_PARAM or CNNL_STATUS_BAD_PARAM, or "
            "the text of an error.\n"
            "Try the whole log: flagos-diagnose --explain - < train.log",
            file=sys.stderr,
        )
    return int(not answers)


if __name__ == "__main__":
    sys.exit(main())
