// Package rules implements the counting rules of the Datadog agent: which spans are counted, and under
// which labels. It covers eligibility, top-level spans, peer tags, HTTP and gRPC status, synthetics, and
// the weight of sampled traces. Authors of tracers use it to compute the same statistics as the agent.
//
// Each rule is a function of a span's tags, without state, and safe for concurrent use. A tracer provides
// its tags through the interface Tags; Maps implements it for tracers that keep two maps, as in the agent's
// protocol.
//
// The rules are tested against the agent's own code (v0.85.4) with tables and random spans in
// test/agent/traces. Texts that the agent normalizes after these rules, such as names of services and
// operations, are normalized by the daemon; a tracer sends them unchanged.
package rules

// Tags contains the tags of a span. As in the agent, tags with text ("meta") and tags with numbers
// ("metrics") are different: a number that was set as text is not a number.
type Tags interface {
	// Text returns the text of a tag, or "" if it has none.
	Text(key string) string
	// Number returns the number of a tag, and whether it has one.
	Number(key string) (float64, bool)
}

// Maps implements Tags for tracers that keep the agent's two maps.
type Maps struct {
	Meta    map[string]string
	Metrics map[string]float64
}

// Text returns the tag in Meta.
func (m Maps) Text(key string) string { return m.Meta[key] }

// Number returns the tag in Metrics.
func (m Maps) Number(key string) (float64, bool) {
	n, ok := m.Metrics[key]
	return n, ok
}
