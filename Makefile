# Everything a developer types. `make help` lists the verbs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
PYTHON ?= python3

.PHONY: help setup setup-cluster lint type test unit simulate fuzz reliability-release broker spark cluster demo bench crds systems requirements clean

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.ready ## make .venv with everything that is locked; the command is .venv/bin/pconsumer

.venv/.ready: uv.lock pyproject.toml .ci/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make setup PYTHON=python3.11")'
	@test -x .venv/bin/uv || { $(PYTHON) -m venv .venv && .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/uv.txt; }
	@.venv/bin/uv sync --quiet --frozen --all-extras
	@touch $@

setup-cluster: ## install what a cluster on this machine needs (Debian, as root); not needed with kind or a kubeconfig
	@.ci/setup-cluster.sh

lint: setup ## ruff, format and the architecture's arrows
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/lint-imports

type: setup ## mypy and pyright, both strict
	@.venv/bin/mypy
	@.venv/bin/pyright

test: setup ## every tier that this machine can run, tier by tier; REQUIRE=all fails when one is missing
	@$(PY) -m tests.run $(if $(REQUIRE),--require $(REQUIRE))

unit: setup ## the unit tier alone
	@$(PY) -m tests.run unit

simulate: setup ## 20,000 seeded runs of the core under faults, each replayable; writes docs/reliability.md
	@$(PY) -m tests.support.simulation run --seeds 20000 --write

fuzz: setup ## commit metadata from a coverage-guided fuzzer, for 60 s; writes docs/reliability.md
	@$(PY) -m tests.support.metadata_fuzz --write

mutation: setup ## change the core in some 1,600 small ways, one at a time, and count what the tests notice (half an hour); writes docs/mutation.md
	@$(PY) -m tests.support.mutation

reliability-release: setup ## every fault with a release's figures, a million seeds, 50 million metadata (hours); writes docs/reliability.md
	@$(PY) -m tests.support.metadata_fuzz --inputs 50000000 --write
	@$(PY) -m tests.support.simulation run --seeds 1000000 --write
	@$(PY) -m tests.support.reliability

broker: setup ## the tier with a real Apache Kafka alone
	@$(PY) -m tests.run broker

spark: setup ## the tier with a local Spark beside a real Apache Kafka alone
	@$(PY) -m tests.run spark

cluster: setup ## the tier with a real Kubernetes alone
	@$(PY) -m tests.run cluster

demo: setup ## drain 336,776 flights through an embedded broker, concurrency changed live
	@$(PY) examples/flights/demo.py

bench: setup ## records per second beside a plain loop and a bare consumer, on a real broker; writes docs/benchmarks.md
	@$(PY) -m benchmarks.throughput

crds: setup ## generate crds/ from the models
	@$(PY) -m parallel_consumer_operator.api.crd

systems: setup ## write docs/systems.md: each behaviour and the tests that proved it in the last full `make test`
	@$(PY) -m tests.support.systems write

requirements: setup ## export the images' hash-locked requirements from uv.lock
	@.ci/requirements.sh

clean: ## remove what the verbs made here
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .hypothesis
