# demo: the whole system on this machine.  test: every check that CI runs.  Both make their own environment in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

.venv/.base: pyproject.toml setup.py $(wildcard npu_backends/cpu/kernels/*)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.dev: .venv/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: .venv/.base
	$(BIN)/hybrid demo
	@echo; echo "Next: . $(BIN)/activate, then hybrid chat smollm2-135m"

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	mkdir -p .typecheck && ln -sfn .. .typecheck/hybrid
	MYPYPATH=.typecheck $(BIN)/mypy -p hybrid

test: lint
	$(BIN)/python -m pytest -n 2

bench: .venv/.dev
	$(BIN)/python benchmarks/cpu_decode.py --json

clean:
	rm -rf .venv .typecheck build *.egg-info
