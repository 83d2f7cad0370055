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
	root   = "../.."
	module = "github.com/spanstatsd/spanstatsd/"
)

// imports are the packages of this repository that a package may import, and why. A star at the end
// stands for all packages below.
type imports struct{ allowed, why string }

// packages are all packages of the daemon and of the lab.
var packages = map[string]imports{
	"cmd/spanstatsd": {"internal/*", "the command line names what it starts"},
	"internal/daemon": {"internal/admit internal/aggregate internal/check internal/door " +
		"internal/door/datadog internal/door/destination internal/door/otlp internal/door/zipkin internal/exemplars " +
		"internal/flush internal/flush/agent internal/flush/prometheus internal/flush/totals " +
		"internal/health internal/ingest internal/memory internal/ring internal/running internal/sketch internal/socket " +
		"internal/systemd internal/wire", "makes, starts and stops all rooms, in one place"},
	"internal/health": {"internal/admit internal/aggregate internal/door internal/door/datadog internal/door/otlp " +
		"internal/exemplars internal/flush internal/flush/agent internal/flush/prometheus internal/ingest " +
		"internal/memory " +
		"internal/ratelog internal/routing internal/running internal/sdkmetrics internal/sanitize", "reads the others' stats"},

	"internal/commandline": {"internal/memory", "what any command has of flags, whatever they mean"},
	"internal/statustext":  {"internal/flush internal/health internal/sanitize", "shows a status as text"},
	"internal/doctor":      {"internal/flush internal/health", "says what a status means"},

	"client": {
		"internal/socketpath internal/span internal/wire",
		"a tracer speaks the protocol and uses the vocabulary",
	},
	"client/rules": {"", "what of a span counts is a table of the agent's"},

	"internal/ingest": {"internal/admit internal/check internal/socketpath internal/memory internal/ratelog internal/running internal/socket " +
		"internal/span internal/wire", "takes frames apart and hands batches on to be admitted"},

	"internal/door/datadog": {
		"internal/admit internal/aggregate internal/decode/clientstats " +
			"internal/decode/datadog internal/door internal/door/bodies internal/door/conns " +
			"internal/memory " +
			"internal/rules/datadog internal/sampling/unsampled internal/span internal/spantable",
		"takes HTTP requests and hands their bodies on to be counted",
	},
	"internal/door/otlp": {
		"internal/admit internal/decode/otlp internal/decode/otlpjson internal/door " +
			"internal/door/bodies internal/door/destination internal/memory internal/otlpanswer " +
			"internal/rules internal/rules/datadog internal/rules/translate internal/rules/otel " +
			"internal/sampling internal/sdkmetrics internal/span internal/spantable",
		"takes OTLP and hands what it brings on to be counted",
	},
	"internal/door/zipkin": {
		"internal/admit internal/decode/zipkin internal/door internal/door/bodies internal/door/destination " +
			"internal/memory internal/rules internal/rules/otel " +
			"internal/spantable",
		"takes Zipkin's spans and hands them on to be counted",
	},
	"internal/door/destination": {
		"internal/check internal/door internal/memory",
		"finds where requests go on to, whatever is in them",
	},
	"internal/door": {"internal/admit internal/aggregate internal/check internal/door/bodies " +
		"internal/door/conns internal/exemplars internal/memory internal/socket " +
		"internal/span", "owns the life of requests with traces, whatever they bring"},
	"internal/door/conns":  {"internal/socket", "admits connections, whatever they bring"},
	"internal/door/bodies": {"internal/memory", "holds and remembers bodies, whatever is in them"},

	"internal/rules": {
		"internal/span internal/spantable internal/wire",
		"remembers keys and collects snapshots, whatever the rule",
	},
	"internal/rules/datadog": {
		"client/rules internal/decode/datadog internal/ignore " +
			"internal/rules internal/span internal/spantable internal/wire",
		"says what the agent and the tracers count of a table",
	},
	"internal/decode/datadog": {
		"internal/msgpack internal/spantable",
		"reads the agent's formats, whatever the rules",
	},
	"internal/sampling/unsampled": {
		"internal/decode/datadog internal/msgpack internal/spantable",
		"cuts traces out of a body",
	},
	"internal/spantable":       {"", "lays the spans of a body flat, whatever the format"},
	"internal/decode/jsonscan": {"", "steps through JSON, whatever it says"},
	"internal/decode/otlpjson": {"internal/decode/jsonscan", "makes protobuf of JSON"},
	"internal/decode/zipkin": {
		"internal/decode/jsonscan internal/decode/otlp internal/spantable",
		"lays Zipkin's spans flat as OTLP's",
	},
	"internal/decode/otlp":          {"internal/spantable", "lays the spans of OTLP flat"},
	"internal/decode/otlp/otlptest": {"internal/spantable", "writes requests for tests"},
	"internal/rules/otel": {
		"client/rules internal/decode/otlp internal/ignore internal/rules " +
			"internal/rules/work internal/sampling/tracestate internal/span internal/spantable internal/wire",
		"counts by OpenTelemetry's conventions",
	},
	"internal/rules/translate": {
		"client/rules internal/decode/otlp internal/rules internal/rules/work " +
			"internal/sampling/tracestate internal/span internal/spantable",
		"makes of OTLP what the agent's ingest makes of it",
	},
	"internal/rules/work": {"internal/spantable", "names what a span did"},
	"internal/sampling": {
		"internal/decode/otlp internal/protolite internal/sampling/tracestate internal/spantable",
		"says which spans go on, and writes them",
	},
	"internal/sampling/tracestate": {"", "reads and writes a tracestate"},
	"internal/decode/clientstats": {
		"internal/aggregate internal/payload internal/sketch internal/span",
		"reads tracers' own statistics",
	},
	"internal/admit": {
		"internal/aggregate internal/check internal/ignore internal/memory internal/registry " +
			"internal/ring internal/routing internal/running internal/span internal/wire",
		"finds keys and publishes slots",
	},
	"internal/running": {"internal/wire", "what the next daemon reads of one that was killed"},
	"internal/registry": {
		"internal/check internal/mask internal/span",
		"an interval's keys and budgets",
	},
	"internal/sdkmetrics": {"internal/protolite", "hears what SDKs say of their spans"},
	"internal/ignore":     {"internal/span", "says which spans nobody wants counted"},
	"internal/mask":       {"", "knows texts, whatever label they are of"},
	"internal/routing":    {"", "names no key, table or cycle"},
	"internal/sketch":     {"", "names nothing of spans"},
	"internal/aggregate": {"internal/check internal/memory internal/registry internal/ring " +
		"internal/routing internal/running internal/sketch internal/span", "tables are written by drainers and sealed each " +
		"interval"},
	"internal/flush": {"internal/aggregate internal/check internal/flush/totals internal/memory internal/ratelog " +
		"internal/registry internal/sketch internal/span", "merges what is sealed and delivers it, whatever the destination"},

	"internal/flush/agent": {"internal/aggregate internal/dump internal/endpoint internal/flush internal/flush/post " +
		"internal/protolite internal/sketch internal/span", "encodes for the agent and says what its answers mean"},
	"internal/flush/otlp": {
		"internal/check internal/endpoint internal/exemplars internal/flush internal/flush/points " +
			"internal/flush/post internal/flush/totals internal/protolite internal/sketch internal/otlpanswer",
		"encodes OTLP metrics and says what a receiver's answers mean",
	},
	"internal/flush/prometheus": {
		"internal/exemplars internal/flush internal/flush/points internal/flush/totals " +
			"internal/sketch",
		"keeps what metrics say to be scraped",
	},
	"internal/flush/points": {
		"internal/aggregate internal/exemplars internal/flush internal/flush/totals " +
			"internal/protolite internal/sketch internal/span",
		"makes points of rows, whoever takes them",
	},
	"internal/flush/post": {
		"internal/endpoint internal/flush internal/otlpanswer",
		"brings bodies to whoever speaks HTTP, whatever is in " +
			"them",
	},
	"internal/flush/totals": {"internal/sketch", "adds up series, whatever their bytes mean"},
	"internal/flush/testcycle": {
		"internal/aggregate internal/registry internal/sketch internal/span",
		"makes sealed cycles for tests",
	},

	"internal/exemplars": {"", "spans by numbers, of whatever key and trace"},

	"internal/dump":       {"", "keeps refused payloads, as bytes"},
	"internal/systemd":    {"", "speaks to the service manager"},
	"internal/socketpath": {"", "says where a socket is that nobody gave a path"},
	"internal/socket":     {"internal/socketpath", "opens sockets and knows peers"},
	"internal/logqueue":   {"", "writes lines, whatever they say"},
	"internal/sanitize":   {"", "shows what can't be seen"},
	"internal/check":      {"internal/memory", "says what is outside of its range"},
	"internal/memory":     {"", "adds up what the rooms take"},
	"internal/wire":       {"internal/msgpack internal/span", "the protocol between client and daemon"},
	"internal/msgpack":    {"", "reads in place"},
	"internal/ring":       {"", "slots without pointers, of any meaning"},
	"internal/span":       {"", "the vocabulary"},

	"internal/protolite": {"", "reads and writes protobuf messages"},
	"internal/endpoint":  {"", "parses URLs of destinations"},
	"internal/ratelog":   {"", "limits a log"},

	"internal/otlpanswer": {"internal/protolite", "what a server of OTLP answers, whoever reads or writes it"},

	"internal/payload":    {"", "reads what the encoder writes, and shares no code with it"},
	"internal/structure":  {"", "reads source"},
	"internal/eventually": {"", "waits in tests, with a deadline"},

	// Those of the lab's modules, which the daemon's does not need.
	"lab/cmd/spanstatsd-lab": {
		"client internal/aggregate internal/commandline internal/sanitize internal/socket internal/wire lab/*",
		"the command line names what it starts",
	},
	"lab/bench": {"client internal/health internal/door internal/door/bodies internal/socket " +
		"internal/span internal/decode/datadog internal/rules/datadog internal/wire lab/bench/* " +
		"lab/standin lab/workload", "measures a whole daemon from outside"},
	"lab/bench/balance": {"internal/*", "measures what levels drainers"},
	"lab/bench/measure": {"", "what measuring needs, of ours or not"},
	"lab/bench/recorded": {
		"internal/decode/otlp internal/decode/otlpjson internal/spantable",
		"reads what SDKs have sent",
	},
	"lab/bench/relay":    {"", "carries bytes"},
	"lab/bench/ring":     {"internal/ring lab/bench/measure", "measures the ring beside others"},
	"lab/bench/scraping": {"internal/* lab/bench/measure", "measures a scrape beside another"},
	"lab/bench/snapshot": {"", "its benchmarks stand where a door does"},
	"lab/bench/tables": {"internal/admit internal/aggregate internal/door internal/door/bodies " +
		"internal/span", "counts batches without a daemon around it"},
	"lab/built": {"", "builds programs"},
	"lab/checkclient": {"internal/admit internal/ingest internal/msgpack internal/sanitize " +
		"internal/span internal/wire", "tells what a client sends, as the rooms that it names would read it"},
	"lab/demo": {
		"client internal/daemon internal/flush internal/flush/agent " +
			"internal/flush/otlp internal/flush/points internal/flush/prometheus internal/health " +
			"internal/payload lab/standin lab/standin/collector",
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
	"lab/standin":           {"internal/payload", "must share no code with the encoder that it checks"},
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
