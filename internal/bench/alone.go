package bench

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// alone counts the spans of a recording in this process, from the request's bytes up
// to the batch that a ring takes, while nothing else of the measurement runs.
type alone struct {
	recording *recording
	counter   *traces.Counter
	policy    *traces.Policy
	turns     []TracesCounting
}

func newAlone(r *recording) *alone {
	return &alone{recording: r, counter: traces.NewCounter(), policy: defaultPolicy()}
}

// turn counts for so long, or so many spans where that is not 0.
func (a *alone) turn(length time.Duration, most uint64, isMeasured bool) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun, err := ownCPU()
	if err != nil {
		return err
	}
	spans := uint64(0)
	for start := time.Now(); spans == 0 || (length == 0 || time.Since(start) < length) && (most == 0 || spans < most); {
		if err := a.recording.count(a.counter, a.policy); err != nil {
			return fmt.Errorf("count recording: %w", err)
		}
		spans += uint64(a.recording.spans)
	}
	ended, err := ownCPU()
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	if isMeasured {
		a.turns = append(a.turns, TracesCounting{
			CPU:    float64(ended-begun) / float64(spans),
			Allocs: float64(after.Mallocs-before.Mallocs) / float64(spans),
		})
	}
	return nil
}
