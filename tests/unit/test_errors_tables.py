"""The vendors' error data: free of mistakes, complete, and true to the plugin's own headers."""

import ast
import importlib.util
import pathlib
import re

import pytest

import flagos_shim.errors
from flagos_shim.cli.explain import SOURCES
from flagos_shim.errors import Advice, ErrorCode, ErrorRule, check, code_table, group, lookup
from flagos_shim.vendors._ascend_errors import ERROR_CODES

HERE = pathlib.Path(flagos_shim.errors.__file__).parent
ADVICE = Advice("c", "r", "c_zh", "r_zh")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.vendor)
def test_data_has_no_mistakes(source):
    assert check(source.rules, source.codes) == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.vendor)
def test_sentences_fit_in_front_of_a_text(source):
    """A sentence becomes "<summary> (<name>, <code>). <text>" and must be recognisable as such."""
    entries = [*source.codes.values(), *(rule.default for rule in source.rules)]
    for entry in entries:
        assert re.fullmatch(r"[A-Z][^()\n]{3,79}[^.\s]", entry.summary), entry
        assert len(entry.code) + len(entry.name) < 90, entry
        for sentence in (entry.cause, entry.remedy):
            assert sentence.endswith("."), entry
        for sentence in (entry.summary_zh, entry.cause_zh, entry.remedy_zh):
            assert re.search(r"[\u4e00-\u9fff]", sentence), entry


def test_ascend_table_is_complete():
    numbers = [code for code in ERROR_CODES if code.isdigit()]
    assert len(numbers) >= 150
    assert all(ERROR_CODES[code].name for code in numbers)
    assert len({ERROR_CODES[code].name for code in numbers}) == len(numbers)


def test_ascend_names_are_those_of_the_headers():
    """Numbers and public names against the headers that the torch-npu wheel carries."""
    spec = importlib.util.find_spec("torch_npu")
    if spec is None:
        pytest.skip("no torch-npu wheel here to compare with")
    headers = pathlib.Path(spec.origin).parent / "include"
    texts = [path.read_text(encoding="utf-8") for path in (
        headers / "acl/error_codes/rt_error_codes.h", *(headers / "third_party/acl/inc/acl").glob("acl_base*.h"),
    ) if path.exists()]  # fmt: skip
    told = {
        number: name
        for text in texts
        for name, number in re.findall(r"\b(ACL_ERROR_\w+)\s*=?\s*(\d{6})", text)
        if not number.startswith("0")
    }
    assert len(told) > 150
    missing = {number: name for number, name in told.items() if number not in ERROR_CODES}
    wrong = {n: ERROR_CODES[n].name for n, name in told.items() if n in ERROR_CODES and ERROR_CODES[n].name != name}
    assert (missing, wrong) == ({}, {})


def test_lookup_prefers_the_longest_family():
    codes = group("execution", "runtime", ADVICE, [("5*", "", "Five", "五"), ("50*", "", "Fifty", "五十"),
                                                   ("507", "N", "Exact", "准")])  # fmt: skip
    assert lookup("507", codes).summary == "Exact"
    assert lookup("508", codes).summary == "Fifty"
    assert lookup("599", codes).summary == "Five"
    assert lookup("700", codes) is None
    assert lookup("", codes) is None


def test_a_scope_keeps_small_numbers_apart():
    codes = code_table(
        group("execution", "distributed", ADVICE, [("6", "HCCL_E_NOT_FOUND", "Collective", "集合")], scope="HCCL:"),
        group("execution", "runtime", ADVICE, [("6", "", "Other", "其他")]),
    )
    assert lookup("6", codes, "HCCL:").summary == "Collective"
    assert lookup("6", codes).summary == "Other"
    assert lookup("7", codes, "HCCL:") is None


def test_a_code_given_twice_is_an_error():
    one = group("execution", "runtime", ADVICE, [("1", "", "A", "甲")])
    with pytest.raises(ValueError, match="1 is given twice"):
        code_table(one, one)


def test_check_names_every_mistake():
    good = ErrorCode("", "", "S", "fatal", "runtime", "c", "r", "s", "c", "r")
    bad = ErrorCode("9", "", "S", "fatal", "runtime", "", "r", "s", "c", "r")
    rules = [ErrorRule("a", "(", good), ErrorRule("a", "x", good, codes=("no group", "(two) (groups)"))]
    mistakes = check(rules, {"9": bad})
    assert len(mistakes) == 5
    for words in ("'(' is no regular expression", "used twice", "has 0 groups", "has 2 groups", "'9': cause is empty"):
        assert any(words in mistake for mistake in mistakes), words


def test_error_data_imports_neither_torch_nor_a_plugin():
    files = [HERE / "errors.py", HERE / "_translate.py", HERE / "cli/explain.py", HERE / "cli/_errors_doc.py",
             *(HERE / "vendors").glob("_*err*.py"), *(HERE / "vendors").glob("_ascend_*.py"),
             HERE / "vendors/_common_rules.py"]  # fmt: skip
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.split(".")[0].startswith("torch")], file
