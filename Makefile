# Heliograph's everyday commands. Each does its own set-up; they need only Python >= 3.11, make and Java >= 17.
#
#   make demo      two clusters, mirrored both ways, checked byte for byte (KEEP=1 leaves it running)
#   make check     linters, types, import rules and the tests that start no broker and no Spark: below a minute, no Java
#   make test      linters, types, import rules and the whole test suite
#   make test-kerberos   logins with tickets of a real Kerberos server; needs Debian's krb5-kdc and the package gssapi
#   make test-keycloak   logins with tokens of a real Keycloak, which Maven downloads once (177 MB)
#   make test-members   several processes that share the flows of a file, killed, frozen and stopped: some minutes
#   make test-mm2-files   every file of tests/running/mm2_files with the real MirrorMaker 2 and with Heliograph: some minutes
#   make test-without-numba   fidelity, kills, compaction and mirrors with the source's offsets, without compiled code: some minutes
#   make schedules   20 000 random schedules of crashes and lost requests instead of the 1 000 of make test, without brokers (SCHEDULES=50000: more)
#   make bench     Heliograph, MirrorMaker 2 and franz-go (if there is Go) on thirteen workloads (QUICK=1: two, in four minutes; ARGS=--profile: where the time goes, with Linux's perf)
#   make bench-partitions, bench-topics, bench-offsets   thousands of partitions; of topics and groups; mirrors with the source's offsets
#   make bench-scaling   plots of cost against bytes, partitions and topics, in less than a quarter of an hour (ARGS="--only topics": one of them)
#   make bench-joining   up to which size batches cost less to join than to append
#   make flamegraph   where a lease's time goes: draws docs/pictures/flamegraph.svg anew
#   make bench-tuning   one topic with several settings (ARGS="--mm2": MirrorMaker 2 as well)
#   make bench-ledger   a ledger with 60 million gaps: start, memory, disk, translation
#   make soak      a run of 30 minutes: memory, and every record (MINUTES=5: shorter)
#   make faults    ten minutes of kills, freezes, broken networks and restarts under load, with three brokers on each side (SEED, MINUTES, FORM)
#   make pictures  redraws docs/pictures: the commands and dashboards of two flows that run for some minutes
#   make audit     known vulnerabilities of the locked packages, and a list of them (build/sbom.cdx.json, CycloneDX)
#   make install   installs the command as .venv/bin/heliograph

PYTHON  ?= python3
# How many pytest workers run side by side, each with its own brokers. More than two cores: tests often wait.
JOBS   ?= 3
SCHEDULES ?= 20000
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ARCHIVE := $(VENV)/.archived
# The tools of `make audit` have dependencies of their own, which must not mix with ours.
AUDIT  := build/audit-tools
AUDIT_TOOLS := pip-audit==2.10.1 cyclonedx-bom==7.5.0
PY_SPY := build/py-spy

.DEFAULT_GOAL := help
.PHONY: help install check-python check-java demo check test test-kerberos test-keycloak test-members test-mm2-files test-without-numba schedules lint unit docs pictures lock bench bench-partitions bench-topics bench-offsets bench-ledger bench-joining bench-tuning bench-scaling flamegraph soak faults audit clean

help:
	@sed -n 's/^#   //p' Makefile

check-python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "heliograph: no '$(PYTHON)' found. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3 ..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "heliograph: $$($(PYTHON) --version) is too old, 3.11 or newer is needed. Name one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "heliograph: this Python has no venv module (Debian and Ubuntu: apt-get install python3-venv)."; exit 1; }

check-java:
	@if [ -n "$$JAVA_HOME" ]; then java="$$JAVA_HOME/bin/java"; else java=java; fi; \
	command -v "$$java" >/dev/null 2>&1 || { \
	  echo "heliograph: no Java found. Install Java 17 or newer (OpenJDK, Temurin), or set JAVA_HOME."; exit 1; }; \
	major=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	[ "$${major:-0}" -ge 17 ] || { \
	  echo "heliograph: Java $${major:-?} is too old, 17 or newer is needed. Set JAVA_HOME to a newer one."; exit 1; }

$(STAMP): requirements.lock pyproject.toml | check-python
	@echo "heliograph: installing packages into $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src  # also where PYTHONDONTWRITEBYTECODE is set: a start takes a second less
	@$(BIN)/python -m heliograph.wire.kernels.loading || true  # compiled ahead; otherwise the first start does it
	@touch $(STAMP)

# A class data archive halves the start of Spark's JVM. It is optional, so its failure is ignored.
$(ARCHIVE): $(STAMP) | check-java
	@$(BIN)/python -m heliograph.engine.archive || true
	@touch $(ARCHIVE)

install: $(STAMP)
	@echo "heliograph: ready at $(BIN)/heliograph"

demo: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/heliograph demo $(if $(KEEP),--keep)

check: lint
	$(BIN)/pytest -q -n auto --dist loadfile --no-loadscope-reorder -m "not processes" $(ARGS)

test: check-java lint unit

# Not part of make test: they need programs that are not installed by make install, or a large download.
test-kerberos: check-java $(STAMP)
	@for program in krb5kdc kdb5_util kadmin.local kinit; do \
	  PATH="$$PATH:/usr/sbin:/sbin" command -v $$program >/dev/null || { \
	  echo "heliograph: no $$program found. Install MIT Kerberos (Debian and Ubuntu: apt-get install krb5-kdc krb5-admin-server krb5-user)."; exit 1; }; done
	@$(BIN)/python -c 'import gssapi' 2>/dev/null || { \
	  echo "heliograph: the package gssapi is missing. Install it: $(BIN)/pip install gssapi (it is compiled: Debian and Ubuntu need gcc, libkrb5-dev and python3-dev)."; exit 1; }
	$(BIN)/pytest tests/slow/test_kerberos.py $(ARGS)

test-keycloak: check-java $(STAMP)
	$(BIN)/pytest tests/slow/test_keycloak.py $(ARGS)

# make test has the rules by which flows are assigned, and those of the time that a member may act.
test-members: check-java $(STAMP) $(ARCHIVE)
	$(BIN)/pytest tests/slow/test_membership.py tests/slow/test_members.py $(ARGS)

# All files; make test tries three of them.
test-mm2-files: check-java $(STAMP) $(ARCHIVE)
	MM2_FILES=all $(BIN)/pytest tests/running/test_mm2_files.py $(ARGS)

# Tests that compare compiled code with Python are left out. Processes of tests inherit PYTHONPATH, also Spark's workers.
test-without-numba: check-java $(STAMP) $(ARCHIVE)
	PYTHONPATH=$(CURDIR)/tests/without_numba COMPILED=off $(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder \
	  tests/faults tests/copying tests/running/test_fidelity.py tests/running/test_fault_runs.py \
	  --ignore tests/copying/test_classify.py --ignore tests/copying/test_compression.py \
	  --ignore tests/copying/test_aborted_transactions.py --ignore tests/copying/test_many_gaps.py $(ARGS)

# Sets of strings have one order with a fixed hash seed: the schedules are the same each time.
schedules: $(STAMP)
	PYTHONHASHSEED=0 SCHEDULES=$(SCHEDULES) $(BIN)/pytest -q --timeout 0 tests/copying/schedules.py $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check src tests bench examples deploy
	$(BIN)/ruff format --check src tests bench examples deploy
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: check-java $(STAMP) $(ARCHIVE)
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

docs: $(STAMP)
	$(BIN)/python -m heliograph.config.show.reference > docs/configuration.md
	$(BIN)/python -m heliograph.metrics.reference > docs/metrics.md
	$(BIN)/python deploy/monitoring/dashboards.py

pictures: check-java $(STAMP) $(ARCHIVE)
	$(BIN)/python bench/pictures.py

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --extra dev --python-version 3.11 \
	  --custom-compile-command "make lock" pyproject.toml -o requirements.lock

bench: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/bench.py $(if $(QUICK),--quick) $(ARGS)

bench-partitions: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/many_partitions.py $(ARGS)

bench-topics: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/many_topics.py $(ARGS)

bench-offsets: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/kept_offsets.py $(ARGS)

bench-ledger: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/ledger.py $(ARGS)

bench-tuning: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/tuning.py $(ARGS)

bench-scaling: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/scaling.py $(ARGS)

bench-joining: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/joining.py $(ARGS)

$(PY_SPY)/.installed: Makefile | check-python
	@$(PYTHON) -m venv $(PY_SPY)
	@$(PY_SPY)/bin/python -m pip install --quiet --disable-pip-version-check py-spy==0.4.3
	@touch $@

flamegraph: check-java $(STAMP) $(ARCHIVE) $(PY_SPY)/.installed
	@$(BIN)/python bench/flamegraph.py --py-spy $(PY_SPY)/bin/py-spy $(ARGS)

soak: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/soak.py $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

# BROKEN: a build that is broken on purpose, which must be noticed. ARGS="--list" names all faults.
faults: check-java $(STAMP) $(ARCHIVE)
	@$(BIN)/python bench/run_faults.py $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(FORM),--form $(FORM)) $(if $(FAULTS),--faults $(FAULTS)) $(if $(BROKEN),--broken $(BROKEN)) $(ARGS)

$(AUDIT)/.installed: Makefile | check-python
	@$(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check $(AUDIT_TOOLS)
	@touch $@

audit: $(AUDIT)/.installed
	@$(AUDIT)/bin/python deploy/audit.py $(AUDIT)/bin

clean:
	rm -rf $(VENV) bench/.cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
