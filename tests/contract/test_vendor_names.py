"""No vendor's name stands in the code outside vendors/ and rehearse/: what differs between vendors is in their files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from flagos_shim import registry
from flagos_shim.vendors import BUILTIN

SOURCE = Path(registry.__file__).parent
AT_HOME = ("vendors", "rehearse")

# torch's own words, which two vendor objects have for their names.
TORCHS = {"cuda", "cpu", "torch", "nccl", "gloo"}
# Product names that a program may write on any vendor's device, e.g. torch.compile(backend="mlu_bangc").
ANYWHERE = {"ascend_ge", "mlu_bangc"}
# Names that torch itself has on every build: its variables, its allocator's options, its preferred libraries.
ANYWHERE |= {"PYTORCH_HIP_ALLOC_CONF", "pinned_use_hip_host_register", "release_lock_on_hipmalloc", "rocm_fa"}


def words() -> set[str]:
    """Names, aliases, device types, packages and collectives of all vendors, e.g. npu, cambricon, torch_npu, hccl."""
    found: set[str] = set()
    for vendor in map(registry.load, BUILTIN.values()):
        names = (*vendor.names, vendor.device_type, vendor.package or "", vendor.collective or "", *vendor.own_packages)
        found.update(filter(None, names))
        # The variables that carry them: PYTORCH_NPU_ALLOC_CONF is found by its part.
        found.update((vendor.visible_devices or "").lower().split("_")[:1])
    return found - TORCHS


WORDS = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(words() - {''}))})(?![a-z])", re.IGNORECASE)


def code(path: Path) -> Iterator[tuple[int, str]]:
    """Names and texts of a file with their lines; comments and docstrings, which may give an example, are left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            documentation.add(id(body[0].value))
    for node in ast.walk(tree):
        texts: list[object] = []
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            texts = [node.value]
        elif isinstance(node, ast.alias):
            texts = [node.name, node.asname]
        elif isinstance(node, (ast.Name, ast.Attribute, ast.keyword, ast.arg, ast.FunctionDef, ast.ClassDef)):
            texts = [getattr(node, field, None) for field in ("id", "attr", "arg", "name")]
        elif isinstance(node, ast.ImportFrom):
            texts = [node.module]
        for text in texts:
            if isinstance(text, str):
                yield getattr(node, "lineno", 0), text


def found_in(path: Path) -> list[str]:
    return [f"{path}:{line}: {text[:80]!r}" for line, text in code(path) if text not in ANYWHERE and WORDS.search(text)]


def test_the_words_are_those_of_the_vendors() -> None:
    assert {
        "npu",
        "ascend",
        "huawei",
        "mlu",
        "cambricon",
        "musa",
        "gcu",
        "xpu",
        "torch_npu",
        "torchair",
        "hccl",
        "cncl",
    } <= words()
    for text in (
        "npu",
        "torch.npu",
        "NPU",
        "TORCH_TRANSFER_TO_NPU",
        "npu:0",
        "from torch_npu import x",
        "a|mlu|b",
        "HCCL:",
    ):
        assert WORDS.search(text), text
    for text in ("input", "cannot", "unputdownable", "intelligent", "chip", "hipster"):
        assert not WORDS.search(text), text


def test_the_check_sees_code_and_not_comments(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""About torch.npu."""\n# npu\ndef f(npu):\n    """Like npu."""\n    return g.npu == "x npu y"\n'
        'import torch_mlu as x\nNAMES = ("ascend_ge",)\n'
    )
    assert sorted(int(line.split(":")[1]) for line in found_in(path)) == [3, 5, 5, 6]


def test_no_vendors_name_stands_outside_its_file() -> None:
    files = [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in AT_HOME]
    assert len(files) > 50
    assert [line for path in files for line in found_in(path)] == []
