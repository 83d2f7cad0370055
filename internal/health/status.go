package health

import (
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/running"
)

// StatusSchema is the version of the contract below: docs/status.md. A field
// may be added within a version; none is removed, renamed or given another
// meaning without a new one.
const StatusSchema = 1

// Status is the daemon at one moment, for a program to read. All of it is
// bounded, whatever tracers do. Its sections have no names in JSON.
type Status struct {
	Schema int       `json:"schema"`
	At     time.Time `json:"at"`
	Process
	Spans
	Interval
	Senders
	Delivery
	Memory  Memory    `json:"memory"`
	Machine Machine   `json:"machine"`
	Config  []Setting `json:"config"`
}

// Process is the daemon itself.
type Process struct {
	Version       string    `json:"version"`
	Started       time.Time `json:"started"`
	UptimeSeconds float64   `json:"uptime_seconds"`
	Ready         bool      `json:"ready"`
	NotReady      string    `json:"not_ready,omitempty"` // why
	Died          int       `json:"predecessors_died"`
}

// Spans are the books, and what stands beside them.
type Spans struct {
	Books      Books             `json:"books"`
	Collapsed  map[string]uint64 `json:"collapsed"`
	Late       uint64            `json:"late"`
	Early      uint64            `json:"early"`
	ClientLost map[string]uint64 `json:"client_lost"`
	Killed     running.Losses    `json:"lost_to_kills"`
}

// Memory is what the limits may come to, and what they must fit.
type Memory struct {
	Parts       []memory.Part `json:"parts"` // the largest first
	TotalBytes  int64         `json:"total_bytes"`
	LimitBytes  int64         `json:"limit_bytes"` // 0: none is known
	LimitSource string        `json:"limit_source,omitempty"`
	Preset      string        `json:"preset"` // name of the defaults that were chosen for the limit
}

// readStatus reads a daemon that has run since then.
func readStatus(c *Config, p *probes, started time.Time) Status {
	now, l := time.Now(), c.Sources.look()
	status := Status{
		Schema: StatusSchema, At: now,
		Process: Process{
			c.Version, started, now.Sub(started).Seconds(), p.ready.Load(), p.notReady(), c.Died(),
		},
		Spans:    Spans{l.books(), l.admitted.Collapsed, l.late, l.early, l.in.ClientLost, c.LostToKills()},
		Interval: interval(c, &l), Senders: senders(c, &l), Delivery: delivery(c, &l),
		Memory:  Memory{Parts: list(c.Memory.Parts), TotalBytes: c.Memory.Total, Preset: c.Preset},
		Machine: readMachine(os.DirFS("/")),
		Config:  list(c.Settings),
	}
	if limit := c.MemoryLimit; limit.Known() {
		status.Memory.LimitBytes, status.Memory.LimitSource = limit.Bytes, limit.Source
	}
	return status
}
