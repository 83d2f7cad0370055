package health

import (
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/running"
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
	Preset        string    // name of the defaults that were chosen for MemoryLimit
	Settings      []Setting // what the daemon runs with
	Sources       Sources
	Spans         bool // answer scrapes of statistics
	OnlySpans     bool // and nothing else
	Log           *slog.Logger
	LogLinesLost  func() uint64
	Died          func() int            // daemons before this one that were killed
	LostToKills   func() running.Losses // what they have taken with them
}

// Limits are the bounds that status shows beside what is used of them.
type Limits struct {
	Aggregates  int
	Origins     int
	Connections int
}
