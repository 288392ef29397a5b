"""Writes ``docs/errors.md`` from the vendors' error data: ``python -m flagos_shim.cli._errors_doc > docs/errors.md``.

A test compares the file with what this prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..errors import ErrorCode
from .explain import SHOWN_CLASS, SOURCES, Source

_HEAD = """\
# Errors

<!-- Written by python -m flagos_shim.cli._errors_doc; edit the tables in src/flagos_shim/vendors instead. -->

Every device error arrives as the class that torch uses for CUDA, so that `except torch.cuda.OutOfMemoryError` and
`except RuntimeError` in an unmodified program work.

* **Out of memory** of any vendor, from any call, is `torch.cuda.OutOfMemoryError`. Its text begins
  `CUDA out of memory. Tried to allocate 72.00 MiB.` and goes on with the vendor's own text.
* **Any other device error** begins with a standard sentence and the vendor's code, for example
  `Invalid argument (ACL_ERROR_INVALID_PARAM, 100000).`, and goes on with the vendor's own text.
* Errors that are not the device's (a wrong shape, an index, the host's memory, your own) keep class and text.

A translated exception has these attributes besides, all plain strings that survive pickling:

| attribute | what |
|---|---|
| `vendor` | the back end, as `FLAGOS_DEVICE_BACKEND` names it |
| `vendor_code` | the code as the vendor prints it, e.g. `507035`, `EL0004`; empty where there is none |
| `category` | `resource`: free something, then retry. `parameter`: the call or the set-up is wrong. `execution`: a \
kernel or a collective failed, restart the process. `fatal`: the device or a link is at fault |
| `hint` | what to do |
| `__cause__` | the exception as the plugin raised it |

`flagos-diagnose --explain 507035` explains a code in English and Chinese; `flagos-diagnose --explain - < train.log`
explains every error in a log. A vendor of your own brings its tables in the same form: see `flagos_shim.errors`.
"""


def document() -> str:
    """The whole file."""
    return "\n".join((_HEAD, *(line for source in SOURCES for line in _section(source))))


def _section(source: Source) -> Iterator[str]:
    yield f"## {source.vendor}\n"
    yield "Texts that are recognised, in the order in which they are tried:\n"
    yield "| text | meaning | class | category |\n|---|---|---|---|"
    for rule in source.rules:
        entry = rule.default
        yield f"| {rule.name} | {entry.summary} | {SHOWN_CLASS[entry.raises]} | {entry.category} |"
    yield ""
    for entries in _alike(source):
        yield f"### {entries[0].category}: {SHOWN_CLASS[entries[0].raises]}\n"
        yield f"{entries[0].cause}\n"
        yield f"**Remedy.** {entries[0].remedy}\n"
        yield "| code | name | meaning |\n|---|---|---|"
        for entry in entries:
            yield f"| `{entry.code}` | {f'`{entry.name}`' if entry.name else ''} | {entry.summary} |"
        yield ""


def _alike(source: Source) -> list[list[ErrorCode]]:
    """The codes in groups that share class, category and advice."""
    groups: dict[tuple[str, str, str], list[ErrorCode]] = {}
    for entry in source.codes.values():
        groups.setdefault((entry.category, entry.raises, entry.remedy), []).append(entry)
    return list(groups.values())


if __name__ == "__main__":
    sys.stdout.write(document())
