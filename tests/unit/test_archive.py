"""TorchScript archives: devices are renamed where they are devices, and every other string is left alone."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile

import pytest

from flagos_shim._archive import rename_devices, rename_in_pickle


def text(value: str) -> bytes:
    """The opcode with which torch's C++ writes a string."""
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def to_cuda(device: str) -> str:
    return device.replace("npu", "cuda")


class _Torch(pickle.Unpickler):
    """Reads what a TorchScript pickle holds, as plain tuples."""

    def find_class(self, module: str, name: str) -> object:
        return lambda *args: (f"{module}.{name}", *args)

    def persistent_load(self, pid: object) -> object:
        return ("persistent", pid)


# (storage on npu:0, user's string "npu:0" (a second use of the same memo), device npu:0, user's "npu:1", device npu:1)
STORAGE = b"(" + text("storage") + b"q\x00" + text("0") + text("key") + text("npu:0") + b"q\x01" + b"K\x07tQ"
DEVICE = b"ctorch\ndevice\nq\x02" + b"(h\x01tR"
OTHER = text("npu:1") + b"q\x03" + b"h\x02(h\x03tR"
DATA = b"\x80\x02(" + STORAGE + b"h\x01" + DEVICE + OTHER + b"t."


def read(data: bytes) -> object:
    return _Torch(io.BytesIO(data)).load()


def test_devices_are_renamed_and_strings_are_not() -> None:
    storage, string, device, other, second = read(rename_in_pickle(DATA, to_cuda))
    assert storage == ("persistent", ("storage", "0", "key", "cuda:0", 7))
    assert (string, other) == ("npu:0", "npu:1")
    assert (device, second) == (("torch.device", "cuda:0"), ("torch.device", "cuda:1"))


def test_storages_can_be_left_where_they_are() -> None:
    storage, string, device, _, _ = read(rename_in_pickle(DATA, to_cuda, storages=False))
    assert storage[1][3] == string == "npu:0" and device == ("torch.device", "cuda:0")


def test_storages_can_be_renamed_in_a_way_of_their_own() -> None:
    storage, string, device, _, _ = read(rename_in_pickle(DATA, to_cuda, storages=lambda tag: f"{tag}1"))
    assert storage[1][3] == "npu:01" and string == "npu:0" and device == ("torch.device", "cuda:0")


def test_nothing_to_rename_leaves_every_byte() -> None:
    assert rename_in_pickle(DATA, lambda device: device) == DATA
    assert read(DATA) == read(rename_in_pickle(rename_in_pickle(DATA, to_cuda), lambda d: d.replace("cuda", "npu")))


def archive(**records: bytes) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, data in records.items():
            out.writestr("m/" + name.replace("_DOT_", ".").replace("__", "/"), data)
    buffer.seek(0)
    return buffer


CODE = (
    b'def make(self, d: Device=torch.device("npu:0")) -> Tensor:\n'
    b'  return torch.ones([2], device=torch.device("npu:1"), name="npu:0 and \\"npu:1\\"")\n'
)


@pytest.mark.parametrize(("code", "inside"), [(True, b"cuda:1"), (False, b"npu:1")])
def test_code_is_renamed_whole_or_only_in_defaults(code: bool, inside: bytes) -> None:
    source = archive(data_DOT_pkl=DATA, code__x_DOT_py=CODE, data__0=b"\x00npu:0\x00", version=b"10\n")
    renamed = rename_devices(source, to_cuda, storages=True, code=code)
    assert renamed is not None
    with zipfile.ZipFile(io.BytesIO(renamed)) as found:
        assert found.namelist() == ["m/data.pkl", "m/code/x.py", "m/data/0", "m/version"]
        assert found.read("m/data/0") == b"\x00npu:0\x00" and found.read("m/version") == b"10\n"
        text = found.read("m/code/x.py")
        assert b'Device=torch.device("cuda:0")' in text and b'device=torch.device("' + inside in text
        assert b'name="npu:0 and \\"npu:1\\""' in text
        for entry in found.infolist():  # torch maps records into memory
            start = entry.header_offset + 30 + len(entry.filename) + len(entry.extra)
            assert start % 64 == 0 and renamed[start : start + entry.file_size] == found.read(entry)


def test_an_archive_that_names_no_device_is_not_written_anew() -> None:
    assert rename_devices(archive(data_DOT_pkl=b"\x80\x02)."), to_cuda, storages=True, code=True) is None
