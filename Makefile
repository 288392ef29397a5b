# Two commands for a fresh clone: `make demo` runs the main job, `make test` runs the whole test suite.
PYTHON ?= python3
VENV ?= .venv
TORCH ?= 2.13.0
PY := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: demo test lint types format bench clean

# PyPI's torch for x86-64 Linux is the CUDA build, beside which torch_npu refuses to start; so the CPU build is asked for
# by its local version, and where the configured index does not know that, from PyTorch's own index.
$(READY): pyproject.toml Makefile
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check "torch==$(TORCH)+cpu" 2>/dev/null \
	  || $(PY) -m pip install --quiet --disable-pip-version-check "torch==$(TORCH)" --extra-index-url https://download.pytorch.org/whl/cpu
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[test,tools,dev]"
	if [ "$$(uname -s)" = Linux ]; then $(PY) -m pip install --quiet --disable-pip-version-check "torch-npu==$(TORCH)" -e ".[ascend]"; fi
	touch $(READY)

demo: $(READY)
	@if $(PY) -m flagos_shim --rehearse ascend -c pass; then \
	  echo "Rehearsing Ascend: the real torch_npu plugin, host memory for the chip."; \
	  $(PY) -m flagos_shim --rehearse ascend examples/ocr/train.py --target; \
	else \
	  echo "Ascend cannot be rehearsed here (the reason stands above); running the same script on the CPU."; \
	  $(PY) -m flagos_shim --backend cpu examples/ocr/train.py --target; \
	fi

test: $(READY)
	$(PY) -m pytest -n 2 --dist loadscope

lint: $(READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(READY)
	$(PY) -m mypy

format: $(READY)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# Measures every way side by side and writes benchmarks/results.md and the table in both READMEs.
bench: $(READY)
	$(PY) benchmarks/run.py --readme

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
