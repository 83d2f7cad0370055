package routing

import (
	"cmp"
	"slices"
	"time"
)

// busiestShown is how many partitions the statistics name.
const busiestShown = 10

// Stats is how the key space is shared among the drainers. Loads are
// those of the last interval that the balancer looked at, estimated from a sample.
type Stats struct {
	Policy     string          `json:"policy"` // how the number of partitions follows the aggregates
	Partitions int             `json:"partitions"`
	Epoch      uint64          `json:"epoch"` // of the routing; it rises with each change
	Spread     int             `json:"spread"`
	LoadRatio  float64         `json:"load_ratio"` // busiest drainer over idlest, 1 where all are even
	SlotsUsed  int             `json:"slots_used"` // of all rings
	Slots      int             `json:"slots"`
	Drainers   []DrainerLoad   `json:"drainers"`
	Busiest    []PartitionLoad `json:"busiest"`

	// Since the start.
	Moves   uint64 `json:"moves"`   // partitions that got another owner
	Spreads uint64 `json:"spreads"` // partitions that got more owners
	Gathers uint64 `json:"gathers"` // spread partitions that got one owner again

	LastPlan   PlanStats `json:"last_plan"`   // at the last look at the loads
	LastChange PlanStats `json:"last_change"` // the last plan that moved, spread or gathered something
}

// DrainerLoad is one drainer's part of what was offered.
type DrainerLoad struct {
	Offered    uint64  `json:"offered"` // spans, about
	Share      float64 `json:"share"`   // of all spans offered
	Partitions int     `json:"partitions"`
	SlotsUsed  int     `json:"slots_used"`
	Slots      int     `json:"slots"`
}

// PartitionLoad is one partition's part of what was offered.
type PartitionLoad struct {
	Partition int      `json:"partition"`
	Offered   uint64   `json:"offered"`
	Share     float64  `json:"share"`
	Owners    []uint16 `json:"owners"` // drainers; several where it is spread
}

func (s *Stats) addPlan(p *Plan) {
	s.LoadRatio = p.Before
	s.Moves += uint64(p.Moves)
	s.Spreads += uint64(p.Spreads)
	s.Gathers += uint64(p.Gathers)
	s.LastPlan = p.PlanStats
	s.LastPlan.At = time.Now()
	if p.owners != nil {
		s.LastChange = s.LastPlan
	}
}

// setLoads replaces the loads by those of an interval, as the routing in force during it
// shared them out.
func (s *Stats) setLoads(loads []uint64, r *Routing) {
	layout := newLayout(loads, r)
	all := max(1, layout.fair()*float64(r.drainers))
	s.Drainers = make([]DrainerLoad, r.drainers)
	for drainer, load := range layout.drained {
		s.Drainers[drainer].Offered, s.Drainers[drainer].Share = uint64(load*sampleEvery), load/all
	}
	s.Busiest = []PartitionLoad{}
	for p, load := range loads {
		for _, drainer := range layout.owners[p] {
			s.Drainers[drainer].Partitions++
		}
		if load > 0 {
			s.Busiest = append(s.Busiest, PartitionLoad{
				p, load * sampleEvery, float64(load) / all,
				layout.owners[p],
			})
		}
	}
	slices.SortStableFunc(s.Busiest, func(a, b PartitionLoad) int {
		return cmp.Compare(b.Offered, a.Offered)
	})
	s.Busiest = slices.Clone(s.Busiest[:min(busiestShown, len(s.Busiest))])
}
