package structure

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	module = "github.com/spanstatsd/spanstatsd/"
)

// imports contains the packages of this repository that a package may import, and what the package does. A star at the
// end of a path stands for all packages below it.
type imports struct{ allowed, purpose string }

// packages contains all packages of the daemon and of the lab.
var packages = map[string]imports{
	"cmd/spanstatsd": {"internal/*", "configures and starts the daemon"},
	"internal/daemon": {"internal/admit internal/aggregate internal/check internal/ingest/receiver " +
		"internal/ingest/datadog internal/ingest/receiver/destination internal/ingest/otlp internal/ingest/zipkin internal/aggregate/exemplars " +
		"internal/export internal/export/agent internal/export/prometheus internal/export/totals " +
		"internal/status internal/ingest internal/memory internal/ring internal/recovery internal/aggregate/sketch internal/ingest/socket " +
		"internal/daemon/systemd internal/wire", "creates, starts and stops all other packages"},
	"internal/status": {"internal/admit internal/aggregate internal/ingest/receiver internal/ingest/receiver/conns internal/ingest/datadog internal/ingest/otlp " +
		"internal/aggregate/exemplars internal/export internal/export/agent internal/export/prometheus internal/ingest " +
		"internal/memory " +
		"internal/logging/ratelog internal/registry internal/routing internal/recovery internal/ingest/otlp/sdkmetrics internal/status/sanitize", "reads the statistics of all other packages"},

	"internal/commandline":       {"internal/memory", "defines flags and help that all commands share"},
	"internal/status/statustext": {"internal/export internal/registry internal/status internal/status/sanitize", "formats a status as text"},
	"internal/status/doctor":     {"internal/export internal/memory internal/registry internal/status internal/status/sanitize", "diagnoses a status"},

	"client": {
		"internal/ingest/socketpath internal/span internal/wire",
		"encodes spans and implements the native protocol",
	},
	"client/rules": {"", "implements the agent's counting rules for authors of tracers"},

	"internal/ingest": {"internal/admit internal/check internal/ingest/socketpath internal/memory internal/logging/ratelog internal/recovery internal/ingest/socket " +
		"internal/span internal/wire", "decodes frames of the native protocol and admits their batches"},

	"internal/ingest/datadog": {
		"internal/admit internal/aggregate internal/decode/clientstats " +
			"internal/decode/datadog internal/ingest/receiver internal/ingest/receiver/bodies internal/ingest/receiver/conns " +
			"internal/memory " +
			"internal/rules/datadog internal/sampling/unsampled internal/span internal/span/spantable",
		"receives requests of Datadog tracers, and counts their bodies",
	},
	"internal/ingest/otlp": {
		"internal/admit internal/decode/otlp internal/decode/otlpjson internal/ingest/receiver " +
			"internal/ingest/receiver/bodies internal/ingest/receiver/destination internal/memory internal/wire/otlpanswer " +
			"internal/wire/protolite " +
			"internal/rules internal/rules/datadog internal/rules/translate internal/rules/otel " +
			"internal/sampling internal/ingest/otlp/sdkmetrics internal/span internal/span/measure internal/span/spantable",
		"receives OTLP requests, and counts their bodies",
	},
	"internal/ingest/zipkin": {
		"internal/admit internal/decode/zipkin internal/ingest/receiver internal/ingest/receiver/bodies internal/ingest/receiver/destination " +
			"internal/memory internal/rules internal/rules/otel " +
			"internal/span/spantable",
		"receives Zipkin requests, and counts their bodies",
	},
	"internal/ingest/receiver/destination": {
		"internal/check internal/check/endpoint internal/ingest/receiver internal/memory",
		"forwards requests to an upstream, independent of their content",
	},
	"internal/ingest/receiver": {"internal/admit internal/aggregate internal/check internal/ingest/receiver/bodies " +
		"internal/ingest/receiver/conns internal/aggregate/exemplars internal/memory internal/ingest/socket " +
		"internal/span", "handles HTTP requests with spans, independent of their format"},
	"internal/ingest/receiver/conns":  {"internal/ingest/socket", "limits connections, independent of their content"},
	"internal/ingest/receiver/bodies": {"internal/memory", "buffers and deduplicates bodies, independent of their content"},

	"internal/rules": {
		"internal/span internal/span/spantable internal/wire",
		"collects keys and snapshots, independent of the counting rules",
	},
	"internal/rules/datadog": {
		"client/rules internal/decode/datadog internal/span/ignore " +
			"internal/rules internal/span internal/span/spantable internal/wire",
		"implements the counting rules of the agent and its tracers",
	},
	"internal/decode/datadog": {
		"internal/wire/msgpack internal/span/spantable",
		"decodes the agent's formats, independent of the counting rules",
	},
	"internal/sampling/unsampled": {
		"internal/decode/datadog internal/wire/msgpack internal/span/spantable",
		"removes unsampled traces from a body",
	},
	"internal/span/spantable":  {"", "stores the spans of a body, independent of their format"},
	"internal/decode/jsonscan": {"", "tokenizes JSON"},
	"internal/decode/otlpjson": {"internal/decode/jsonscan", "converts OTLP from JSON to protobuf"},
	"internal/decode/zipkin": {
		"internal/decode/jsonscan internal/decode/otlp internal/span/spantable",
		"decodes Zipkin spans to the same form as OTLP spans",
	},
	"internal/decode/otlp":       {"internal/span/spantable", "decodes OTLP spans"},
	"internal/testutil/otlptest": {"internal/span/spantable", "encodes OTLP requests for tests"},
	"internal/rules/otel": {
		"client/rules internal/decode/otlp internal/span/ignore internal/rules " +
			"internal/rules/work internal/sampling/tracestate internal/span internal/span/measure internal/span/semconv " +
			"internal/span/spantable internal/wire",
		"implements counting by the semantic conventions of OpenTelemetry",
	},
	"internal/rules/translate": {
		"client/rules internal/decode/otlp internal/rules internal/rules/work " +
			"internal/sampling/tracestate internal/span internal/span/spantable",
		"translates OTLP spans like the agent",
	},
	"internal/rules/work": {"internal/span/spantable", "derives the operation of a span from its attributes"},
	"internal/sampling": {
		"internal/decode/otlp internal/wire/protolite internal/sampling/tracestate internal/span/spantable",
		"selects the spans to forward, and encodes them",
	},
	"internal/sampling/tracestate": {"", "reads and writes the tracestate header"},
	"internal/decode/clientstats": {
		"internal/aggregate internal/decode/payload internal/aggregate/sketch internal/span",
		"decodes the statistics that tracers compute",
	},
	"internal/admit": {
		"internal/aggregate internal/check internal/span/ignore internal/span/slo internal/memory internal/registry " +
			"internal/ring internal/routing internal/recovery internal/span internal/wire",
		"looks up keys and publishes spans to the rings",
	},
	"internal/recovery": {"internal/wire", "stores the state that the next daemon reads after a crash"},
	"internal/registry": {
		"internal/check internal/registry/demand internal/span/mask internal/span",
		"assigns IDs to keys and enforces cardinality budgets",
	},
	"internal/ingest/otlp/recording": {
		"internal/decode/otlpjson internal/registry internal/rules/otel internal/span internal/span/ignore",
		"measures the labels of recorded spans",
	},
	"internal/registry/demand":        {"", "estimates the number of distinct values, and finds the most frequent ones"},
	"internal/ingest/otlp/sdkmetrics": {"internal/wire/protolite", "reads the metrics that SDKs report about their spans"},
	"internal/span/ignore":            {"internal/span", "implements ignore rules"},
	"internal/span/slo":               {"internal/span internal/span/mask", "implements service level objectives"},
	"internal/span/mask":              {"", "masks identifiers, independent of the label"},
	"internal/span/measure":           {"internal/span internal/span/spantable", "defines measures and converts their values"},
	"internal/span/semconv":           {"", "describes the metrics of OpenTelemetry's semantic conventions"},
	"internal/routing":                {"", "assigns partitions to drainers, independent of their content"},
	"internal/aggregate/sketch":       {"", "computes sketches, independent of spans"},
	"internal/aggregate": {"internal/check internal/memory internal/registry internal/ring " +
		"internal/routing internal/recovery internal/aggregate/sketch internal/span internal/span/slo", "aggregates spans into tables and seals them in each " +
		"cycle"},
	"internal/export": {"internal/aggregate internal/check internal/export/totals internal/memory internal/logging/ratelog " +
		"internal/registry internal/aggregate/sketch internal/span", "merges and delivers sealed cycles, independent of the destination"},

	"internal/export/agent": {"internal/aggregate internal/export/dump internal/check/endpoint internal/export internal/export/post " +
		"internal/wire/protolite internal/aggregate/sketch internal/span", "encodes payloads for the agent and interprets its responses"},
	"internal/export/otlp": {
		"internal/check internal/check/endpoint internal/aggregate/exemplars internal/export internal/export/points " +
			"internal/export/post internal/export/totals internal/wire/protolite internal/aggregate/sketch internal/wire/otlpanswer " +
			"internal/span/measure internal/span/slo",
		"encodes OTLP metrics and interprets the responses of a backend",
	},
	"internal/export/prometheus": {
		"internal/aggregate/exemplars internal/export internal/export/points internal/export/totals " +
			"internal/aggregate/sketch internal/span/measure internal/span/slo",
		"renders metrics when they are scraped",
	},
	"internal/export/prometheus/slorules": {"internal/export/points internal/span/slo", "writes rules about objectives"},
	"internal/export/points": {
		"internal/aggregate internal/aggregate/exemplars internal/export internal/export/totals " +
			"internal/wire/protolite internal/aggregate/sketch internal/span internal/span/measure internal/span/semconv",
		"converts rows to data points, independent of the exporter",
	},
	"internal/export/post": {
		"internal/check/endpoint internal/export internal/wire/otlpanswer",
		"sends payloads over HTTP, independent of their " +
			"content",
	},
	"internal/export/totals": {"internal/aggregate/sketch", "accumulates series over cycles"},
	"internal/testutil/testcycle": {
		"internal/aggregate internal/registry internal/aggregate/sketch internal/span",
		"builds sealed cycles for tests",
	},

	"internal/aggregate/exemplars": {"", "selects exemplars"},

	"internal/export/dump":       {"internal/decode/payload internal/status/sanitize", "stores rejected payloads, and prints one"},
	"internal/daemon/systemd":    {"", "implements the protocols of systemd"},
	"internal/ingest/socketpath": {"", "determines the default path of the socket"},
	"internal/ingest/socket":     {"internal/ingest/socketpath", "opens Unix sockets and identifies their peers"},
	"internal/logging/logqueue":  {"", "writes log lines without blocking"},
	"internal/status/sanitize":   {"", "escapes control characters"},
	"internal/check":             {"internal/memory", "validates ranges of configuration values"},
	"internal/memory":            {"", "computes memory limits"},
	"internal/wire":              {"internal/wire/msgpack internal/span", "implements the native protocol between client and daemon"},
	"internal/wire/msgpack":      {"", "reads msgpack in place"},
	"internal/ring":              {"", "implements a queue, independent of its content"},
	"internal/span":              {"", "defines the types that all packages share"},

	"internal/wire/protolite":  {"", "reads and writes protobuf messages"},
	"internal/check/endpoint":  {"", "parses the URLs of destinations"},
	"internal/logging/ratelog": {"", "limits the rate of log records"},

	"internal/wire/otlpanswer": {"internal/wire/protolite", "reads and writes the responses of OTLP servers"},

	"internal/decode/payload":      {"", "decodes payloads for the agent, and shares no code with their encoder"},
	"internal/testutil/structure":  {"", "reads source files"},
	"internal/testutil/eventually": {"", "waits in tests, with a deadline"},

	// The modules in lab, which the daemon does not import.
	"lab/cmd/spanstatsd-lab": {
		"client internal/aggregate internal/commandline internal/status/sanitize internal/ingest/socket internal/wire lab/*",
		"configures and starts the daemon",
	},
	"lab/bench": {"client internal/status internal/ingest/receiver internal/ingest/receiver/bodies internal/ingest/socket " +
		"internal/span internal/decode/datadog internal/rules/datadog internal/wire lab/bench/* " +
		"lab/standin lab/workload", "measures a running daemon"},
	"lab/bench/balance": {"internal/*", "measures the balancing of drainers"},
	"lab/bench/measure": {"", "contains helpers of all benchmarks"},
	"lab/bench/recorded": {
		"internal/decode/otlp internal/decode/otlpjson internal/span/spantable",
		"reads recorded requests of SDKs",
	},
	"lab/bench/relay":    {"", "relays bytes"},
	"lab/bench/ring":     {"internal/ring lab/bench/measure", "compares the ring with other queues"},
	"lab/bench/scraping": {"internal/* lab/bench/measure", "compares the scrape endpoint with another one"},
	"lab/bench/snapshot": {"", "measures the publication of snapshots"},
	"lab/bench/tables": {"internal/admit internal/aggregate internal/ingest/receiver internal/ingest/receiver/bodies " +
		"internal/span", "counts batches without a daemon"},
	"lab/built": {"", "builds programs"},
	"lab/checkclient": {"internal/admit internal/ingest internal/wire/msgpack internal/status/sanitize " +
		"internal/span internal/wire", "checks the messages of a client like the daemon would"},
	"lab/demo": {
		"client internal/daemon internal/export internal/export/agent " +
			"internal/export/otlp internal/export/points internal/export/prometheus internal/status " +
			"internal/decode/payload lab/standin lab/standin/collector",
		"demonstrates a running daemon",
	},
	"lab/peers": {
		"internal/* lab/bench/measure lab/peers/agent lab/workload",
		"compares the daemon with other tools",
	},
	"lab/peers/agent": {"internal/* lab/bench/measure lab/workload", "runs the agent's code"},
	"lab/peers/floods": {
		"internal/* lab/bench/measure lab/peers/agent lab/workload",
		"compares floods of keys with the agent's code",
	},
	"lab/peers/flush":           {"internal/* lab/bench/measure", "compares encoders with others"},
	"lab/peers/judge":           {"client lab/standin", "compares programs under faults, from the outside"},
	"lab/peers/judge/agent":     {"", "is a program of another project"},
	"lab/peers/judge/collector": {"", "is a program of another project"},
	"lab/peers/otlp": {"internal/* lab/bench/measure lab/bench/recorded lab/bench/relay " +
		"lab/bench/tables lab/standin", "compares OTLP ingestion with a collector"},
	"lab/standin":           {"internal/decode/payload", "shares no code with the encoder that it checks"},
	"lab/standin/collector": {"", "shares no code with the OTLP encoder that it checks"},
	"lab/workload":          {"internal/span", "generates spans"},
}

func (i imports) allow(imported string) bool {
	return slices.ContainsFunc(strings.Fields(i.allowed), func(allowed string) bool {
		below, all := strings.CutSuffix(allowed, "*")
		return allowed == imported || all && strings.HasPrefix(imported, below)
	})
}

func TestPackages_ImportOnlyAllowedPackages(t *testing.T) {
	checked := 0
	check := func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		checked++
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name := path.Dir(filepath.ToSlash(relative))
		allowed, known := packages[name]
		if !known {
			t.Errorf("%s is not in the table of packages: add it here", name)
			return nil
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if ours, isOurs := strings.CutPrefix(imported, module); isOurs && !allowed.allow(ours) {
				t.Errorf("%s imports %s, which the table of packages does not allow: it %s", relative, ours, allowed.purpose)
			}
		}
		return nil
	}
	for _, dir := range []string{"client", "cmd", "internal", "lab"} {
		if err := filepath.WalkDir(filepath.Join(root, dir), check); err != nil {
			t.Fatal(err)
		}
	}
	if checked < 100 {
		t.Errorf("only %d files were checked in %s", checked, root)
	}
}

func TestPackages_AllowedImportsHaveNoCycle(t *testing.T) {
	var follow func(name string, above []string)
	follow = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("import cycle: %s", strings.Join(append(above, name), " > "))
		}
		for below := range packages {
			if packages[name].allow(below) && below != name {
				follow(below, append(above, name))
			}
		}
	}
	for name := range packages {
		follow(name, nil)
	}
}
