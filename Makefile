PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RTX := $(VENV)/.rtx
COMPILED := hatch_build.py $(wildcard src/tensortriage/compare/metrics/_*.[ch])
# Tests also wait for what they start, so that three keep two cores busy; each takes 400 MB.
WORKERS ?= 3
# Threads of matrix products wait by spinning, for cores that the other tests have.
export OPENBLAS_NUM_THREADS ?= 1
# Order and random numbers of tests are the same in every run, those of `make fuzz` apart.
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal --randomly-seed=1
COSTS := $(VENV)/costs.json
FUZZ_TIMES ?= 400
ifndef FUZZ_SEED
FUZZ_SEED := $(shell $(PYTHON) -c 'import random; print(random.SystemRandom().randrange(1, 2**32))')
endif

.PHONY: demo test quick near style lint unit lengthy skipped without-vnni rest torch coverage fuzz clean

demo: $(STAMP)
	$(BIN)/triage demo

# Five minutes on two cores: what every change has to pass.
test: $(STAMP)
	$(MAKE) --no-print-directory -j2 lint unit

# Half a minute: style, imports, and the tests that a change concerns, those nearest to it first.
quick: $(STAMP)
	$(MAKE) --no-print-directory -j2 style near

near: $(STAMP)
	files=$$($(BIN)/python tests/affected.py --seconds 25 --costs $(COSTS)) && \
	  { [ -z "$$files" ] || $(PYTEST) -m "not lengthy and not slow" $$files || [ $$? = 5 ]; }  # 5: there are only such

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

lint: style
	$(BIN)/python bench/lines.py --check
	$(BIN)/mypy

# Test files that take more than 5 seconds of processor time are named at the end.
unit: $(STAMP)
	$(PYTEST) -m "not lengthy" --budget=5 --costs=$(COSTS) --skipped-to=$(VENV)/skipped $(PYTEST_ARGS)

# What `make test` leaves out, which is not needed at every change.
lengthy: $(STAMP) $(RTX)
	$(PYTEST) -m lengthy $(PYTEST_ARGS)

# What the last `make test` skipped for want of a program that has been installed since.
skipped:
	! [ -s $(VENV)/skipped ] || $(PYTEST) --again=$(VENV)/skipped

# The tests of quantization, once more as on a processor without VNNI: kernels that add products in saturating int16.
without-vnni: $(STAMP)
	$(BIN)/python tests/without_vnni.py $(PYTEST) -m "not lengthy" $(wildcard tests/unit/*/quantization \
	  tests/unit/*/rungs/quantization tests/unit/tensortriage_quantize) $(PYTEST_ARGS)

# Both of these at once, as CI does.
rest: $(STAMP) $(RTX)
	$(PYTEST) --rest-of=$(VENV)/skipped $(PYTEST_ARGS)

torch: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch

# Which lines and branches no test reaches, processes that tests start included, the least covered modules first; no gate:
# what coverage puts into a process is itself what a test of imports, or of pickled functions, may find.
coverage: $(STAMP)
	$(BIN)/coverage erase
	-TRIAGE_FRESH_COMMANDS=1 $(BIN)/coverage run -m pytest $(wordlist 2,99,$(PYTEST)) $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report --sort=cover | cut -c -110 > $(VENV)/coverage
	head -n 42 $(VENV)/coverage; tail -n 4 $(VENV)/coverage

# The fuzzers with 400 times as many inputs as in CI, of a seed of this run (FUZZ_SEED repeats one), and the property tests
# with 20 times as many: hours. It tells every finding at once and goes on.
fuzz: $(STAMP)
	FUZZ_TIMES=$(FUZZ_TIMES) FUZZ_SEED=$(FUZZ_SEED) $(BIN)/pytest -q -s -p no:cacheprovider --randomly-seed=$(FUZZ_SEED) \
	  --hypothesis-seed=$(FUZZ_SEED) tests/fuzz tests/property

$(STAMP): pyproject.toml constraints.txt $(COMPILED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[openvino,dev]'
	$(BIN)/python -m compileall -q -j 2 src worker  # as pip does for what it copies
	touch $(STAMP)

# TensorRT-RTX (300 MB) builds engines without a GPU; only its tests need it.
$(RTX): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[rtx]' \
	  || echo "TensorRT-RTX cannot be installed: its tests are skipped"
	touch $(RTX)

clean:
	rm -rf $(VENV) triage-case
