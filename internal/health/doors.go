package health

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/door"
)

// DoorSource is a door whose statistics are shown. One that is off has metrics at 0.
type DoorSource struct {
	Name           string // the first word of its flags, and of its metrics
	Brings         string // what comes by it, in words
	IsOn           bool
	MaxConnections int
	Forward        string // the URL that its requests go on to, "" for none
	Of             interface {
		Shown() door.Shown
		Lack() error // of one that is on
	}
}

// doorMetrics are those that each door has, behind the first word of its flags.
var doorMetrics = []struct {
	name, help string
	kind       prometheus.ValueType
	of         func(s *door.Shown) float64
}{
	{
		"connections", "Connections of senders.",
		prometheus.GaugeValue, func(s *door.Shown) float64 { return float64(s.Connections) },
	},
	{
		"refused_connections_total", "Connections that were refused because there were too many.",
		prometheus.CounterValue, func(s *door.Shown) float64 { return float64(s.Refused) },
	},
	{
		"waited_requests_total", "Requests that waited for who is behind, who was away.",
		prometheus.CounterValue, func(s *door.Shown) float64 { return float64(s.Waited) },
	},
	{
		"waiting_requests", "Requests that wait for who is behind.",
		prometheus.GaugeValue, func(s *door.Shown) float64 { return float64(s.Waiting) },
	},
	{
		"walked_bytes_total", "Bytes that were walked to be counted.",
		prometheus.CounterValue, func(s *door.Shown) float64 { return float64(s.Bytes) },
	},
	{
		"origins", "Origins that are known.",
		prometheus.GaugeValue, func(s *door.Shown) float64 { return float64(s.Origins) },
	},
	{
		"buffered_bytes", "Bytes of requests that are held.",
		prometheus.GaugeValue, func(s *door.Shown) float64 { return float64(s.BufferedBytes) },
	},
}

// metrics are those of the door: a counter of requests by result, of those that were to go on where
// there are such, and the numbers above.
func (d *DoorSource) metrics() (all []metric) {
	shown := d.Of.Shown()
	of := func(name, help string, by map[string]uint64) {
		all = append(all,
			counters(d.Name+name, help, "result", func(*scrape) map[string]uint64 { return by }))
	}
	of("_requests_total", "Requests of "+d.Brings+", by what became of the count of their spans.",
		shown.Requests)
	if shown.Forwarded != nil {
		of("_forwarded_total", "Requests of "+d.Brings+" that were to go on, by what became of them.",
			shown.Forwarded)
	}
	for _, m := range doorMetrics {
		all = append(all, metric{describe(d.Name+"_"+m.name, m.help), func(_ *scrape, emit emitter) {
			emit.value(m.kind, m.of(&shown))
		}})
	}
	return all
}
