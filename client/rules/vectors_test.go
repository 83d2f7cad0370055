package rules_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/spans.json from the traces in this package's tests")

const vectorsFile = "testdata/spans.json"

// vector is a trace, and the snapshots that a tracer sends for it.
type vector struct {
	Name      string     `json:"name"`
	About     string     `json:"about"`
	PeerTags  []string   `json:"peer_tags"`  // Features.PeerTags
	SpanKinds []string   `json:"span_kinds"` // Features.SpanKinds
	Trace     []traced   `json:"trace"`
	Snapshots []snapshot `json:"snapshots"`
}

// traced is a span in a tracer.
type traced struct {
	ID       uint64             `json:"span_id"`
	Parent   uint64             `json:"parent_id"`
	Service  string             `json:"service"`
	Name     string             `json:"name"`
	Resource string             `json:"resource"`
	Type     string             `json:"type"`
	Start    int64              `json:"start"`
	Duration int64              `json:"duration"`
	Error    int32              `json:"error"`
	Meta     map[string]string  `json:"meta,omitempty"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
}

// snapshot is a snapshot in the terms of docs/protocol.md.
type snapshot struct {
	Span     uint64         `json:"span_id"`
	Labels   map[string]any `json:"labels"`
	Key      string         `json:"key"` // encoded key, in hex
	Duration uint64         `json:"duration"`
	End      int64          `json:"end"`
	Flags    uint8          `json:"flags"`
	Weight   float64        `json:"weight"`
}

// snapshotsOf returns the snapshots of a trace. It applies all rules in their order, like a tracer.
func (v *vector) snapshotsOf() []snapshot {
	links, root := make([]rules.Link, len(v.Trace)), rules.Maps{}
	var spans rules.Spans
	for i, s := range v.Trace {
		links[i] = rules.Link{Span: s.ID, Parent: s.Parent, Service: s.Service}
	}
	spans.Reset(links)
	at := &v.Trace[spans.Root()]
	root = rules.Maps{Meta: at.Meta, Metrics: at.Metrics}
	made := []snapshot{}
	for i, s := range v.Trace {
		tags := rules.Maps{Meta: s.Meta, Metrics: s.Metrics}
		isTop := spans.IsTopLevel(i) || rules.IsTopLevel(tags)
		if !rules.Eligible(tags, v.SpanKinds) && (!isTop || rules.IsPartial(tags)) {
			continue
		}
		k := span.Key{
			Service: s.Service, Operation: s.Name, Resource: s.Resource, Type: s.Type,
			Kind: s.Meta[rules.TagKind], TraceRoot: span.TraceRootFalse, HTTPStatus: rules.HTTPStatus(tags),
			PeerTags: rules.PeerTags(nil, tags, v.PeerTags), GRPCStatus: rules.GRPCStatus(tags),
			ServiceSource: s.Meta["_dd.svc_src"], Synthetics: rules.Synthetics(root.Text("_dd.origin")),
		}
		if s.Parent == 0 {
			k.TraceRoot = span.TraceRootTrue
		}
		flags := span.Flags(0)
		if s.Error != 0 {
			flags |= span.Error
		}
		if isTop {
			flags |= span.TopLevel
		}
		made = append(made, snapshot{
			Span: s.ID, Labels: labelsOf(&k), Key: hex.EncodeToString(wire.AppendKey(nil, &k)),
			Duration: uint64(s.Duration), End: s.Start + s.Duration, Flags: uint8(flags),
			Weight: rules.Weight(root),
		})
	}
	return made
}

// labelsOf returns the labels that are set, by their names in docs/protocol.md.
func labelsOf(k *span.Key) map[string]any {
	labels := map[string]any{}
	for name, text := range map[string]string{
		"service": k.Service, "operation": k.Operation, "resource": k.Resource, "type": k.Type,
		"kind":        k.Kind,
		"grpc_status": k.GRPCStatus, "service_source": k.ServiceSource,
	} {
		if text != "" {
			labels[name] = text
		}
	}
	labels["trace_root"] = k.TraceRoot == span.TraceRootTrue
	if k.HTTPStatus != 0 {
		labels["http_status"] = k.HTTPStatus
	}
	if len(k.PeerTags) != 0 {
		labels["peer_tags"] = k.PeerTags
	}
	if k.Synthetics {
		labels["synthetics"] = true
	}
	return labels
}

// The test computes every snapshot of the file, which is for authors of tracers. The table of traces
// contains, written by hand, which spans are counted.
func TestVectors_MatchRules(t *testing.T) {
	var b bytes.Buffer
	for i, trace := range traces {
		v := trace.vector
		v.Snapshots = v.snapshotsOf()
		counted := map[uint64]uint8{}
		for _, s := range v.Snapshots {
			counted[s.Span] = s.Flags
		}
		if len(counted) != len(trace.counted) {
			t.Errorf("%s: counted %v, want %v", v.Name, counted, trace.counted)
		}
		for id, flags := range trace.counted {
			if got, is := counted[id]; !is || got != flags {
				t.Errorf("%s: span %d has flags %d, counted %v, want %d", v.Name, id, got, is, flags)
			}
		}
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append([]byte(",\n")[2*(1-min(i, 1)):], line...))
	}
	complete := append(append([]byte("[\n"), b.Bytes()...), "\n]\n"...)
	if *update {
		if err := os.WriteFile(vectorsFile, complete, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, complete) {
		t.Errorf("%s differs from the rules; run go test ./client/rules -run Vectors -update and look at the "+
			"difference", vectorsFile)
	}
}
