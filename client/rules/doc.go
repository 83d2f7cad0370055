// Package rules says what of a span the Datadog agent would count, and under
// which labels: eligibility, top-level spans, peer tags, HTTP and gRPC status,
// synthetics and the weight of a sampled trace. It is for the author of a tracer
// who wants its statistics to be those that the agent would have computed.
//
// It owns no state and knows nothing of clients, keys or sockets: each rule is a
// function of a span's tags, and may be called from any goroutine. A tracer keeps
// its tags as it likes and shows them through Tags; Maps serves one that keeps
// two maps, as the agent's own protocol does.
//
// Each rule is compared with the agent's own code (v0.85.1) over tables and random spans in
// test/agent/traces. The daemon rewrites the texts that the agent rewrites afterwards, such as
// the names of services and operations; a tracer sends them raw.
package rules

// Tags are what a span was tagged with. The agent tells text ("meta") from
// numbers ("metrics"): a number that was set as text is not a number.
type Tags interface {
	// Text returns the tag's text, "" where there is none.
	Text(key string) string
	// Number returns the tag's number, if it has one.
	Number(key string) (float64, bool)
}

// Maps are the tags of a tracer that keeps the agent's two maps.
type Maps struct {
	Meta    map[string]string
	Metrics map[string]float64
}

// Text is from Meta.
func (m Maps) Text(key string) string { return m.Meta[key] }

// Number is from Metrics.
func (m Maps) Number(key string) (float64, bool) {
	n, ok := m.Metrics[key]
	return n, ok
}
