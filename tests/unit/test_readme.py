"""Both READMEs say the same: headings, commands, tables and links are in step."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def _commands(text: str) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


def _rows(text: str) -> list[str]:
    return re.findall(r"^\| (`[^|]*`(?:=\d)?) \|", text, re.MULTILINE)


@pytest.mark.parametrize(
    "part",
    [
        _commands,
        _rows,
        lambda t: [len(h.split()[0]) for h in re.findall(r"^#+ .*", t, re.MULTILINE)],
        lambda t: [link for link in re.findall(r"\]\(([^)]+)\)", t) if "README" not in link],
    ],
    ids=["commands", "table rows", "headings", "links"],
)
def test_the_two_readmes_are_in_step(part):
    assert part(ENGLISH) == part(CHINESE) != []


def test_links_and_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in (ENGLISH, CHINESE):
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert (ROOT / link).exists(), link
        for target in re.findall(r"`?make (\w+)", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_setting_and_every_back_end_is_documented():
    from flagos_shim import _settings, registry

    for setting in _settings.SETTINGS:
        assert f"`{setting.name}" in ENGLISH, setting.name
    for vendor in registry.vendors().values():
        row = next(line for line in ENGLISH.splitlines() if line.startswith(f"| `{vendor.name}` |"))
        assert all(f"`{alias}`" in row for alias in vendor.aliases), row
        for switch in vendor.fused:
            assert f"`{_settings.fused(vendor, switch).name}" in ENGLISH, switch
    assert "`FLAGOS_<BACK END>_POOL_SIZE`" in ENGLISH
