package datadog

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"golang.org/x/sys/cpu"
)

// Server is the agent's API towards tracers.
type Server struct {
	*door.Server
	config   Config
	counters counters
	counting chan *rules.Counter
	// merging has the one place where statistics of tracers are read: a process sends them once in ten
	// seconds, so they may wait for one another.
	merging    chan *clientstats.Payload
	policy     atomic.Pointer[rules.Policy]
	drops      atomic.Bool // traces that sampling threw away, once they are counted
	merges     atomic.Bool // the agent takes statistics
	agentState agentState
	transport  *http.Transport // for requests that stream
	proxy      *httputil.ReverseProxy
}

// counters are added to once a request.
type counters struct {
	_      cpu.CacheLinePad
	other  atomic.Uint64
	failed atomic.Uint64 // forwarded without an answer

	unsampledTraces, unsampledSpans, savedBytes atomic.Uint64 // not forwarded
}

// Learn takes over what the agent wants.
func (s *Server) Learn() <-chan struct{} {
	f, changed := s.config.Features()
	s.drops.Store(s.config.DropUnsampled.drops(f.DropsP0s))
	s.merges.Store(f.Stats)
	if !f.Stats || f.FiltersTags {
		s.policy.Store(nil)
		return changed
	}
	labels := s.config.Labels
	// An agent that chooses traces by a sampler of its own heeds no priority, and says so by that.
	labels.TraceIDs = s.config.Exemplars != nil && f.DropsP0s
	policy, ok := rules.NewPolicy(f.PeerTags, f.SpanKinds, f.IgnoreResources, labels)
	if !ok {
		s.config.Log.Warn("the agent asks for tags that only it can read; traces are left to it to count")
		policy = nil
	}
	s.policy.Store(policy)
	return changed
}

func (s *Server) noteFailed(err error) {
	s.counters.failed.Add(1)
	s.Log.Write(slog.LevelWarn, "the agent did not answer a tracer's request, whose connection is closed",
		"error", err)
}

// identifyIn says which container a request came from where its tracer does not:
// behind us the agent can't ask the kernel.
func identifyIn(c *http1.Conn, h header) {
	if c != nil && c.Container != "" && h.Get(headerContainer) == "" && h.Get(headerEntity) == "" {
		h.Set(headerContainer, c.Container)
	}
}
