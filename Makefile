PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RTX := $(VENV)/.rtx
COMPILED := hatch_build.py $(wildcard src/tensortriage/compare/metrics/_*.[ch])
FUZZ_TIMES ?= 400

.PHONY: demo test quick lint unit coverage fuzz clean

demo: $(STAMP)
	$(BIN)/triage demo

test: lint unit

# Less than a minute: style, imports, and the tests of packages that everything rests on.
quick: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist worksteal tests/unit/values tests/unit/compare tests/unit/search tests/unit/test_layout.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(STAMP) $(RTX)
	$(BIN)/pytest -n 2 --dist worksteal $(PYTEST_ARGS)

# The fuzzers of tests/fuzz with 400 times as many inputs as in CI: hours. It tells every finding at once and goes on.
# Which lines and branches no test reaches, processes that tests start included; no gate, a page to read.
coverage: $(STAMP)
	$(BIN)/coverage erase
	TRIAGE_FRESH_COMMANDS=1 $(BIN)/coverage run -m pytest -n 2 --dist worksteal $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report | tail -n 60
	$(BIN)/coverage html --quiet

fuzz: $(STAMP)
	FUZZ_TIMES=$(FUZZ_TIMES) $(BIN)/pytest -q -s -p no:cacheprovider tests/fuzz

$(STAMP): pyproject.toml constraints.txt $(COMPILED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[openvino,dev]'
	touch $(STAMP)

# TensorRT-RTX (300 MB) builds engines without a GPU; only its tests need it.
$(RTX): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[rtx]' \
	  || echo "TensorRT-RTX cannot be installed: its tests are skipped"
	touch $(RTX)

clean:
	rm -rf $(VENV) triage-case
