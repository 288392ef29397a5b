"""Torch's own documentation of torch.compile and torch.jit, from the docstrings of the installed torch, run on cuda.

Arguments: "plain" runs each snippet as it stands; "cuda" runs it with every tensor, layer and map_location on cuda; a
file that names the snippets to run may follow.  Prints which ran, as JSON.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import textwrap
import types
import warnings
from pathlib import Path

import torch
import torch.jit

warnings.simplefilter("ignore")
WHERE = sys.argv[1]
MAKERS = {"rand", "randn", "ones", "zeros", "tensor", "empty", "full", "arange", "randint", "eye"}
LAYERS = {"Linear", "Conv2d", "BatchNorm2d", "LSTM", "Embedding", "LayerNorm"}


def documented():
    """Every public function and class of torch.compile, torch.compiler and torch.jit, by its name."""
    yield "torch.compile", torch.compile
    for module in (torch.compiler, torch.jit):
        for name in sorted(n for n in vars(module) if not n.startswith("_")):
            value = getattr(module, name)
            if callable(value) and getattr(value, "__doc__", None) and (value.__module__ or "").startswith("torch"):
                yield f"{module.__name__}.{name}", value


def snippets(doc):
    """The blocks of Python in a docstring."""
    lines = textwrap.dedent(doc if not doc[:1].strip() else "    " + doc).splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not (line.rstrip().endswith("::") or re.match(r"\s*\.\. (testcode|code-block)", line)):
            continue
        depth = len(line) - len(line.lstrip())
        block = []
        while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > depth):
            block.append(lines[at])
            at += 1
        kept = [text for text in block if not re.match(r"\s*:\w+:", text)]
        if any(text.lstrip().startswith(">>>") for text in kept):
            kept = [text.lstrip()[4:] for text in kept if text.lstrip().startswith((">>>", "... "))]
        code = textwrap.dedent("\n".join(kept)).strip()
        with contextlib.suppress(SyntaxError):
            if len(ast.parse(code).body) > 1 or "@torch" in code:
                yield code


class OnCuda(ast.NodeTransformer):
    """Puts ``device="cuda"`` into every call that makes a tensor or a layer, and cuda in the place of cpu."""

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, (ast.Name, ast.Attribute)):
            owner = ast.unparse(node.func.value)
            makes = (node.func.attr in MAKERS and owner == "torch") or (
                node.func.attr in LAYERS and owner in ("nn", "torch.nn")
            )
            if makes and not any(keyword.arg == "device" for keyword in node.keywords):
                node.keywords.append(ast.keyword("device", ast.Constant("cuda")))
        return node

    def visit_Constant(self, node):
        return ast.Constant("cuda") if node.value == "cpu" else node


wanted = json.loads(Path(sys.argv[2]).read_text()) if len(sys.argv) > 2 else None
os.chdir(tempfile.mkdtemp(prefix="flagos_shim_"))
# What the snippet of torch.jit.load expects to find.
saved = torch.jit.script(torch.nn.Linear(2, 2, device=None if WHERE == "plain" else WHERE))
torch.jit.save(saved, "scriptmodule.pt", _extra_files={"foo.txt": b"bar"})
results = {}
for name, value in documented():
    for number, code in enumerate(snippets(value.__doc__)):
        key = f"{name}#{number}"
        if wanted is not None and key not in wanted:
            continue
        tree = ast.parse(code)
        if WHERE == "cuda":
            tree = ast.fix_missing_locations(OnCuda().visit(tree))
        path = Path(f"snippet_{len(results)}.py")
        path.write_text(
            "import torch\nfrom torch import nn\nimport torch.nn as nn\n" + ast.unparse(tree)
        )  # scripting reads it
        module = types.ModuleType(path.stem)
        module.__file__ = str(path.resolve())
        sys.modules[path.stem] = module
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(path.read_text(), module.__file__, "exec"), vars(module))
            results[key] = None
        except Exception as error:
            results[key] = f"{type(error).__name__}: {error}\n{path.read_text()}"[:2500]
print(json.dumps(results))
