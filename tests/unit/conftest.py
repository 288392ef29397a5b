"""What the unit tests share."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest

SOURCE = '''
import collections

def plain(x, *, device=None):
    """Doc of plain."""
    return ("plain", x, device)

again = plain
builtin = len
constant = None
items = ["one"]
names = {"one"}
table = {"one": 1}
calls = []

class Base:
    def method(self):
        return "base"
    @property
    def flag(self):
        return False

class Child(Base):
    @staticmethod
    def static(x):
        return ("static", x)
    @classmethod
    def make(cls):
        return cls

def memo():
    calls.append("memo")
'''


@pytest.fixture
def target() -> Iterator[types.ModuleType]:
    """A module `patched` with something of every kind in it."""
    module = types.ModuleType("patched")
    exec(SOURCE, vars(module))
    sys.modules["patched"] = module
    yield module
    del sys.modules["patched"]
