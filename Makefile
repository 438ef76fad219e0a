# Everything is set up by `make up` and `make test` themselves; only Python 3.11+ and make must be there.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
DATA ?= data
PYTEST_ARGS ?=

.PHONY: setup up test check bench clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "error: no Python from 3.11 on was found; install one, or name it with make PYTHON=..."; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt uv
	@# uv is fast and reads none of pip's settings; where it cannot reach its sources, pip does it.
	$(BIN)/uv pip install -q --no-config --python $(BIN)/python -c constraints.txt -e '.[test]' \
	  || $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

up: setup
	@$(BIN)/flashpoint up --data $(DATA)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: check
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: setup
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis
