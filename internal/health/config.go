package health

import (
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Config is what the server may use, and what it can't ask of the rooms.
type Config struct {
	Addr          string
	Hosts         []string // more names that the page and the status answer to
	WebConfigFile string   // TLS and basic auth, in the Prometheus ecosystem's format; "" for neither
	Debug         bool     // answer /debug/pprof
	Version       string
	FlushInterval time.Duration
	Limits        Limits
	Memory        memory.Budget // what the limits may come to
	MemoryLimit   memory.Limit
	Settings      []Setting // what the daemon runs with
	OTLPForward   string    // the URL that OTLP goes on to, "" for none
	Sources       Sources
	Log           *slog.Logger
	LogLinesLost  func() uint64
	Died          func() int // daemons before this one that ended without their books
}

// Limits are the bounds that status shows beside what is used of them.
type Limits struct {
	Aggregates      int
	Origins         int
	Connections     int
	APMConnections  int
	OTLPConnections int
}
