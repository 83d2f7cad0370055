package health

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// Interval is what the present interval holds of its limits, and who counts it.
type Interval struct {
	Cycle      Cycle         `json:"cycle"`
	Aggregates Bounded       `json:"aggregates"`
	Origins    Bounded       `json:"origins"`
	Drainers   []Drainer     `json:"drainers"`
	Partitions routing.Stats `json:"partitions"`
	Busiest    flush.Busiest `json:"busiest"` // of the last interval with spans
}

// Cycle is where the wall-clock intervals stand.
type Cycle struct {
	Sealed          uint64    `json:"sealed"` // so far
	LastSeal        time.Time `json:"last_seal"`
	IntervalSeconds float64   `json:"interval_seconds"`
}

// Bounded is something that has a limit.
type Bounded struct {
	Live int `json:"live"`
	Max  int `json:"max"`
}

// Drainer is one drainer and its ring.
type Drainer struct {
	Aggregated uint64 `json:"aggregated"`
	Ring       Ring   `json:"ring"`
}

// Ring is how full one ring is and was.
type Ring struct {
	Slots     int `json:"slots"`
	Used      int `json:"used"`
	HighWater int `json:"high_water"`
}

func interval(c *Config, l *look) Interval {
	now := Interval{
		Cycle:      Cycle{l.agg.Sealed, l.agg.LastSeal, c.FlushInterval.Seconds()},
		Aggregates: Bounded{l.agg.Aggregates, c.Limits.Aggregates},
		Origins:    Bounded{l.agg.Origins, c.Limits.Origins},
		Partitions: l.agg.Partitions, Busiest: c.Sources.Flush.Busiest(),
	}
	for _, d := range l.agg.Drainers {
		now.Drainers = append(now.Drainers,
			Drainer{d.Aggregated, Ring{d.Ring.Slots, d.Ring.Used, d.Ring.HighWater}})
	}
	p := &now.Partitions
	p.Drainers, p.Busiest = list(p.Drainers), list(p.Busiest)
	return now
}

// list is never null in JSON.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
