"""``flagos-diagnose --explain``: codes, names, errors and whole logs, in English and Chinese; and docs/errors.md."""

import io
import json
import os
import pathlib
import subprocess
import sys

import pytest

from flagos_shim.cli._errors_doc import document
from flagos_shim.cli.diagnose import main as diagnose
from flagos_shim.cli.explain import explain, main

LOG = """\
step 100000 loss 0.3 pid 507123 took 207001 us
INFO 06-23 10:51:41 [model_runner.py:1000] Loading model weights took 0.9278 GB
E1129 18:22:48.922148 4975 ../torch_npu/csrc/core/npu/NPUCachingAllocator.cpp:1386] something
(Worker pid=1) ERROR 06-23 10:51:59 [engine.py:458] RuntimeError: The Inner error is reported as above. The process exits \
for this inner error, and the current working operator name is Identity.
(Worker pid=1) ERROR 06-23 10:51:59 [engine.py:458] [ERROR] 2025-06-23-10:51:59 (PID:603, Device:0, RankID:-1) ERR00100 PTA \
call acl api failed.
(Worker pid=1) ERROR 06-23 10:51:59 [engine.py:458] EZ3002: [PID: 603] 2025-06-23 Optype [TransData] is unsupported.
[rank1]: torch.OutOfMemoryError: NPU out of memory. Tried to allocate 72.00 MiB (NPU 0; 61.27 GiB total capacity)
RuntimeError: x:y.cpp:5 OPS function error: HcclAllgather, error code is 6
"""


@pytest.mark.parametrize(("query", "vendor", "name", "meaning", "meaning_zh"), [
    ("507035", "ascend", "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION", "Vector core kernel failed", "向量核执行异常"),
    (" 507035\n", "ascend", "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION", "Vector core kernel failed", "向量核执行异常"),
    ("ACL_ERROR_INVALID_PARAM", "ascend", "ACL_ERROR_INVALID_PARAM", "Invalid argument", "参数无效"),
    ("acl_error_invalid_param", "ascend", "ACL_ERROR_INVALID_PARAM", "Invalid argument", "参数无效"),
    ("EL0004", "ascend", "", "Out of device memory", "设备内存申请失败"),
    ("ERR00100", "ascend", "", "Device call failed", "调用 ACL 接口失败"),
    ("HCCL_E_TIMEOUT", "ascend", "HCCL_E_TIMEOUT", "Collective timed out", "集合通信超时"),
    ("FORCE STOP", "ascend", "", "Device tasks were stopped", "设备任务被强制终止"),
    ("CNNL_STATUS_BAD_PARAM", "mlu", "", "Invalid operator argument", "算子参数无效"),
    ("CNRT error: invalid argument.", "mlu", "cnrtErrorArgsInvalid", "Invalid argument", "参数无效"),
    ("MUSA error: an illegal memory access was encountered", "musa", "", "Device runtime error", "设备运行时错误"),
    ("GCU out of memory. Tried to allocate 1.00 GiB.", "gcu", "", "Out of device memory", "设备内存不足"),
    ("ImportError: libhccl.so: cannot open shared object file: No such file or directory", "ascend", "",
     "CANN is not found", "找不到 CANN"),
    ("Malloc pin memory failed, host out of memory, Rried to allocate size: 4096", "ascend", "", "Out of host memory",
     "主机内存不足"),
])  # fmt: skip
def test_one_question(query, vendor, name, meaning, meaning_zh):
    english, chinese = explain(query)[0], explain(query, "zh")[0]
    assert (english.vendor, english.name, english.meaning, english.lang) == (vendor, name, meaning, "en")
    assert (chinese.meaning, chinese.lang) == (meaning_zh, "zh")
    assert english.cause and english.remedy and chinese.cause and chinese.remedy


def test_a_small_number_has_every_meaning_it_can_have():
    assert {answer.vendor for answer in explain("4")} == {"ascend", "flagos"}


def test_an_unlisted_code_of_a_known_family():
    (answer,) = explain("507499")
    assert (answer.code, answer.meaning) == ("507499", "Device runtime error")


def test_a_log_gives_each_error_once_and_the_telling_ones_first():
    answers = explain(LOG)
    codes = [answer.code for answer in answers]
    assert {"EZ3002", "ERR00100", "6", ""} == set(codes)
    assert codes.index("EZ3002") < codes.index("ERR00100")
    assert len(codes) == len({(answer.vendor, answer.code, answer.meaning) for answer in answers})
    assert [answer.meaning for answer in answers if answer.code == ""] == ["Out of device memory"]
    assert [answer.name for answer in answers if answer.code == "6"] == ["HCCL_E_NOT_FOUND"]


def test_numbers_in_a_log_are_codes_only_where_the_log_says_so():
    assert explain("step 100000 took 507035 us, pid 207001") == []
    assert [answer.code for answer in explain("alloc device memory failed, runtime result = 207001[FUNC:R]")] == [
        "207001"
    ]


def test_another_language_is_refused():
    with pytest.raises(ValueError, match="give 'en' or 'zh'"):
        explain("507035", "fr")


def test_main_prints_both_languages_english_first(capsys):
    assert main(["507035"]) == 0
    out = capsys.readouterr().out
    assert out.index("Vector core kernel failed") < out.index("向量核执行异常")
    for word in ("Meaning:", "Cause:", "Remedy:", "torch.AcceleratorError", "含义", "原因", "处理"):
        assert word in out


def test_main_reads_a_log_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(LOG))
    assert main(["-"]) == 0
    assert "EZ3002 (ascend)" in capsys.readouterr().out


def test_main_joins_the_words_of_an_unquoted_text(capsys):
    assert main(["CNRT", "error:", "invalid", "argument."]) == 0
    assert "cnrtErrorArgsInvalid" in capsys.readouterr().out


@pytest.mark.parametrize("query", ["999999", "hello", "x" * 500, ""])
def test_unknown_is_said_and_exit_code_is_1(query, capsys):
    assert main([query]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Unknown: " in captured.err and "Expected a code such as 507035" in captured.err
    assert len(captured.err) < 500


def test_no_question_is_misuse(capsys):
    assert main([]) == 2
    assert "give an error code" in capsys.readouterr().err


OWN_TEXTS = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 GiB. NPU out of memory. Tried to allocate 64.00 "
    "GiB (NPU 0; 1024.00 MiB total capacity; 0 bytes already allocated)": "ascend",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ... NPU out of memory. Tried ...": "ascend",
    "CUDA out of memory. Tried to allocate 64.00 GiB. MLU out of memory. Tried to allocate 64.00 GiB. MLU 0 has": "mlu",
    "torch.AcceleratorError: Invalid argument (cnrtErrorArgsInvalid, CNRT error: invalid argument). CNRT error: invalid "
    "argument.": "mlu",
}


@pytest.mark.parametrize("text", OWN_TEXTS)
def test_a_text_that_this_package_has_translated_is_understood(text):
    assert explain(text)[0].vendor == OWN_TEXTS[text]


@pytest.mark.parametrize("words", [
    ["--format", "json", "--explain", "507035"], ["--explain", "507035", "--format", "json"],
    ["--format=json", "--explain", "error", "code", "is", "507035"],
])  # fmt: skip
def test_json_has_the_fields_of_the_text(words, capsys):
    assert diagnose(words) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert diagnose(["--explain", "507035"]) == 0
    text = capsys.readouterr().out
    assert answer["code"] == "507035" and len(answer) == 11
    assert all(value in text for value in answer.values())


def test_json_of_what_is_unknown_is_an_empty_list(capsys):
    assert diagnose(["--explain", "nonsense", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out) == [] and err.startswith("Unknown: 'nonsense'")


def started(command, **variables):
    command = command.replace("flagos-diagnose", f"{sys.executable} -m flagos_shim.cli.diagnose")
    environ = {**os.environ, **variables}
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], env=environ, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    "variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_a_terminal_without_chinese_gets_the_english(variables):
    done = started("flagos-diagnose --explain 507035", **variables)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.startswith(b"507035, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION (ascend)")
    assert b"\\u" not in done.stdout and done.stdout.isascii()
    assert json.loads(started("flagos-diagnose --format json --explain 507035", **variables).stdout)[0]["meaning_zh"]


def test_a_reader_that_stops_early_is_no_error():
    for words in ("507035", "507035 --format json"):
        done = started(f"flagos-diagnose --explain {words} | true")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_document_is_what_the_tables_say():
    path = pathlib.Path(__file__).parents[2] / "docs" / "errors.md"
    assert path.read_text(encoding="utf-8") == document(), "run: python -m flagos_shim.cli._errors_doc > docs/errors.md"
