"""Synthetic text images: short strings of digits and capital letters, drawn with a small bitmap font.

Nothing is downloaded.  Image ``i`` of a ``TextImages(seed)`` is always the same image, whichever worker draws it, so a
run that is resumed at image ``i`` sees what the uninterrupted run would have seen.
"""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BLANK = 0  # the class that CTC puts between characters; character number k of ALPHABET is class k + 1
HEIGHT, WIDTH = 32, 96
MIN_LENGTH, MAX_LENGTH = 3, 5

# Twelve characters a band, in the order of ALPHABET; each is 5 dots wide and 7 high.
FONT = """
.###. ..#.. .###. ####. ...#. ##### ..##. ##### .###. .###. ..#.. ####.
#...# .##.. #...# ....# ..##. #.... .#... ....# #...# #...# .#.#. #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...# #...# #...#
#.#.# ..#.. ..##. .###. #..#. ....# ####. ..#.. .###. .#### #...# ####.
##..# ..#.. .#... ....# ##### ....# #...# ..#.. #...# ....# ##### #...#
#...# ..#.. #.... ....# ...#. #...# #...# .#... #...# ...#. #...# #...#
.###. .###. ##### ####. ...#. .###. .###. .#... .###. .##.. #...# ####.

.###. ###.. ##### ##### .###. #...# .###. ..### #...# #.... #...# #...#
#...# #..#. #.... #.... #...# #...# ..#.. ...#. #..#. #.... ##.## ##..#
#.... #...# #.... #.... #.... #...# ..#.. ...#. #.#.. #.... #.#.# ##..#
#.... #...# ####. ####. #.### ##### ..#.. ...#. ##... #.... #.#.# #.#.#
#.... #...# #.... #.... #...# #...# ..#.. ...#. #.#.. #.... #...# #..##
#...# #..#. #.... #.... #...# #...# ..#.. #..#. #..#. #.... #...# #..##
.###. ###.. ##### #.... .#### #...# .###. .##.. #...# ##### #...# #...#

.###. ####. .###. ####. .#### ##### #...# #...# #...# #...# #...# #####
#...# #...# #...# #...# #.... ..#.. #...# #...# #...# #...# #...# ....#
#...# #...# #...# #...# #.... ..#.. #...# #...# #...# .#.#. .#.#. ...#.
#...# ####. #...# ####. .###. ..#.. #...# #...# #.#.# ..#.. ..#.. ..#..
#...# #.... #.#.# #.#.. ....# ..#.. #...# .#.#. #.#.# .#.#. ..#.. .#...
#...# #.... #..#. #..#. ....# ..#.. #...# .#.#. ##.## #...# ..#.. #....
.###. #.... .##.# #...# ####. ..#.. .###. ..#.. #...# #...# ..#.. #####
"""


def _parse_font(drawing: str) -> dict[str, torch.Tensor]:
    """The font as one 7 x 5 tensor of zeros and ones for each character."""
    bands = [[line.split() for line in band.split("\n")] for band in drawing.strip().split("\n\n")]
    glyphs = [["".join(rows[column]) for rows in band] for band in bands for column in range(len(band[0]))]
    return {
        character: torch.tensor([[float(dot == "#") for dot in row] for row in glyph])
        for character, glyph in zip(ALPHABET, glyphs)
    }


GLYPHS = _parse_font(FONT)


@cache
def _scaled_glyph(character: str, height: int, width: int) -> torch.Tensor:
    """The character, smoothly scaled to ``height`` x ``width`` pixels."""
    return F.interpolate(GLYPHS[character][None, None], size=(height, width), mode="bilinear", align_corners=True)[0, 0]


class TextImages(Dataset):
    """``size`` images of random strings with random scale, place, contrast, polarity and noise.

    Arguments:
        seed: which collection of images; two seeds share no image.
        size: how many images it has.
    Items are ``(image, target, length)``: a float32 tensor of 1 x HEIGHT x WIDTH, the classes of the characters padded
    with BLANK to MAX_LENGTH, and how many of them count.
    """

    def __init__(self, seed: int, size: int) -> None:
        self.seed = seed
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        if not 0 <= index < self.size:
            raise IndexError(f"image {index} of {self.size}")
        generator = torch.Generator().manual_seed(self.seed * 1_000_000_007 + index)

        def whole(low: int, high: int, count: int) -> list[int]:
            return torch.randint(low, high + 1, (count,), generator=generator).tolist()

        (length,) = whole(MIN_LENGTH, MAX_LENGTH, 1)
        classes = whole(1, len(ALPHABET), length)
        heights, widths, gaps = whole(15, 22, length), whole(11, 15, length), whole(1, 3, length)
        canvas = torch.zeros(HEIGHT, WIDTH)
        (x,) = whole(0, WIDTH - sum(widths) - sum(gaps), 1)
        baseline = 23 + whole(0, 6, 1)[0]
        for number, height, width, gap in zip(classes, heights, widths, gaps):
            top = baseline - height
            canvas[top:baseline, x : x + width] = _scaled_glyph(ALPHABET[number - 1], height, width)
            x += width + gap
        contrast, shade, noise, polarity = torch.rand(4, generator=generator).tolist()
        canvas = canvas * (0.6 + 0.4 * contrast) * (1 if polarity < 0.5 else -1) + (shade - 0.5)
        canvas = canvas + torch.randn(HEIGHT, WIDTH, generator=generator) * (0.03 + 0.09 * noise)
        target = torch.full((MAX_LENGTH,), BLANK)
        target[:length] = torch.tensor(classes)
        return canvas[None], target, length


def text_of(classes: list[int]) -> str:
    """The string that a list of classes spells, blanks left out."""
    return "".join(ALPHABET[number - 1] for number in classes if number != BLANK)
