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

// imports are the packages of this repository that a package may import, and why. A star at the end
// stands for all packages below.
type imports struct{ allowed, why string }

// packages are all packages of the daemon and of the lab.
var packages = map[string]imports{
	"cmd/spanstatsd": {"internal/*", "the command line names what it starts"},
	"internal/daemon": {"internal/admit internal/aggregate internal/check internal/ingest/receiver " +
		"internal/ingest/datadog internal/ingest/receiver/destination internal/ingest/otlp internal/ingest/zipkin internal/aggregate/exemplars " +
		"internal/export internal/export/agent internal/export/prometheus internal/export/totals " +
		"internal/status internal/ingest internal/memory internal/ring internal/recovery internal/aggregate/sketch internal/ingest/socket " +
		"internal/daemon/systemd internal/wire", "makes, starts and stops all rooms, in one place"},
	"internal/status": {"internal/admit internal/aggregate internal/ingest/receiver internal/ingest/datadog internal/ingest/otlp " +
		"internal/aggregate/exemplars internal/export internal/export/agent internal/export/prometheus internal/ingest " +
		"internal/memory " +
		"internal/logging/ratelog internal/routing internal/recovery internal/ingest/otlp/sdkmetrics internal/status/sanitize", "reads the others' stats"},

	"internal/commandline":       {"internal/memory", "what any command has of flags, whatever they mean"},
	"internal/status/statustext": {"internal/export internal/status internal/status/sanitize", "shows a status as text"},
	"internal/status/doctor":     {"internal/export internal/status", "says what a status means"},

	"client": {
		"internal/ingest/socketpath internal/span internal/wire",
		"a tracer speaks the protocol and uses the vocabulary",
	},
	"client/rules": {"", "what of a span counts is a table of the agent's"},

	"internal/ingest": {"internal/admit internal/check internal/ingest/socketpath internal/memory internal/logging/ratelog internal/recovery internal/ingest/socket " +
		"internal/span internal/wire", "takes frames apart and hands batches on to be admitted"},

	"internal/ingest/datadog": {
		"internal/admit internal/aggregate internal/decode/clientstats " +
			"internal/decode/datadog internal/ingest/receiver internal/ingest/receiver/bodies internal/ingest/receiver/conns " +
			"internal/memory " +
			"internal/rules/datadog internal/sampling/unsampled internal/span internal/span/spantable",
		"takes HTTP requests and hands their bodies on to be counted",
	},
	"internal/ingest/otlp": {
		"internal/admit internal/decode/otlp internal/decode/otlpjson internal/ingest/receiver " +
			"internal/ingest/receiver/bodies internal/ingest/receiver/destination internal/memory internal/wire/otlpanswer " +
			"internal/rules internal/rules/datadog internal/rules/translate internal/rules/otel " +
			"internal/sampling internal/ingest/otlp/sdkmetrics internal/span internal/span/spantable",
		"takes OTLP and hands what it brings on to be counted",
	},
	"internal/ingest/zipkin": {
		"internal/admit internal/decode/zipkin internal/ingest/receiver internal/ingest/receiver/bodies internal/ingest/receiver/destination " +
			"internal/memory internal/rules internal/rules/otel " +
			"internal/span/spantable",
		"takes Zipkin's spans and hands them on to be counted",
	},
	"internal/ingest/receiver/destination": {
		"internal/check internal/ingest/receiver internal/memory",
		"finds where requests go on to, whatever is in them",
	},
	"internal/ingest/receiver": {"internal/admit internal/aggregate internal/check internal/ingest/receiver/bodies " +
		"internal/ingest/receiver/conns internal/aggregate/exemplars internal/memory internal/ingest/socket " +
		"internal/span", "owns the life of requests with traces, whatever they bring"},
	"internal/ingest/receiver/conns":  {"internal/ingest/socket", "admits connections, whatever they bring"},
	"internal/ingest/receiver/bodies": {"internal/memory", "holds and remembers bodies, whatever is in them"},

	"internal/rules": {
		"internal/span internal/span/spantable internal/wire",
		"remembers keys and collects snapshots, whatever the rule",
	},
	"internal/rules/datadog": {
		"client/rules internal/decode/datadog internal/span/ignore " +
			"internal/rules internal/span internal/span/spantable internal/wire",
		"says what the agent and the tracers count of a table",
	},
	"internal/decode/datadog": {
		"internal/wire/msgpack internal/span/spantable",
		"reads the agent's formats, whatever the rules",
	},
	"internal/sampling/unsampled": {
		"internal/decode/datadog internal/wire/msgpack internal/span/spantable",
		"cuts traces out of a body",
	},
	"internal/span/spantable":  {"", "lays the spans of a body flat, whatever the format"},
	"internal/decode/jsonscan": {"", "steps through JSON, whatever it says"},
	"internal/decode/otlpjson": {"internal/decode/jsonscan", "makes protobuf of JSON"},
	"internal/decode/zipkin": {
		"internal/decode/jsonscan internal/decode/otlp internal/span/spantable",
		"lays Zipkin's spans flat as OTLP's",
	},
	"internal/decode/otlp":       {"internal/span/spantable", "lays the spans of OTLP flat"},
	"internal/testutil/otlptest": {"internal/span/spantable", "writes requests for tests"},
	"internal/rules/otel": {
		"client/rules internal/decode/otlp internal/span/ignore internal/rules " +
			"internal/rules/work internal/sampling/tracestate internal/span internal/span/spantable internal/wire",
		"counts by OpenTelemetry's conventions",
	},
	"internal/rules/translate": {
		"client/rules internal/decode/otlp internal/rules internal/rules/work " +
			"internal/sampling/tracestate internal/span internal/span/spantable",
		"makes of OTLP what the agent's ingest makes of it",
	},
	"internal/rules/work": {"internal/span/spantable", "names what a span did"},
	"internal/sampling": {
		"internal/decode/otlp internal/wire/protolite internal/sampling/tracestate internal/span/spantable",
		"says which spans go on, and writes them",
	},
	"internal/sampling/tracestate": {"", "reads and writes a tracestate"},
	"internal/decode/clientstats": {
		"internal/aggregate internal/decode/payload internal/aggregate/sketch internal/span",
		"reads tracers' own statistics",
	},
	"internal/admit": {
		"internal/aggregate internal/check internal/span/ignore internal/memory internal/registry " +
			"internal/ring internal/routing internal/recovery internal/span internal/wire",
		"finds keys and publishes slots",
	},
	"internal/recovery": {"internal/wire", "what the next daemon reads of one that was killed"},
	"internal/registry": {
		"internal/check internal/span/mask internal/span",
		"an interval's keys and budgets",
	},
	"internal/ingest/otlp/sdkmetrics": {"internal/wire/protolite", "hears what SDKs say of their spans"},
	"internal/span/ignore":            {"internal/span", "says which spans nobody wants counted"},
	"internal/span/mask":              {"", "knows texts, whatever label they are of"},
	"internal/routing":                {"", "names no key, table or cycle"},
	"internal/aggregate/sketch":       {"", "names nothing of spans"},
	"internal/aggregate": {"internal/check internal/memory internal/registry internal/ring " +
		"internal/routing internal/recovery internal/aggregate/sketch internal/span", "tables are written by drainers and sealed each " +
		"interval"},
	"internal/export": {"internal/aggregate internal/check internal/export/totals internal/memory internal/logging/ratelog " +
		"internal/registry internal/aggregate/sketch internal/span", "merges what is sealed and delivers it, whatever the destination"},

	"internal/export/agent": {"internal/aggregate internal/export/dump internal/export/endpoint internal/export internal/export/post " +
		"internal/wire/protolite internal/aggregate/sketch internal/span", "encodes for the agent and says what its answers mean"},
	"internal/export/otlp": {
		"internal/check internal/export/endpoint internal/aggregate/exemplars internal/export internal/export/points " +
			"internal/export/post internal/export/totals internal/wire/protolite internal/aggregate/sketch internal/wire/otlpanswer",
		"encodes OTLP metrics and says what a receiver's answers mean",
	},
	"internal/export/prometheus": {
		"internal/aggregate/exemplars internal/export internal/export/points internal/export/totals " +
			"internal/aggregate/sketch",
		"keeps what metrics say to be scraped",
	},
	"internal/export/points": {
		"internal/aggregate internal/aggregate/exemplars internal/export internal/export/totals " +
			"internal/wire/protolite internal/aggregate/sketch internal/span",
		"makes points of rows, whoever takes them",
	},
	"internal/export/post": {
		"internal/export/endpoint internal/export internal/wire/otlpanswer",
		"brings bodies to whoever speaks HTTP, whatever is in " +
			"them",
	},
	"internal/export/totals": {"internal/aggregate/sketch", "adds up series, whatever their bytes mean"},
	"internal/testutil/testcycle": {
		"internal/aggregate internal/registry internal/aggregate/sketch internal/span",
		"makes sealed cycles for tests",
	},

	"internal/aggregate/exemplars": {"", "spans by numbers, of whatever key and trace"},

	"internal/export/dump":       {"internal/decode/payload internal/status/sanitize", "keeps refused payloads, and shows one as text"},
	"internal/daemon/systemd":    {"", "speaks to the service manager"},
	"internal/ingest/socketpath": {"", "says where a socket is that nobody gave a path"},
	"internal/ingest/socket":     {"internal/ingest/socketpath", "opens sockets and knows peers"},
	"internal/logging/logqueue":  {"", "writes lines, whatever they say"},
	"internal/status/sanitize":   {"", "shows what can't be seen"},
	"internal/check":             {"internal/memory", "says what is outside of its range"},
	"internal/memory":            {"", "adds up what the rooms take"},
	"internal/wire":              {"internal/wire/msgpack internal/span", "the protocol between client and daemon"},
	"internal/wire/msgpack":      {"", "reads in place"},
	"internal/ring":              {"", "slots without pointers, of any meaning"},
	"internal/span":              {"", "the vocabulary"},

	"internal/wire/protolite":  {"", "reads and writes protobuf messages"},
	"internal/export/endpoint": {"", "parses URLs of destinations"},
	"internal/logging/ratelog": {"", "limits a log"},

	"internal/wire/otlpanswer": {"internal/wire/protolite", "what a server of OTLP answers, whoever reads or writes it"},

	"internal/decode/payload":      {"", "reads what the encoder writes, and shares no code with it"},
	"internal/testutil/structure":  {"", "reads source"},
	"internal/testutil/eventually": {"", "waits in tests, with a deadline"},

	// Those of the lab's modules, which the daemon's does not need.
	"lab/cmd/spanstatsd-lab": {
		"client internal/aggregate internal/commandline internal/status/sanitize internal/ingest/socket internal/wire lab/*",
		"the command line names what it starts",
	},
	"lab/bench": {"client internal/status internal/ingest/receiver internal/ingest/receiver/bodies internal/ingest/socket " +
		"internal/span internal/decode/datadog internal/rules/datadog internal/wire lab/bench/* " +
		"lab/standin lab/workload", "measures a whole daemon from outside"},
	"lab/bench/balance": {"internal/*", "measures what levels drainers"},
	"lab/bench/measure": {"", "what measuring needs, of ours or not"},
	"lab/bench/recorded": {
		"internal/decode/otlp internal/decode/otlpjson internal/span/spantable",
		"reads what SDKs have sent",
	},
	"lab/bench/relay":    {"", "carries bytes"},
	"lab/bench/ring":     {"internal/ring lab/bench/measure", "measures the ring beside others"},
	"lab/bench/scraping": {"internal/* lab/bench/measure", "measures a scrape beside another"},
	"lab/bench/snapshot": {"", "its benchmarks stand where a door does"},
	"lab/bench/tables": {"internal/admit internal/aggregate internal/ingest/receiver internal/ingest/receiver/bodies " +
		"internal/span", "counts batches without a daemon around it"},
	"lab/built": {"", "builds programs"},
	"lab/checkclient": {"internal/admit internal/ingest internal/wire/msgpack internal/status/sanitize " +
		"internal/span internal/wire", "tells what a client sends, as the rooms that it names would read it"},
	"lab/demo": {
		"client internal/daemon internal/export internal/export/agent " +
			"internal/export/otlp internal/export/points internal/export/prometheus internal/status " +
			"internal/decode/payload lab/standin lab/standin/collector",
		"shows a whole daemon",
	},
	"lab/peers": {
		"internal/* lab/bench/measure lab/peers/agent lab/workload",
		"measures beside others",
	},
	"lab/peers/agent": {"internal/* lab/bench/measure lab/workload", "is the agent's way"},
	"lab/peers/floods": {
		"internal/* lab/bench/measure lab/peers/agent lab/workload",
		"measures beside the agent's way",
	},
	"lab/peers/flush": {"internal/* lab/bench/measure", "measures encoders beside others"},
	"lab/peers/otlp": {"internal/* lab/bench/measure lab/bench/recorded lab/bench/relay " +
		"lab/bench/tables lab/standin", "measures beside a collector's way"},
	"lab/standin":           {"internal/decode/payload", "must share no code with the encoder that it checks"},
	"lab/standin/collector": {"", "the same of OTLP's"},
	"lab/workload":          {"internal/span", "makes spans"},
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
			if ours, is := strings.CutPrefix(imported, module); is && !allowed.allow(ours) {
				t.Errorf("%s imports %s, which the table of packages does not allow: it %s", relative, ours, allowed.why)
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
