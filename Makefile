# Every target does its own set-up. `make demo` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Where this is set, each of the many short processes would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
# The build of an editable package warns about folders that are as they should be.
PIP := PYTHONWARNINGS='ignore:Editable installation' $(BIN)/python -m pip

.PHONY: demo test check lint mypy pyright fuzz fmt setup setup-demo clean

demo: setup-demo  ## measure an emulated internet and write a report
	@$(BIN)/pathbudget demo $(DEMO_OPTIONS)

# These hold measurements against the truth: they have the machine to themselves. All others mostly wait, and do it side
# by side. Which links a trace finds does not hang on time.
ALONE := tests/demo tests/loopback $(filter-out %_paths.py,$(wildcard tests/lab/test_truth_of_*.py)) tests/lab/test_lab_fidelity.py tests/lab/test_ssh_campaign.py

test: setup  ## all tests; the lab tests need namespaces
	@sh .ci/system-packages
ifdef TEST_OPTIONS
	@$(BIN)/python -m pytest $(TEST_OPTIONS)
else
	@$(BIN)/python -m pytest --collect-only --quiet --quiet >/dev/null || : # else each of the four compiles every test
	@$(BIN)/python -m pytest --numprocesses=4 --dist=loadfile --no-loadscope-reorder $(addprefix --ignore=,$(ALONE))
	@$(BIN)/python -m pytest $(ALONE)
endif

check: lint mypy pyright  ## lint, types, layers, spelling; -j2 runs the two type checkers at once

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	PYTHONPATH=. $(BIN)/lint-imports
	$(BIN)/codespell

mypy: setup
	$(BIN)/mypy

pyright: setup
	$(BIN)/pyright

fmt: setup  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup-demo: $(VENV)/.demo
setup: $(VENV)/.development

$(VENV)/.demo: pyproject.toml
	@sh .ci/virtual-environment "$(PYTHON)" "$(VENV)"
	@$(PIP) install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.development: pyproject.toml
	@sh .ci/virtual-environment "$(PYTHON)" "$(VENV)"
	@$(PIP) install --quiet --editable '.[all]' --group dev
	@touch $@ $(VENV)/.demo

fuzz: setup  ## every codec against coverage-guided garbage; FUZZ_OPTIONS="--seconds 600"
	@$(PIP) install --quiet --group fuzz
	@PYTHONPATH=. $(BIN)/python tests/fuzzing.py $(FUZZ_OPTIONS)

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output
