# make demo | make test | make peers | make kills | make lint | make docs | make bench: each makes
# its own virtual environment when there is none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# An environment without pip is what `python3 -m venv` leaves where python3-venv is missing: it is
# made again.
IS_NEW_ENOUGH := 'import sys; v = sys.version.split()[0]; sys.version_info < (3, 11) and sys.exit("binlag needs Python 3.11 or newer, not " + v + "; another one is chosen by: make PYTHON=python3.12")'
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: demo test peers kills lint docs bench clean

$(VENV)/.run: pyproject.toml constraints.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -c $(IS_NEW_ENOUGH)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.ci: $(VENV)/.dev
	$(PIP) install -c constraints.txt -e '.[ci]'
	touch $@

$(VENV)/.docs: $(VENV)/.run
	$(PIP) install -c constraints.txt -e '.[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.run
	$(PIP) install -c constraints.txt -e '.[bench]'
	touch $@

demo: $(VENV)/.run
	@$(BIN)/binlag demo

test: $(VENV)/.dev
	-$(BIN)/python docker/servers/bring.py
	$(BIN)/python -m pytest -n 3

# Every script of the servers' own test suites: some hours. What came of each is in peers.tsv.
peers: $(VENV)/.dev
	$(BIN)/python docker/servers/bring.py 9.7 5.7 mariadb peers
	$(BIN)/python -m tests.peers all --results peers.tsv

# 500 kills of real replicas, each beside the emulated one: an hour or two. SEED=20260101 draws
# others.
kills: $(VENV)/.dev
	$(BIN)/python docker/servers/bring.py 5.6 5.7 9.7 mariadb
	$(BIN)/python -m tests.replica.kills check --count 500 --seed $(or $(SEED),$(shell date +%Y%m%d)) --jobs 2 --log kills.jsonl

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/replay.py

clean:
	rm -rf $(VENV)
