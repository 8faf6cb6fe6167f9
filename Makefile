# make            the environment, then every paper at laptop scale, then the report   (make PAPER=portfolio: one paper)
# make test       the environment, then the whole test suite
# make report     the report from what is there, the committed verdicts included
# make bench      ratios against peers; make lock: write requirements.lock anew
PYTHON ?= python3.11
VENV ?= .venv
PAPER ?= all
SCALE ?= laptop
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SNAKEMAKE := $(BIN)/python -m snakemake --profile workflow/profiles/local --quiet rules host
export PYTHONNOUSERSITE := 1

.PHONY: run test report bench lock check clean

run: $(READY)
	@$(BIN)/encore cost $(filter-out all,$(PAPER))
	@status=0; $(SNAKEMAKE) --config scale=$(SCALE) $(if $(filter-out all,$(PAPER)),'papers=[$(PAPER)]') -- all || status=$$?; \
	$(BIN)/encore report --scale $(SCALE) && exit $$status

test: $(READY)
	$(BIN)/python -m pytest $(ARGS)

report: $(READY)
	@$(BIN)/encore report --scale $(SCALE)

bench: $(READY)
	@for file in tests/benchmarks/bench_*.py; do echo "== $$file"; PYTHONPATH=. OMP_NUM_THREADS=1 $(BIN)/python $$file || exit 1; done

check:
	@command -v $(PYTHON) > /dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "make: $(PYTHON) is not Python 3.11, for which requirements.lock was made" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo "make: Python's venv module is missing: on Debian and Ubuntu, apt-get install python3.11-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import shutil, sys; sys.exit(shutil.disk_usage(".").free < 6e9)' || { echo "make: less than 6 GB are free here: the environment needs 3.5 GB, artifacts the rest" >&2; exit 1; }

$(READY): requirements.lock pyproject.toml | check
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	sed -n 's/^# no-deps: //p' requirements.lock | xargs $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Resolve pyproject.toml anew, keeping what is locked where it still fits.
lock: | check
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet -c requirements.lock 'setuptools>=77' -e '.[peers,llm,dev]'
	{ sed -n '/^#/p' requirements.lock; $(VENV)-lock/bin/python -m pip freeze --exclude-editable --exclude encore | sed 's/+cpu$$//'; $(VENV)-lock/bin/python -m pip freeze --all | grep -E '^setuptools=='; } > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean:
	rm -rf .snakemake results/smoke
