# Every target is described in the comment after it; `make` prints the list.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZ    ?= 3s
ROUNDS  ?= 50

# The race detector needs a C compiler. Without one the tests run without it, and print that.
RACE := $(if $(shell command -v $$($(GO) env CC) 2>/dev/null),-race,)

# Names of tests that run without the race detector: its own allocations would change their
# result, or it only slows them down because one goroutine compares thousands of values.
PLAIN := Alloc|Agree|MemoryLimit_|Simulation_

# Separate modules, so that the daemon's module does not depend on their dependencies.
TEST_MODULES  := $(dir $(wildcard test/*/go.mod))
OTHER_MODULES := $(TEST_MODULES) $(dir $(wildcard lab/go.mod lab/*/go.mod))

.DEFAULT_GOAL := help
# No target is a file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# CPU profile of the hot paths, for the compiler. It is not called default.pgo, because then
# each test that builds the daemon, or a variant of it, would compile all dependencies again.
PROFILE := cmd/spanstatsd/bench.pgo

build: ## build the static binaries of the daemon and of spanstatsd-lab into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -pgo=$(PROFILE) -ldflags '$(LDFLAGS)' -o bin/spanstatsd ./cmd/spanstatsd
	cd lab && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/spanstatsd-lab

# A release contains no information on where it was built: no paths, no state of the working
# tree, and the time of the commit. So the same commit gives the same bytes.
EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
ARCHITECTURES := amd64 arm64

binaries: $(ARCHITECTURES:%=binary-%) ## build the static binaries for each architecture into dist/

binary-%:
	CGO_ENABLED=0 GOOS=linux GOARCH=$* GOFLAGS= $(GO) build -trimpath -buildvcs=false -pgo=$(PROFILE) -ldflags '$(LDFLAGS) -buildid=' -o dist/linux-$*/spanstatsd ./cmd/spanstatsd
	cd lab && CGO_ENABLED=0 GOOS=linux GOARCH=$* GOFLAGS= $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS) -buildid=' -o ../dist/linux-$*/spanstatsd-lab ./cmd/spanstatsd-lab

release-tools:
	cd tools && $(GO) build -o ../dist/parts/ ./benchdocs ./image ./sbom ./sign

image: binaries release-tools ## build the container image for each architecture, dist/spanstatsd_image.tar, an OCI archive
	dist/parts/image -version $(VERSION) -epoch $(EPOCH) -out dist/spanstatsd_image.tar

# A version without a suffix is a release. It must not contain tables that were measured with
# other code.
RELEASE := $(shell echo '$(VERSION)' | grep -xE 'v?[0-9]+(\.[0-9]+)*')

dist: binaries release-tools ## build everything that a release contains into dist/, sign it (SIGN_KEY=file of cosign, or SIGN=keyless), set the image in the chart to REGISTRY, and mark tables of docs/benchmarks.md that were measured with other code, or with peers over 90 days old
	@dist/parts/benchdocs -stale$(if $(RELEASE),, || echo 'A release would stop here.' >&2)
	@VERSION=$(VERSION) EPOCH=$(EPOCH) COMMIT=$(COMMIT) GO=$(GO) SIGN_KEY='$(SIGN_KEY)' SIGN='$(SIGN)' BUILDER='$(BUILDER)' REGISTRY='$(REGISTRY)' sh deploy/dist.sh
	@cat dist/SHA256SUMS

publish: ## push image and chart of dist/ to REGISTRY, and everything to a release of the repository; called by a workflow
	@VERSION=$(VERSION) REGISTRY='$(REGISTRY)' sh deploy/publish.sh

licenses: ## update THIRD_PARTY_LICENSES after a change of modules
	@mkdir -p bin
	cd tools && $(GO) run ./licenses > ../bin/licenses && mv ../bin/licenses ../THIRD_PARTY_LICENSES

chart-readme: ## update the table of values in the chart's README after a change of schema or values
	cd tools && $(GO) run ./chart ../deploy/helm/spanstatsd

dist-check: ## build a release twice in two folders, compare the bytes, and verify signatures and provenance with sigstore's library
	@GO=$(GO) VERSION=$(VERSION) EPOCH=$(EPOCH) COMMIT=$(COMMIT) sh test/release/reproducible.sh

TO ?= agent

demo: ## show how the spans of a small web shop are counted and reach a mock agent, or with TO=prometheus a scraper, for 25 seconds
	cd lab && $(GO) run ./cmd/spanstatsd-lab demo --destination '$(TO)' --for 25s

# Modules tested by make test: the daemon's, the span processor's, the lab's, and the tests of the complete daemon.
TESTED := . clients/otel-go lab test/daemon

test: ## test every change: each test of the daemon and of the lab once (10 minutes without a build cache, on two cores)
	@$(if $(RACE),,echo "NOT RUN: the race detector, which needs a C compiler" >&2)
	@set -e; for module in $(TESTED); do GO='$(GO)' RACE='$(RACE)' sh .ci/test $$module '$(PLAIN)'; done

test-modules: # tests with dependencies of their own, not from the cache: some build the daemon
	@set -e; for module in $(filter-out test/daemon/ test/deploy/ test/page/ test/fleet/ test/kubernetes/,$(TEST_MODULES)); do echo "$$module"; (cd $$module && ROUNDS=10 $(GO) test -count=1 -timeout 30m $(RACE) ./...); done

test-faults: ## test every fault of docs/faults.md, and print a table of fault, promise and verdict (2 minutes)
	cd tools && $(GO) run ./faults ..

TIME ?= 20m

test-hostile: ## run an unattended soak test: well-behaved and hostile senders on all receivers, mock destinations that misbehave, restarts; the last line reports spans lost, counted twice, or over a limit (TIME=20m)
	@mkdir -p bin
	cd test/hostile && $(GO) run . -time $(TIME) -log $(CURDIR)/bin/hostile.log

# As many kills as fit into an hour, unless KILLS or TIME is set.
test-kills: TIME := 1h
test-kills: ## kill daemons with SIGKILL at random times under Go, Java, Python and Node.js clients; the last line reports spans lost, counted twice, ambiguous (an hour, or TIME=5m, KILLS=100; SEED, RATE, DESTINATION, RECEIVER, OOM=1)
	@mkdir -p bin
	cd test/kills && $(GO) run . -time $(TIME) -log $(CURDIR)/bin/kills.log $(if $(KILLS),-kills $(KILLS)) $(if $(SEED),-seed $(SEED)) \
		$(if $(RATE),-rate $(RATE)) $(if $(DESTINATION),-destination $(DESTINATION)) $(if $(RECEIVER),-receiver $(RECEIVER)) $(if $(OOM),-oom)

# Each run has new seeds, and prints them.
test-lives: TIME := 1h
test-lives: ## run daemons by random plans: shutdowns, second signals, successors, kills at any write to disk, damaged files, full disks; the last line reports spans lost, counted twice, ambiguous (an hour, or TIME=2m; SEED, PLAN)
	@mkdir -p bin
	cd test/kills && $(GO) run . -lives -time $(TIME) -log $(CURDIR)/bin/lives.log $(if $(SEED),-seed $(SEED)) $(if $(PLAN),-plan '$(PLAN)')

test-agent: ## test the built daemon with the real trace agent, in ROUNDS rounds of random spans
	cd test/agent && ROUNDS=$(ROUNDS) $(GO) test -count=1 ./stats

test-otel: ## test the built daemon with OpenTelemetry's published SDKs, in two pods each, or three with samplers; installs them into bin/ (8 minutes)
	sh test/otel/languages.sh $(CURDIR)/bin/otel
	cd test/otel && OTEL_DIR=$(CURDIR)/bin/otel $(GO) test -tags languages -timeout 30m -count=1 -v ./...

test-zipkin: ## test the built daemon with Zipkin's published reporters; installs them into bin/ (1 minute)
	sh test/zipkin/reporters.sh $(CURDIR)/bin/zipkin
	cd test/zipkin && ZIPKIN_DIR=$(CURDIR)/bin/zipkin $(GO) test -tags languages -timeout 10m -count=1 -v ./...

test-java-client: build ## test the Java client library with daemons written in Java and with the built one, and test the extension (2 minutes; the first time Maven downloads its dependencies)
	SPANSTATSD_BIN=$(CURDIR)/bin/spanstatsd mvn --batch-mode --no-transfer-progress -f clients/java -pl client,opentelemetry -am verify

test-java: ## test both jars of clients/java, and compare each span of a real application under OpenTelemetry's Java agent with an oracle, while the daemon starts, hangs and stops; installs dependencies into bin/ (7 minutes)
	sh test/java/install.sh $(CURDIR)/bin/java
	cd test/java && JAVA_DIR=$(CURDIR)/bin/java $(GO) test -tags languages -timeout 40m -count=1 -v ./...

# Collectors and Prometheus, built from their modules without the service discovery of cloud
# providers.
scrape-programs:
	@mkdir -p bin/fleet
	$(GO) build -o bin/fleet/spanstatsd ./cmd/spanstatsd
	cd test/fleet/prometheus && CGO_ENABLED=0 $(GO) build -tags remove_all_sd -o $(CURDIR)/bin/fleet/ github.com/prometheus/prometheus/cmd/prometheus

fleet-programs: scrape-programs
	cd test/fleet && $(GO) build -o $(CURDIR)/bin/fleet/ ./collector
	cd test/fleet/jaeger && CGO_ENABLED=0 $(GO) build -o $(CURDIR)/bin/fleet/ github.com/jaegertracing/jaeger/cmd/jaeger

test-fleet: fleet-programs ## test daemons with real collectors, a real Prometheus and a real Jaeger, while gateways crash and restart; builds those into bin/fleet (5 minutes; the first time fifteen more)
	cd test/fleet && FLEET_DIR=$(CURDIR)/bin/fleet $(GO) test -count=1 -timeout 20m -v ./...

kubernetes-programs:
	@mkdir -p bin/kubernetes
	cd test/kubernetes/etcd && $(GO) build -trimpath -ldflags='-s -w' -o $(CURDIR)/bin/kubernetes/etcd .
	@set -e; cd test/kubernetes/programs; version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes); \
	for program in kube-apiserver kube-controller-manager; do $(GO) build -trimpath \
		-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$version" \
		-o $(CURDIR)/bin/kubernetes/$$program k8s.io/kubernetes/cmd/$$program; done

test-kubernetes: kubernetes-programs ## test the admission policy that injects the daemon, the manifests and the chart with a real API server, built into bin/kubernetes, and some seventy kinds of pods (1 minute; the first time ten more)
	cd test/kubernetes && $(GO) test -count=1 -timeout 20m -v ./...

test-scrape: scrape-programs ## test daemons that a real Prometheus scrapes, a part of test-fleet without collectors; DASHBOARDS=directory also runs the queries of the dashboards in it (3 minutes; the first time five more)
	cd test/fleet && FLEET_DIR=$(CURDIR)/bin/fleet DASHBOARDS=$(abspath $(DASHBOARDS)) $(GO) test -count=1 -timeout 20m -v -run '^TestScraped' .

# Without the race detector, because the tests contain no concurrency, and it would compile
# large dependencies a second time. Without the test cache, because the go command does not
# notice changes of files outside a module.
test-deploy: ## test the files in deploy/: manifests, chart, alerts, dashboard, image
	cd test/deploy && $(GO) test -count=1 ./...
	cd tools && $(GO) vet ./... && $(GO) test -count=1 ./...

test-prometheus: ## test that a real Prometheus server scrapes the daemon, and the parts of examples/compose.yaml; needs `prometheus` (a Debian package)
	cd test/deploy && $(GO) test -count=1 -tags prometheus -run '^Test(Prometheus|ComposeExample_Runs)$$' -v .

test-container: ## run the image's root file system, read-only and as the image's user, without a container runtime; needs root
	cd test/deploy && $(GO) test -count=1 -tags container -run '^TestContainer$$' -v .

test-requests: TIME := 5m
test-requests: ## test that the daemon's memory and CPU use in an ordinary pod is within the requests of manifests and chart (5 minutes)
	cd test/deploy && TIME=$(TIME) $(GO) test -count=1 -timeout 20m -tags requests -run '^TestRequests_AreEnough$$' -v .

test-page: ## test the daemon's page under load in Chromium, which must be installed (or set CHROMIUM)
	cd test/page && $(GO) test -count=1 -tags browser ./...

test-web: ## test the built daemon with OpenTelemetry's published browser SDK in Chromium; installs it into bin/ with npm (1 minute)
	sh test/page/web/install.sh $(CURDIR)/bin/web
	cd test/page && WEB_DIR=$(CURDIR)/bin/web $(GO) test -count=1 -tags browser,languages -v -run '^TestSDK_InBrowser$$' .

screenshots: ## take screenshots of the page in each theme, into bin/screenshots
	@mkdir -p bin/screenshots
	cd test/page && SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -tags browser -run Fits ./...

test-clients: ## test span processors in applications with published instrumentations, whose SDKs sample one trace in a hundred, while the daemon is stopped and killed (1 minute)
	cd test/clients && $(GO) test -count=1 -v ./...

test-python-client: ## test the client for OpenTelemetry's Python SDK: its library, and its wheel in servers with four workers and in Celery, while the daemon is stopped and killed; installs dependencies into bin/ (4 minutes)
	sh test/clients/python/install.sh $(CURDIR)/bin/python-client
	cd clients/python && $(CURDIR)/bin/python-client/venv/bin/ruff check . && $(CURDIR)/bin/python-client/venv/bin/mypy && $(CURDIR)/bin/python-client/venv/bin/python -m pytest -q
	cd test/clients && PYTHON_DIR=$(CURDIR)/bin/python-client $(GO) test -tags languages -timeout 10m -count=1 -v -run Python ./...

test-python-versions: ## test the library of the client for OpenTelemetry's Python SDK with the installed ones of Python 3.9 to 3.13 and free-threaded 3.13, or PYTHONS="python3.12"; installs dependencies into bin/ (3 minutes)
	sh test/clients/python/versions.sh $(CURDIR)/bin/python-versions $(or $(PYTHONS),python3.9 python3.10 python3.11 python3.12 python3.13 python3.13t)

test-node-client: ## test the client for OpenTelemetry's JavaScript SDK: its library, and its tarball in servers with four workers, while the daemon is stopped and killed; installs dependencies into bin/ (5 minutes)
	sh test/clients/node/install.sh $(CURDIR)/bin/node-client
	cd bin/node-client/clients/node && npm run --silent lint && node --test tests/*.test.mjs
	cd test/clients && NODE_DIR=$(CURDIR)/bin/node-client $(GO) test -tags languages -timeout 10m -count=1 -v -run '$(or $(ONLY),Node)' ./...

test-node-versions: ## test the library of the client for OpenTelemetry's JavaScript SDK with Node.js 18, 22 and 24; installs them into bin/ (5 minutes)
	sh test/clients/node/install.sh $(CURDIR)/bin/node-client
	sh test/clients/node/versions.sh $(CURDIR)/bin/node-client 18 22 24

test-fuzz:
	@GO=$(GO) FUZZ=$(FUZZ) sh .ci/fuzz

fuzz: ## fuzz every target for a minute
	$(MAKE) test-fuzz FUZZ=60s

# Packages that guard data. Not part of ci: a mutant takes seconds, and some survive because
# they change nothing that a user can observe.
GUARDS := internal/wire internal/admit internal/registry internal/ring internal/aggregate internal/aggregate/sketch internal/recovery

mutants: ## before a release: test generated mutants of the packages that guard data, or of ONLY=internal/wire; prints the mutants that no test detected (hours)
	cd tools && $(GO) build -o ../bin/gremlins github.com/go-gremlins/gremlins/cmd/gremlins
	@set -e; for package in $(or $(ONLY),$(GUARDS)); do echo "$$package"; bin/gremlins unleash ./$$package --workers 2 --timeout-coefficient 20 -S l; done

lint: ## check formatting, prose, vet and staticcheck in every module, and the workflows
	@unformatted=$$(cd tools && $(GO) tool gofumpt -l ..); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofumpt:"; echo "$$unformatted"; exit 1; fi
	cd tools && $(GO) run ./prose .. prose/budget.txt
	$(GO) vet ./...
	cd tools && $(GO) tool actionlint -shellcheck= -pyflakes= ../.github/workflows/*.yaml
	cd tools && $(GO) build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@set -e; for module in $(TESTED); do echo "staticcheck $$module"; (cd $$module && $(CURDIR)/bin/staticcheck ./...); done
	@set -e; for module in $(OTHER_MODULES); do echo "vet $$module"; (cd $$module && $(GO) vet -tags browser,container,dist,languages,prometheus,requests ./...); done

ci-lives:
	@$(MAKE) --no-print-directory test-lives TIME=2m

ci-node-client:
	@$(MAKE) --no-print-directory test-node-client ONLY='Node_(CheckClient|EqualsOTLP|DocumentedSetUp)'

# Targets that need missing programs are skipped, and .ci/where-possible prints them.
ci: test lint build test-modules test-deploy test-faults test-fuzz ci-lives ## run all required checks: make test first, then lint, the real agent, deployment files, fuzzing (50 minutes without a build cache)
	@sh .ci/where-possible test-prometheus command -v prometheus
	@sh .ci/where-possible test-python-client sh test/clients/python/install.sh $(CURDIR)/bin/python-client
	@sh .ci/where-possible ci-node-client sh test/clients/node/install.sh $(CURDIR)/bin/node-client
	@sh .ci/where-possible test-java-client sh -c 'command -v javac && command -v mvn'
	@sh .ci/where-possible test-container unshare --mount true
	@sh .ci/where-possible test-page sh -c 'command -v "$${CHROMIUM:-chromium}"'

release-tests: ci test-node-client test-node-versions test-python-versions test-agent test-tracers test-otel test-zipkin test-java test-web test-fleet test-kubernetes test-hostile test-kills test-lives model ## before a release, on an idle machine: make ci, and all tests with published tracers, SDKs and servers (4 hours)

bench-ring: ## compare the ring with channels and another queue, in one run
	cd lab && $(GO) run ./bench/ring

bench-ingest: ## measure the cost of a snapshot on each path, in one table
	cd lab && $(GO) test -run '^$$' -bench '^BenchmarkSnapshot$$/^stable$$' -benchtime 1.5s ./bench/snapshot

bench-balance: ## measure the gain of balancing load over the drainers, static against balanced, in one run (4 minutes)
	cd lab && $(GO) run ./bench/balance

bench-apm: ## compare counting the spans of a tracer's request with the agent's own code
	cd test/agent && $(GO) test -run '^$$' -bench Body -benchtime 1s ./traces

bench-traces: build ## send recorded trace requests through a complete daemon: forwarded, counted and forwarded, and through a bare relay
	bin/spanstatsd-lab bench traces

bench-traces-slow: ## send recorded trace requests at 1,000 spans per second, a typical rate of a pod, and compare the cost with the agent's own code (2 minutes)
	cd test/agent && $(GO) test -run '^$$' -bench Slow -benchtime 1x ./traces

bench-otlp: build ## compare counting the requests of OpenTelemetry SDKs with spanmetrics, and forwarding them with a bare relay (4 minutes)
	cd lab/peers && $(GO) run ./otlp

record-otlp: ## record the OTLP requests of the benchmarks again from published SDKs; installs the SDKs into bin/
	sh test/otel/languages.sh $(CURDIR)/bin/otel
	cd test/otel && $(GO) run ./record

record-traces: ## record the trace requests of the benchmarks again from published tracers; installs the tracers into bin/
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	bin/tracers/python/bin/pip install --quiet flask==3.1.3 requests==2.34.2
	cd test/agent/tracers && $(GO) run ./record -python $(CURDIR)/bin/tracers/python/bin/python

test-tracers: ## test daemon and real agent with published tracers (Go, Python, JavaScript, Java); installs them into bin/ (4 minutes)
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	cd test/agent/tracers && TRACERS_DIR=$(CURDIR)/bin/tracers $(GO) test -tags languages -timeout 30m -count=1 -v ./...

java-interceptor: ## update the tables of docs/design/dd-java-agent.md: the data that dd-java-agent passes to a TraceInterceptor (3 minutes)
	@sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers >/dev/null
	cd test/agent/tracers && TRACERS_DIR=$(CURDIR)/bin/tracers $(GO) test -vet=off -tags languages -timeout 30m -count=1 -run JavaInterceptor -v .

bench-tracers: ## measure the cost of computing statistics in the processes of three tracers, on and off in turns (5 minutes)
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	cd test/agent/tracers && TRACERS_DIR=$(CURDIR)/bin/tracers $(GO) test -tags languages -timeout 30m -run '^$$' -bench Saving -benchtime 1x -v .

# Programs of both targets, and their installed dependencies. For bench-docs, ONLY selects these
# targets, not cells.
pod-programs: build
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	sh test/agent/pod/install.sh $(CURDIR)/bin/tracers
	@mkdir -p bin/pod && cp bin/spanstatsd bin/pod/
	cd test/agent && $(GO) build -o $(CURDIR)/bin/pod/ ./pod ./pod/agent ./pod/apps/goshop

POD = bin/pod/pod -extension $(CURDIR)/clients/java/opentelemetry/target/spanstatsd.jar -only '$(filter-out bench-%,$(ONLY))' -ways '$(WAYS)' $(if $(QUICK),-quick) -turns $(or $(TURNS),1) $(if $(KEEP),-keep) $(if $(SHOW),-show)

bench-pod: bench-pod-java bench-pod-others ## compare the cost of statistics for a complete pod in all configurations, in Java, Python and Go (45 minutes)

bench-pod-java: pod-programs ## compare the cost of statistics for a pod in Java: nine configurations of two tracers; ONLY='64 MiB, stable' selects cells, QUICK=1, TURNS=3 (35 minutes)
	@$(POD) -group java

bench-pod-others: pod-programs ## compare the cost of statistics for a pod in Python and Go: five configurations (10 minutes)
	@$(POD) -group others

bench-java: build ## compare the cost of publishing a span in a Java process with OpenTelemetry's own histogram, with JMH; QUICK=1 (4 minutes)
	@QUICK=$(QUICK) sh clients/java/bench/run.sh $(CURDIR)/bin/spanstatsd

bench-clients: ## measure the CPU time of a span in a Go application: recorded, counted by the span processor, or exported over OTLP, in turns (1 minute)
	cd test/clients && $(GO) run ./cost

bench-python-client: build ## measure the CPU time of a span in a Python application: recorded, counted by the span processor, or exported (2 minutes; installs dependencies into bin/)
	sh test/clients/python/install.sh $(CURDIR)/bin/python-client
	bin/python-client/venv/bin/python test/clients/python/cost.py bin/spanstatsd

bench-node-client: build ## measure the CPU time of a span in a Node.js application: recorded, counted by the span processor, or exported (1 minute; installs dependencies into bin/)
	sh test/clients/node/install.sh $(CURDIR)/bin/node-client
	cd bin/node-client/applications && node cost.cjs $(CURDIR)/bin/spanstatsd

bench-sketch: ## compare the daemon's sketches with the library's: bins of 100 million durations, memory and time, in both grids
	$(GO) test -v -run BinTable_ ./internal/aggregate/sketch -durations 100000000
	$(GO) test -run '^$$' -bench SketchMemory -benchtime 1x ./internal/aggregate
	$(GO) test -run '^$$' -bench 'SketchBin|SketchAdd|TableRow' -benchtime 2s ./internal/aggregate/sketch ./internal/aggregate

bench-flush: ## compare merging and encoding 2048 aggregates with the agent's and the Collector's own code, in one run
	cd lab/peers && $(GO) run ./flush

bench-scrape: ## compare a scrape of 8192 series with client_golang's, and a flush alone with a flush during scrapes, in one run
	cd lab && $(GO) run ./bench/scraping

bench: build ## measure every workload with a complete daemon, in one table (2 minutes)
	bin/spanstatsd-lab bench all -- --buffer=block

bench-adversarial: build ## send new keys in every span for a minute: a line every 5 s, the accounting, memory
	bin/spanstatsd-lab bench --workload adversarial --for 60s --every 5s

bench-peers: build ## compare the cost of a span with the agent's code and spanmetrics in one run, and check the budgets (6 minutes)
	cd lab/peers && $(GO) run .

# The programs that make judge compares, and the judge.
judge-programs:
	@mkdir -p bin/judge
	CGO_ENABLED=0 $(GO) build -trimpath -pgo=$(PROFILE) -ldflags '$(LDFLAGS)' -o bin/judge/spanstatsd ./cmd/spanstatsd
	cd lab/peers && $(GO) build -o $(CURDIR)/bin/judge/ ./judge ./judge/collector ./judge/agent

judge: judge-programs ## send known spans through this daemon, an OpenTelemetry Collector and the Datadog trace agent under faults; the last line has the numbers of lost, doubled, misnamed and unaccounted spans of each; TOOLS=Collector, SCENARIOS='kill|flood' (15 minutes, with QUICK=1 5 minutes without builds)
	@cd lab/peers && $(GO) test ./judge >&2
	@bin/judge/judge -programs bin/judge $(if $(QUICK),-quick) -tools '$(TOOLS)' -scenarios '$(SCENARIOS)'

bench-floods: build ## compare the cost of floods of nineteen shapes with the agent's code, and count the regular keys that keep their rows (6 minutes)
	cd lab/peers && $(GO) run ./floods

bench-scale: build ## measure cost by connections, origins, keys and cores, in one table (7 minutes)
	bin/spanstatsd-lab bench scale

bench-rates: build ## measure the cost of publishing for a process and the daemon at typical rates of pods (5 minutes)
	bin/spanstatsd-lab bench rates

bench-docs: ## repeat the measurements of docs/benchmarks.md and update its tables, or those of ONLY=bench,bench-peers,… (31 minutes); with FILE=docs/pod.md those of that file (45 minutes)
	cd tools && $(GO) build -o ../bin/ ./benchdocs
	bin/benchdocs -file '$(or $(FILE),docs/benchmarks.md)' -only '$(ONLY)'

charts: ## draw the charts of docs/performance.md again from the tables of docs/benchmarks.md
	cd tools && $(GO) build -o ../bin/ ./benchdocs
	bin/benchdocs -charts

pgo: build ## update the daemon's profile for the compiler after a change of its hot paths
	@GO=$(GO) PROFILE=$(PROFILE) sh .ci/pgo

bench-save: ## save the current state as the baseline, lab/bench/baseline.txt
	@mkdir -p bin
	GO=$(GO) sh .ci/bench > bin/bench.txt && mv bin/bench.txt lab/bench/baseline.txt

bench-compare: ## run the benchmarks ten times and compare them with the baseline, with benchstat
	@mkdir -p bin
	GO=$(GO) sh .ci/bench > bin/bench.txt
	cd tools && $(GO) tool benchstat baseline=../lab/bench/baseline.txt now=../bin/bench.txt

model: ## check the model of the ring's protocol with spin
	sh internal/ring/model/run.sh

clean: ## remove build results
	rm -rf bin dist
