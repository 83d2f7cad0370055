# Every target says what it does in the comment behind it; `make` lists them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZ    ?= 3s
ROUNDS  ?= 50

# The race detector needs a C compiler. Without one the tests run plain, and
# say so.
RACE := $(if $(shell command -v $$($(GO) env CC) 2>/dev/null),-race,)

# Tests that the race detector falsifies, because it allocates, or only slows down,
# because one goroutine compares thousands of values: their names say so.
PLAIN := Alloc|Agrees|MemoryLimit_

# Modules of their own, so that what they need never enters the daemon's.
TEST_MODULES  := $(dir $(wildcard test/*/go.mod))
OTHER_MODULES := $(TEST_MODULES) $(dir $(wildcard lab/go.mod lab/*/go.mod))

.DEFAULT_GOAL := help
# No target is a file.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Where the time of the hot paths goes, for the compiler. It is no default.pgo, or
# each test that builds the daemon, and each variant of it, would compile all that
# the daemon needs once more.
PROFILE := cmd/spanstatsd/bench.pgo

build: ## build the static binaries into bin/: the daemon's, and what measures it
	CGO_ENABLED=0 $(GO) build -trimpath -pgo=$(PROFILE) -ldflags '$(LDFLAGS)' -o bin/spanstatsd ./cmd/spanstatsd
	cd lab && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o ../bin/ ./cmd/spanstatsd-lab

# What is released says no more of where it was built than the same commit built
# elsewhere: no paths, no working tree, the time of the commit.
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

# A version without a suffix is a release, which carries no table of other code than its own.
RELEASE := $(shell echo '$(VERSION)' | grep -xE 'v?[0-9]+(\.[0-9]+)*')

dist: binaries release-tools ## build everything that a release carries into dist/, sign it (SIGN_KEY=file of cosign, or SIGN=keyless), have the chart name the image at REGISTRY, and name the tables of docs/benchmarks.md that are of other code
	@dist/parts/benchdocs -stale$(if $(RELEASE),, || echo 'A release would stop here.' >&2)
	@VERSION=$(VERSION) EPOCH=$(EPOCH) COMMIT=$(COMMIT) GO=$(GO) SIGN_KEY='$(SIGN_KEY)' SIGN='$(SIGN)' BUILDER='$(BUILDER)' REGISTRY='$(REGISTRY)' sh deploy/dist.sh
	@cat dist/SHA256SUMS

publish: ## image and chart of dist/ to REGISTRY, everything to a release of the repository; a workflow calls it
	@VERSION=$(VERSION) REGISTRY='$(REGISTRY)' sh deploy/publish.sh

licences: ## write THIRD_PARTY_LICENSES anew, after a module has come, gone or changed
	@mkdir -p bin
	cd tools && $(GO) run ./licences > ../bin/licences && mv ../bin/licences ../THIRD_PARTY_LICENSES

chart-readme: ## write the table of values in the chart's README anew, after its schema or values have changed
	cd tools && $(GO) run ./chart ../deploy/helm/spanstatsd

dist-check: ## build a release twice, in two places, compare the bytes, and have sigstore's own library check signatures and provenance
	@GO=$(GO) VERSION=$(VERSION) EPOCH=$(EPOCH) COMMIT=$(COMMIT) sh test/release/reproducible.sh

TO ?= agent

demo: ## watch spans of a small web shop go all the way, for 25 seconds: to a stand-in agent, or with TO=prometheus scraped
	cd lab && $(GO) run ./cmd/spanstatsd-lab demo --destination '$(TO)' --for 25s

# What make test runs: the daemon's module, the lab's, and the daemon as a whole.
TESTED := . lab test/daemon

test: ## what every change must pass: each test of the daemon and of the lab once (6 minutes from nothing, on two cores)
	@$(if $(RACE),,echo "NOT RUN: the race detector, which needs a C compiler" >&2)
	@set -e; for module in $(TESTED); do GO='$(GO)' RACE='$(RACE)' sh .ci/test $$module '$(PLAIN)'; done

test-modules: # tests with dependencies of their own, not from the cache: some build the daemon
	@set -e; for module in $(filter-out test/daemon/ test/deploy/ test/page/ test/fleet/ test/kubernetes/,$(TEST_MODULES)); do echo "$$module"; (cd $$module && ROUNDS=10 $(GO) test -count=1 -timeout 30m $(RACE) ./...); done

test-faults: ## every fault of docs/faults.md, in a table of fault, promise and verdict (2 minutes)
	cd tools && $(GO) run ./faults ..

TIME ?= 20m

test-hostile: ## a soak that nobody has to watch: senders polite and hostile on all doors, stand-ins that misbehave, restarts; the last line says what was lost, counted twice, past a limit (TIME=20m)
	@mkdir -p bin
	cd test/hostile && $(GO) run . -time $(TIME) -log $(CURDIR)/bin/hostile.log

# As many kills as an hour holds, unless KILLS or TIME says less.
test-kills: TIME := 1h
test-kills: ## daemons killed with SIGKILL at random under clients in Go and Java; the last line says what was lost, counted twice, ambiguous (an hour, or TIME=5m, KILLS=100; SEED, RATE, DESTINATION, DOOR, STARVED=1)
	@mkdir -p bin
	cd test/kills && $(GO) run . -time $(TIME) -log $(CURDIR)/bin/kills.log $(if $(KILLS),-kills $(KILLS)) $(if $(SEED),-seed $(SEED)) \
		$(if $(RATE),-rate $(RATE)) $(if $(DESTINATION),-destination $(DESTINATION)) $(if $(DOOR),-door $(DOOR)) $(if $(STARVED),-starved)

# Each run has seeds of its own, and prints them.
test-lives: TIME := 1h
test-lives: ## daemons that live by plans drawn from a seed: stops, second signals, successors, kills behind any store, damaged files, full disks; the last line says what was lost, counted twice, ambiguous (an hour, or TIME=2m; SEED, PLAN)
	@mkdir -p bin
	cd test/kills && $(GO) run . -lives -time $(TIME) -log $(CURDIR)/bin/lives.log $(if $(SEED),-seed $(SEED)) $(if $(PLAN),-plan '$(PLAN)')

test-agent: ## the built daemon before the real trace agent, ROUNDS times over random spans
	cd test/agent && ROUNDS=$(ROUNDS) $(GO) test -count=1 ./stats

test-otel: ## OpenTelemetry's SDKs as they are published, two pods each or three under samplers, before the built daemon; installs them into bin/ (8 minutes)
	sh test/otel/languages.sh $(CURDIR)/bin/otel
	cd test/otel && OTEL_DIR=$(CURDIR)/bin/otel $(GO) test -tags languages -timeout 30m -count=1 -v ./...

test-zipkin: ## reporters of Zipkin as they are published, before the built daemon; installs them into bin/ (1 minute)
	sh test/zipkin/reporters.sh $(CURDIR)/bin/zipkin
	cd test/zipkin && ZIPKIN_DIR=$(CURDIR)/bin/zipkin $(GO) test -tags languages -timeout 10m -count=1 -v ./...

test-java-client: build ## the client library for Java, before daemons in Java and the built one, and the extension (2 minutes; the first time Maven gets what it needs)
	SPANSTATSD_BIN=$(CURDIR)/bin/spanstatsd mvn --batch-mode --no-transfer-progress -f clients/java -pl client,opentelemetry -am verify

test-java: ## both jars of clients/java with their tests, and a real application under OpenTelemetry's Java agent, span by span against an oracle, while the daemon comes, hangs and goes; installs what it needs into bin/ (7 minutes)
	sh test/java/install.sh $(CURDIR)/bin/java
	cd test/java && JAVA_DIR=$(CURDIR)/bin/java $(GO) test -tags languages -timeout 40m -count=1 -v ./...

# Collectors and Prometheus, from their modules, without the service discovery of clouds.
scrape-programs:
	@mkdir -p bin/fleet
	$(GO) build -o bin/fleet/spanstatsd ./cmd/spanstatsd
	cd test/fleet/prometheus && CGO_ENABLED=0 $(GO) build -tags remove_all_sd -o $(CURDIR)/bin/fleet/ github.com/prometheus/prometheus/cmd/prometheus

fleet-programs: scrape-programs
	cd test/fleet && $(GO) build -o $(CURDIR)/bin/fleet/ ./collector
	cd test/fleet/jaeger && CGO_ENABLED=0 $(GO) build -o $(CURDIR)/bin/fleet/ github.com/jaegertracing/jaeger/cmd/jaeger

test-fleet: fleet-programs ## daemons before real collectors and a real Prometheus, while gateways die and come; and a real Jaeger; builds those into bin/fleet (5 minutes; the first time fifteen more)
	cd test/fleet && FLEET_DIR=$(CURDIR)/bin/fleet $(GO) test -count=1 -timeout 20m -v ./...

kubernetes-programs:
	@mkdir -p bin/kubernetes
	cd test/kubernetes/etcd && $(GO) build -trimpath -ldflags='-s -w' -o $(CURDIR)/bin/kubernetes/etcd .
	@set -e; cd test/kubernetes/programs; version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes); \
	for program in kube-apiserver kube-controller-manager; do $(GO) build -trimpath \
		-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$version" \
		-o $(CURDIR)/bin/kubernetes/$$program k8s.io/kubernetes/cmd/$$program; done

test-kubernetes: kubernetes-programs ## the policy that injects the daemon, the manifests and the chart in a real API server, built into bin/kubernetes: pods of some seventy shapes (1 minute; the first time some ten to build it)
	cd test/kubernetes && $(GO) test -count=1 -timeout 20m -v ./...

test-scrape: scrape-programs ## of those, the tests with a real Prometheus that scrapes daemons, without the collectors; DASHBOARDS=directory asks it what the dashboards in there ask as well (3 minutes; the first time five more)
	cd test/fleet && FLEET_DIR=$(CURDIR)/bin/fleet DASHBOARDS=$(abspath $(DASHBOARDS)) $(GO) test -count=1 -timeout 20m -v -run '^TestScraped' .

# Without the race detector: there is no concurrency of ours in it, and half a
# cloud would be compiled a second time. Not from the cache: the go command does
# not see that files outside of a module change.
test-deploy: ## what stands in deploy/ keeps its promises: manifests, chart, alerts, dashboard, image
	cd test/deploy && $(GO) test -count=1 ./...
	cd tools && $(GO) vet ./... && $(GO) test -count=1 ./...

test-prometheus: ## a real Prometheus server scrapes the daemon, and what examples/compose.yaml runs; needs `prometheus` (a package of Debian)
	cd test/deploy && $(GO) test -count=1 -tags prometheus -run '^Test(Prometheus|ComposeExampleRuns)$$' -v .

test-container: ## run the image's root, read-only and as its user, without a container runtime; needs root
	cd test/deploy && $(GO) test -count=1 -tags container -run '^TestContainer$$' -v .

test-requests: TIME := 5m
test-requests: ## what a daemon takes of memory and processors in an ordinary pod is within what manifests and chart request (5 minutes)
	cd test/deploy && TIME=$(TIME) $(GO) test -count=1 -timeout 20m -tags requests -run '^TestRequestsAreEnough$$' -v .

test-page: ## the page of a daemon under load in Chromium, which must be there (or named in CHROMIUM)
	cd test/page && $(GO) test -count=1 -tags browser ./...

test-web: ## OpenTelemetry's SDK for browsers as it is published, in Chromium before the built daemon; installs it into bin/ with npm (1 minute)
	sh test/page/web/install.sh $(CURDIR)/bin/web
	cd test/page && WEB_DIR=$(CURDIR)/bin/web $(GO) test -count=1 -tags browser,languages -v -run '^TestSDKInABrowser$$' .

screenshots: ## pictures of the page in each dress, into bin/screenshots
	@mkdir -p bin/screenshots
	cd test/page && SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -tags browser -run Fits ./...

test-fuzz:
	@GO=$(GO) FUZZ=$(FUZZ) sh .ci/fuzz

fuzz: ## fuzz every target for a minute
	$(MAKE) test-fuzz FUZZ=60s

# Packages that guard data. Not in ci: a mutant takes seconds, and some survive because they change nothing that
# a user could see.
GUARDS := internal/wire internal/admit internal/registry internal/ring internal/aggregate internal/aggregate/sketch internal/recovery

mutants: ## before a release: generated mutants of the packages that guard data, or of ONLY=internal/wire; prints the mutants that no test noticed (hours)
	cd tools && $(GO) build -o ../bin/gremlins github.com/go-gremlins/gremlins/cmd/gremlins
	@set -e; for package in $(or $(ONLY),$(GUARDS)); do echo "$$package"; bin/gremlins unleash ./$$package --workers 2 --timeout-coefficient 20 -S l; done

lint: ## formatting, vet and staticcheck, in every module; the workflows
	@unformatted=$$(cd tools && $(GO) tool gofumpt -l ..); \
	if [ -n "$$unformatted" ]; then echo "not formatted by gofumpt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	cd tools && $(GO) tool actionlint -shellcheck= -pyflakes= ../.github/workflows/*.yaml
	cd tools && $(GO) build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@set -e; for module in $(TESTED); do echo "staticcheck $$module"; (cd $$module && $(CURDIR)/bin/staticcheck ./...); done
	@set -e; for module in $(OTHER_MODULES); do echo "vet $$module"; (cd $$module && $(GO) vet -tags browser,container,dist,languages,prometheus,requests ./...); done

ci-lives:
	@$(MAKE) --no-print-directory test-lives TIME=2m

# What a machine may lack is left out there, and .ci/where-possible says so.
ci: test lint build test-modules test-deploy test-faults test-fuzz ci-lives ## everything that must hold: make test first, then lint, the real agent, what is deployed, fuzz (50 minutes from nothing)
	@sh .ci/where-possible test-prometheus command -v prometheus
	@sh .ci/where-possible test-java-client sh -c 'command -v javac && command -v mvn'
	@sh .ci/where-possible test-container unshare --mount true
	@sh .ci/where-possible test-page sh -c 'command -v "$${CHROMIUM:-chromium}"'

bench-ring: ## the ring beside channels and another queue, in one run
	cd lab && $(GO) run ./bench/ring

bench-ingest: ## what a snapshot costs on each path, in one table
	cd lab && $(GO) test -run '^$$' -bench '^BenchmarkSnapshot$$/^stable$$' -benchtime 1.5s ./bench/snapshot

bench-balance: ## what levelling the drainers gains, static against balanced, in one run (4 minutes)
	cd lab && $(GO) run ./bench/balance

bench-apm: ## counting the spans of a tracer's request, beside the agent's own way
	cd test/agent && $(GO) test -run '^$$' -bench Body -benchtime 1s ./traces

bench-traces: build ## recorded requests with traces through a whole daemon: handed on, beside a bare relay, and counted as well
	bin/spanstatsd-lab bench traces

bench-traces-slow: ## the same requests at 1,000 spans a second, as most pods have it, beside the agent's own way (2 minutes)
	cd test/agent && $(GO) test -run '^$$' -bench Slow -benchtime 1x ./traces

bench-otlp: build ## counting what SDKs of OpenTelemetry send, beside spanmetrics, and handing it on, beside a bare relay (4 minutes)
	cd lab/peers && $(GO) run ./otlp

record-otlp: ## record those requests again, from SDKs as they are published; installs them into bin/
	sh test/otel/languages.sh $(CURDIR)/bin/otel
	cd test/otel && $(GO) run ./record

record-traces: ## record those requests again, from tracers as they are published; installs them into bin/
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	bin/tracers/python/bin/pip install --quiet flask==3.1.3 requests==2.34.2
	cd test/agent/tracers && $(GO) run ./record -python $(CURDIR)/bin/tracers/python/bin/python

test-tracers: ## tracers as they are published (Go, Python, JavaScript, Java), against daemon and real agent; installs them into bin/ (4 minutes)
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	cd test/agent/tracers && TRACERS_DIR=$(CURDIR)/bin/tracers $(GO) test -tags languages -timeout 30m -count=1 -v ./...

java-interceptor: ## what dd-java-agent shows to a TraceInterceptor, in the tables of docs/design/dd-java-agent.md (3 minutes)
	@sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers >/dev/null
	cd test/agent/tracers && TRACERS_DIR=$(CURDIR)/bin/tracers $(GO) test -vet=off -tags languages -timeout 30m -count=1 -run JavaInterceptor -v .

bench-tracers: ## what computing statistics costs the processes of three tracers, on and off in turns (5 minutes)
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	cd test/agent/tracers && TRACERS_DIR=$(CURDIR)/bin/tracers $(GO) test -tags languages -timeout 30m -run '^$$' -bench Saving -benchtime 1x -v .

# The programs of both, and what is installed for them. For bench-docs ONLY names these targets, not cells.
pod-programs: build
	sh test/agent/tracers/languages.sh $(CURDIR)/bin/tracers
	sh test/agent/pod/install.sh $(CURDIR)/bin/tracers
	@mkdir -p bin/pod && cp bin/spanstatsd bin/pod/
	cd test/agent && $(GO) build -o $(CURDIR)/bin/pod/ ./pod ./pod/agent ./pod/apps/goshop

POD = bin/pod/pod -extension $(CURDIR)/clients/java/opentelemetry/target/spanstatsd.jar -only '$(filter-out bench-%,$(ONLY))' -ways '$(WAYS)' $(if $(QUICK),-quick) -turns $(or $(TURNS),1) $(if $(KEEP),-keep) $(if $(SHOW),-show)

bench-pod: bench-pod-java bench-pod-others ## what statistics cost a whole pod, all ways side by side: both of these (45 minutes)

bench-pod-java: pod-programs ## the same of Java, nine ways, of two tracers; cells that match ONLY='64 MiB, stable', QUICK=1, TURNS=3 (35 minutes)
	@$(POD) -group java

bench-pod-others: pod-programs ## the same of Python and Go, five ways (10 minutes)
	@$(POD) -group others

bench-java: build ## what publishing a span costs a Java process, beside OpenTelemetry's own histogram, with JMH; QUICK=1 (4 minutes)
	@QUICK=$(QUICK) sh clients/java/bench/run.sh $(CURDIR)/bin/spanstatsd

bench-sketch: ## our sketches beside the library's: bins of 100 million durations compared, memory, time; in both grids
	$(GO) test -v -run 'BinTableAgrees|EveryPrefix' ./internal/aggregate/sketch -durations 100000000
	$(GO) test -run '^$$' -bench SketchMemory -benchtime 1x ./internal/aggregate
	$(GO) test -run '^$$' -bench 'SketchBin|SketchAdd|TableRow' -benchtime 2s ./internal/aggregate/sketch ./internal/aggregate

bench-flush: ## merging and encoding 2048 aggregates beside the agent's and the Collector's own code, in one run
	cd lab/peers && $(GO) run ./flush

bench-scrape: ## a scrape of 8192 series beside client_golang's own, and a flush beside scrapes, in one run
	cd lab && $(GO) run ./bench/scraping

bench: build ## every workload through a whole daemon, in one table (2 minutes)
	bin/spanstatsd-lab bench all -- --buffer=block

bench-adversarial: build ## a minute of spans that are all new: a line each 5 s, the books, memory
	bin/spanstatsd-lab bench --workload adversarial --for 60s --every 5s

bench-peers: build ## a span's cost beside the agent's code and spanmetrics in one run, and the budgets (6 minutes)
	cd lab/peers && $(GO) run .

bench-floods: build ## what floods of seventeen shapes cost beside the agent's code, and which honest keys keep their rows (6 minutes)
	cd lab/peers && $(GO) run ./floods

bench-scale: build ## cost by connections, origins, keys and cores, in one table (7 minutes)
	bin/spanstatsd-lab bench scale

bench-rates: build ## what publishing costs a process and the daemon at the rates that pods have (5 minutes)
	bin/spanstatsd-lab bench rates

bench-docs: ## measure again what docs/benchmarks.md shows and write its tables, or of ONLY=bench,bench-peers,… (31 minutes); FILE=docs/pod.md, its (45 minutes)
	cd tools && $(GO) build -o ../bin/ ./benchdocs
	bin/benchdocs -file '$(or $(FILE),docs/benchmarks.md)' -only '$(ONLY)'

pgo: build ## renew the profile that the daemon is compiled with, after its hot paths have changed
	@GO=$(GO) PROFILE=$(PROFILE) sh .ci/pgo

bench-save: ## make what is now the baseline, lab/bench/baseline.txt
	@mkdir -p bin
	GO=$(GO) sh .ci/bench > bin/bench.txt && mv bin/bench.txt lab/bench/baseline.txt

bench-compare: ## ten runs beside the baseline, with benchstat
	@mkdir -p bin
	GO=$(GO) sh .ci/bench > bin/bench.txt
	cd tools && $(GO) tool benchstat baseline=../lab/bench/baseline.txt now=../bin/bench.txt

model: ## check the model of the ring's protocol with spin
	sh internal/ring/model/run.sh

clean: ## remove what was built
	rm -rf bin dist
