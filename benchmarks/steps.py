"""Training steps that are timed whole: the text recogniser of ``examples/ocr`` and a small transformer.

Two interpreters with the same program differ by several per cent, by where their memory happens to lie.  So one
interpreter takes its steps in turns, under the shim by ``cuda`` and without it by the plugin's name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable

_OCR = Path(__file__).parent.parent / "examples" / "ocr"


def ocr(device: str) -> Callable[[str], None]:
    """A step of the recogniser of ``examples/ocr``, with its model, its loss and its optimizer."""
    import torch

    sys.path.insert(0, str(_OCR))
    from model import Recogniser, ctc_loss  # type: ignore[import-not-found]
    from synth import TextImages  # type: ignore[import-not-found]

    torch.manual_seed(0)
    images, targets, lengths = next(iter(torch.utils.data.DataLoader(TextImages(0, 16), batch_size=16)))
    model = Recogniser().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(name: str) -> None:
        where = torch.device(name)
        optimizer.zero_grad(set_to_none=True)
        output = model(images.to(where, non_blocking=True))
        loss = ctc_loss(output, targets.to(where), lengths.to(where)) / 16
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()

    return step


def transformer(device: str) -> Callable[[str], None]:
    """A step of a two-layer transformer encoder that makes its mask and its targets on the device by name."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False
    )
    model = nn.Sequential(nn.Embedding(100, 64), encoder, nn.Linear(64, 100)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    words = torch.randint(0, 100, (8, 33))

    def step(name: str) -> None:
        batch = words.to(name)
        mask = torch.triu(torch.ones(32, 32, device=name, dtype=torch.bool), diagonal=1)
        optimizer.zero_grad(set_to_none=True)
        hidden = model[1](model[0](batch[:, :-1]), mask=mask)
        output = model[2](hidden)
        loss = nn.functional.cross_entropy(output.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    return step


def add(device: str, names: dict[str, Any]) -> None:
    """Put the steps into a namespace of timed expressions."""
    names.update(ocr_step=ocr(device), transformer_step=transformer(device))
