package payload

import (
	"fmt"

	"github.com/DataDog/sketches-go/ddsketch"
)

// Latency is what a sketch says of the spans that it counts, in nanoseconds.
// Every value is off by the sketch's own 1 % at most.
type Latency struct {
	Count              float64
	Min, P50, P99, Max float64
}

// Latencies reads a group's two sketches.
func (g *Group) Latencies() (ok, failed Latency, err error) {
	if ok, err = latency(g.OkSummary); err != nil {
		return ok, failed, fmt.Errorf("ok summary: %w", err)
	}
	if failed, err = latency(g.ErrorSummary); err != nil {
		return ok, failed, fmt.Errorf("error summary: %w", err)
	}
	return ok, failed, nil
}

func latency(summary []byte) (l Latency, err error) {
	sketch, err := decodeSummary(summary)
	if err != nil || sketch.GetCount() == 0 {
		return l, err
	}
	values, err := sketch.GetValuesAtQuantiles([]float64{0, 0.5, 0.99, 1})
	if err != nil {
		return l, fmt.Errorf("read sketch: %w", err)
	}
	return Latency{
		Count: sketch.GetCount(), Min: values[0], P50: values[1], P99: values[2],
		Max: values[3],
	}, nil
}

// MaxProblems is how many are kept as texts.
const MaxProblems = 100

// Problems is what the agent would take and show wrongly, or not show.
func (p *Payload) Problems() (problems []string) {
	note := func(format string, args ...any) {
		if len(problems) < MaxProblems {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	p.Check(true, note, func(*Group, ...*ddsketch.DDSketch) {})
	return problems
}
