"""The hook that waits for a module: cancellable, invisible, and safe between threads."""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Callable

import pytest

from flagos_shim import _importhook
from flagos_shim._importhook import import_first, importing, when_imported

Write = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module that can be imported during the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    written: list[str] = []

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)
        written.append(name)
        importlib.invalidate_caches()

    yield write
    for name in written:
        sys.modules.pop(name, None)


@pytest.fixture(autouse=True)
def meta_path_as_before() -> Iterator[None]:
    before = list(sys.meta_path)
    yield
    assert sys.meta_path == before


def test_calls_back_after_the_modules_own_code(write: Write) -> None:
    write("hooked_a", "value = 1\n")
    seen: list[int] = []
    when_imported("hooked_a", lambda module: seen.append(module.value))
    assert not seen
    importlib.import_module("hooked_a")
    importlib.import_module("hooked_a")
    assert seen == [1]


def test_calls_back_at_once_where_the_module_is_there() -> None:
    seen: list[ModuleType] = []
    cancel = when_imported("sys", seen.append)
    cancel()
    assert seen == [sys]


def test_a_cancelled_wait_leaves_nothing(write: Write) -> None:
    write("hooked_b", "")
    seen: list[ModuleType] = []
    cancel = when_imported("hooked_b", seen.append)
    assert _importhook._finder in sys.meta_path
    cancel()
    cancel()
    assert _importhook._finder not in sys.meta_path
    importlib.import_module("hooked_b")
    assert not seen


def test_two_wait_for_one_module(write: Write) -> None:
    write("hooked_c", "")
    seen: list[str] = []
    when_imported("hooked_c", lambda _: seen.append("first"))
    cancel = when_imported("hooked_c", lambda _: seen.append("second"))
    when_imported("hooked_c", lambda _: seen.append("third"))
    cancel()
    importlib.import_module("hooked_c")
    assert seen == ["first", "third"]


def test_the_module_keeps_its_own_loader(write: Write) -> None:
    write("hooked_d", "def function():\n    return 1\n")
    when_imported("hooked_d", lambda _: None)
    module = importlib.import_module("hooked_d")
    assert module.__spec__ is not None
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert "return 1" in inspect.getsource(module.function)
    assert importlib.reload(module) is module


def test_a_program_may_look_for_a_module_that_is_waited_for(write: Write) -> None:
    write("hooked_e", "text = 'x'\n")
    cancel = when_imported("hooked_e", lambda _: None)
    spec = importlib.util.find_spec("hooked_e")
    assert spec is not None and spec.loader is not None
    loader = copy.copy(spec).loader
    assert loader.get_source("hooked_e") == "text = 'x'\n"  # type: ignore[union-attr]
    assert not loader.is_package("hooked_e")  # type: ignore[union-attr]
    assert loader.get_filename("hooked_e") == spec.origin  # type: ignore[union-attr]
    copy.deepcopy(loader)
    assert [info.name for info in pkgutil.iter_modules([str(Path(str(spec.origin)).parent)])] == ["hooked_e"]
    assert importlib.util.find_spec("hooked_no_such_module") is None
    with pytest.raises(AttributeError, match="get_nonsense"):
        loader.get_nonsense  # type: ignore[union-attr]  # noqa: B018
    cancel()


def test_what_is_in_force_during_the_import(write: Write) -> None:
    write("hooked_f", "import builtins\nseen = list(builtins.hooked_log)\n")
    log: list[str] = []

    @contextlib.contextmanager
    def during() -> Iterator[None]:
        log.append("enter")
        yield
        log.append("leave")

    import builtins

    builtins.hooked_log = log  # type: ignore[attr-defined]
    try:
        when_imported("hooked_f", lambda module: log.append(f"after {module.seen}"), during=during)
        importlib.import_module("hooked_f")
    finally:
        del builtins.hooked_log  # type: ignore[attr-defined]
    assert log == ["enter", "leave", "after ['enter']"]


def test_a_failed_import_is_waited_for_again(write: Write, tmp_path: Path) -> None:
    write("hooked_g", "raise ValueError('not yet')\n")
    log: list[str] = []

    @contextlib.contextmanager
    def during() -> Iterator[None]:
        try:
            yield
        finally:
            log.append("left")

    when_imported("hooked_g", lambda _: log.append("after"), during=during)
    with pytest.raises(ValueError, match="not yet"):
        importlib.import_module("hooked_g")
    assert log == ["left"]
    write("hooked_g", "value = 'longer than before'\n")
    importlib.import_module("hooked_g")
    assert log == ["left", "left", "after"]


def test_a_failing_callback_fails_the_import_each_time(write: Write) -> None:
    write("hooked_h", "")
    allowed: list[bool] = []

    def after(_module: ModuleType) -> None:
        if not allowed:
            raise RuntimeError("refused")

    when_imported("hooked_h", after)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="refused"):
            importlib.import_module("hooked_h")
        assert "hooked_h" not in sys.modules
    allowed.append(True)
    importlib.import_module("hooked_h")


def test_another_threads_import_is_waited_for(write: Write) -> None:
    write("hooked_i", "import builtins\nbuiltins.hooked_gate()\ndone = True\n")
    import builtins

    inside, go_on = threading.Event(), threading.Event()

    def gate() -> None:
        inside.set()
        assert go_on.wait(20)

    builtins.hooked_gate = gate  # type: ignore[attr-defined]
    seen: list[bool] = []
    try:
        importer = threading.Thread(target=importlib.import_module, args=("hooked_i",))
        importer.start()
        assert inside.wait(20) and importing(sys.modules["hooked_i"])
        waiter = threading.Thread(target=when_imported, args=("hooked_i", lambda module: seen.append(module.done)))
        waiter.start()
        assert not seen
        go_on.set()
        importer.join(20)
        waiter.join(20)
    finally:
        del builtins.hooked_gate  # type: ignore[attr-defined]
    assert seen == [True]


def test_asking_from_within_the_import_is_answered_at_once(write: Write) -> None:
    write(
        "hooked_j",
        "from flagos_shim._importhook import when_imported\nlog = []\n"
        "when_imported('hooked_j', lambda module: module.log.append(1))\n",
    )
    assert importlib.import_module("hooked_j").log == [1]


def test_many_threads_import_while_waits_come_and_go(write: Write) -> None:
    for number in range(30):
        write(f"hooked_many_{number}", "value = 1\n")
    seen: list[str] = []
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            name = f"hooked_many_{number}"
            when_imported(name, lambda module: seen.append(module.__name__))
            importlib.import_module(name)
            when_imported("hooked_never", lambda _: None)()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors
    assert sorted(seen) == sorted(f"hooked_many_{number}" for number in range(30))


def test_removing_the_finder_does_not_shorten_the_list_another_thread_goes_through(write: Write) -> None:
    cancel = when_imported("hooked_k", lambda _: None)
    in_use = sys.meta_path
    length = len(in_use)
    cancel()
    assert len(in_use) == length and sys.meta_path is not in_use


def test_a_dotted_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooked_pkg").mkdir()
    (tmp_path / "hooked_pkg" / "__init__.py").write_text("")
    (tmp_path / "hooked_pkg" / "part.py").write_text("value = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen: list[int] = []
    when_imported("hooked_pkg.part", lambda module: seen.append(module.value))
    when_imported("hooked_pkg", lambda module: seen.append(len(module.__path__)))
    from hooked_pkg import part  # type: ignore[import-not-found]

    assert part.value == 2 and seen == [1, 2]
    for name in ("hooked_pkg", "hooked_pkg.part"):
        del sys.modules[name]


def test_a_plugin_asked_for_first_comes_second_and_runs_once(write: Write) -> None:
    write("hooked_main", "order = []\n")
    write("hooked_plugin", "import hooked_main\nhooked_main.order.append('plugin')\n")
    when_imported("hooked_main", lambda module: (module.order.append("main"), importlib.import_module("hooked_plugin")))
    import_first("hooked_plugin", "hooked_main")
    plugin = importlib.import_module("hooked_plugin")
    main = sys.modules["hooked_main"]
    assert main.order == ["main", "plugin"]
    assert plugin is sys.modules["hooked_plugin"] and plugin.hooked_main is main
    assert plugin.__spec__ is not None and type(plugin.__spec__.loader).__name__ == "SourceFileLoader"
    assert not importing(plugin)


def test_a_plugin_that_nobody_imports_along_is_found_as_ever(write: Write) -> None:
    write("hooked_main2", "")
    write("hooked_plugin2", "import sys\nhad = 'hooked_main2' in sys.modules\n")
    import_first("hooked_plugin2", "hooked_main2")
    assert importlib.import_module("hooked_plugin2").had
    cancel = import_first("hooked_plugin3", "hooked_main2")
    cancel()
    assert importlib.util.find_spec("hooked_plugin3") is None


def test_asking_where_a_plugin_is_imports_nothing(write: Write) -> None:
    write("hooked_main4", "order = []\n")
    write("hooked_plugin4", "import hooked_main4\nhooked_main4.order.append('plugin')\n")
    when_imported("hooked_main4", lambda module: module.order.append("main"))
    cancel = import_first("hooked_plugin4", "hooked_main4")
    for _ in range(2):
        spec = importlib.util.find_spec("hooked_plugin4")
        assert spec is not None and spec.loader is not None
        assert "hooked_main4" in spec.loader.get_source("hooked_plugin4")  # type: ignore[attr-defined]
        assert not {"hooked_main4", "hooked_plugin4"} & set(sys.modules)
    # What is found is still what is imported after the other, also by a program that does it by hand.
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert sys.modules["hooked_main4"].order == ["main", "plugin"]
    assert module.__spec__ is not None and type(module.__spec__.loader).__name__ == "SourceFileLoader"
    cancel()


def test_a_plugin_whose_first_import_fails_still_comes_second(write: Write) -> None:
    write("hooked_main5", "raise ValueError('not yet')\n")
    write("hooked_plugin5", "import sys\nhad = 'hooked_main5' in sys.modules\n")
    import_first("hooked_plugin5", "hooked_main5")
    with pytest.raises(ValueError, match="not yet"):
        importlib.import_module("hooked_plugin5")
    assert "hooked_plugin5" not in sys.modules
    write("hooked_main5", "value = 'longer than before'\n")
    assert importlib.import_module("hooked_plugin5").had


def test_a_plugin_that_fails_beside_another_is_not_brought_along(write: Write) -> None:
    write("hooked_main6", "runs = []\n")
    write("hooked_plugin6", "import hooked_main6\nhooked_main6.runs.append(1)\nraise OSError('no driver')\n")
    cancel = import_first("hooked_plugin6", "hooked_main6")
    for _ in range(2):
        with pytest.raises(OSError, match="no driver"):
            importlib.import_module("hooked_plugin6")
    assert sys.modules["hooked_main6"].runs == [1, 1]
    cancel()
