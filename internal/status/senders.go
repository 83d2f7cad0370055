package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
)

// Senders is the state of the clients and receivers.
type Senders struct {
	Connections     Connections          `json:"connections"`
	Clients         []ingest.Tracer      `json:"clients"`
	ClientsNotShown int                  `json:"clients_not_shown"`
	Receivers       map[string]*Receiver `json:"receivers"`      // enabled HTTP receivers, by the prefix of their flags
	SDKs            *sdkmetrics.Sums     `json:"sdks,omitempty"` // metrics of SDKs about their spans; nil until one reports them
}

// Connections is the state of the native socket.
type Connections struct {
	Live   int               `json:"live"`
	Max    int               `json:"max"`
	Total  uint64            `json:"total"`
	Faults map[string]uint64 `json:"faults"`
}

// Receiver is the state of an HTTP receiver.
type Receiver struct {
	Protocol      string            `json:"data"`     // human-readable name of the received data
	Requests      map[string]uint64 `json:"requests"` // number of requests by result of counting
	Origins       int               `json:"origins"`
	BufferedBytes int64             `json:"buffered_bytes"`
	Connections   Bounded           `json:"connections"`
	Refused       uint64            `json:"refused_connections"`
	LastResponse  time.Time         `json:"last_response"`       // time when a request or a connection last ended; zero if none has
	Forwarded     map[string]uint64 `json:"forwarded,omitempty"` // number of forwarded requests by result
	// DiscardedSignals counts requests with metrics and logs, by signal, that were accepted and discarded because
	// there is no upstream. They are part of the result "other".
	DiscardedSignals map[string]uint64 `json:"discarded_signals,omitempty"`
	Forward          *Forward          `json:"forward,omitempty"`
	*Datadog                           // only for the Datadog receiver; its fields have no name of their own in JSON
}

// Datadog has the counters that only the Datadog receiver has. Its Receiver.Requests contains only requests with traces.
type Datadog struct {
	Statistics map[string]uint64 `json:"statistics"` // requests with statistics that tracers computed, by result
	Other      uint64            `json:"other"`      // requests without traces or statistics
	Failed     uint64            `json:"failed"`     // requests without a response of the agent
}

// Forward is the state of an upstream.
type Forward struct {
	URL       string       `json:"url"`
	State     export.State `json:"state"`
	LastError string       `json:"last_error,omitempty"` // error of the last request; empty if the upstream accepted it
}

// senders returns the state of all native clients and all enabled HTTP receivers.
func senders(c *Config, s *snapshot) (all Senders) {
	all.Connections = Connections{
		Live: s.ingest.Connections, Max: c.Limits.Connections, Total: s.ingest.ConnectionsTotal, Faults: s.ingest.Faults,
	}
	all.Clients, all.ClientsNotShown = shownClients(c.Sources.Ingest.Tracers())
	all.Receivers = map[string]*Receiver{}
	for i := range c.Sources.Receivers {
		receiver := &c.Sources.Receivers[i]
		if receiver.IsEnabled {
			all.Receivers[receiver.Name] = receiver.status(&s.receivers[i])
		}
	}
	if sums, found := c.Sources.OTLP.SDKSums(); found {
		all.SDKs = &sums
	}
	if apm := all.Receivers["apm"]; apm != nil && c.Sources.APM != nil {
		apm.Datadog = &Datadog{Statistics: s.apm.Merges, Other: s.apm.Other, Failed: s.apm.Failed}
	}
	return all
}

// status returns the state of an enabled receiver with the given statistics.
func (r *ReceiverSource) status(stats *receiver.Status) *Receiver {
	return &Receiver{
		Protocol: r.Receives, Requests: stats.Requests, Origins: stats.Origins, BufferedBytes: stats.BufferedBytes,
		Connections: Bounded{Live: stats.Connections, Max: r.MaxConnections}, Refused: stats.Refused,
		LastResponse: stats.LastHeard, Forwarded: stats.Forwarded, DiscardedSignals: stats.DiscardedSignals,
		Forward: r.upstream(stats),
	}
}

// upstream returns the state of the receiver's upstream, or nil if there is none.
func (r *ReceiverSource) upstream(stats *receiver.Status) *Forward {
	if r.Forward == "" {
		return nil
	}
	failure := stats.Refusal // of the last request; nil if the upstream accepted it
	switch {
	case failure == nil:
		return &Forward{URL: r.Forward, State: export.StateAccepting}
	case failure.HasResponded:
		return &Forward{URL: r.Forward, State: export.StateRejecting, LastError: failure.Message}
	}
	return &Forward{URL: r.Forward, State: export.StateUnreachable, LastError: failure.Message}
}

// maxClients is the maximum number of connections in the list.
const maxClients = 50

// shownClients returns the maxClients clients that have sent most spans, and the number of omitted
// clients. It sorts them by the time of their connection, so that their order does not change while
// their counts grow. If there are not more than maxClients, it returns all clients as they are.
func shownClients(clients []ingest.Tracer) (shown []ingest.Tracer, omitted int) {
	if len(clients) <= maxClients {
		return clients, 0
	}
	mostSpansFirst := func(a, b ingest.Tracer) int { return cmp.Compare(b.Received, a.Received) }
	oldestFirst := func(a, b ingest.Tracer) int { return a.Since.Compare(b.Since) }
	sorted := slices.Clone(clients)
	slices.SortStableFunc(sorted, mostSpansFirst)
	shown = sorted[:maxClients]
	slices.SortStableFunc(shown, oldestFirst)
	return shown, len(clients) - maxClients
}

// ReceiverSource is an HTTP receiver whose statistics are shown. If it is disabled, its metrics are 0.
type ReceiverSource struct {
	Name           string // prefix of its flags and metrics
	Receives       string // human-readable name of the received data
	IsEnabled      bool
	MaxConnections int
	Forward        string // URL of its upstream; "" if there is none
	Server         interface {
		Status() receiver.Status
		Unreachable() error // only called if the receiver is enabled
	}
}
