PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint unit clean

demo: $(STAMP)
	$(BIN)/triage demo

test: lint unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -n 2 --dist worksteal $(PYTEST_ARGS)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[openvino,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[rtx]' \
	  || echo "TensorRT-RTX cannot be installed: its tests are skipped"
	touch $(STAMP)

clean:
	rm -rf $(VENV) triage-case
