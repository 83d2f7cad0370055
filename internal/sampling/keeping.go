package sampling

import (
	"errors"
	"fmt"
	"time"
)

// Keeping says which traces go on.
type Keeping struct {
	Share  float64       // of all traces, from 0 to 1
	Errors bool          // also those in which the request has a span with an error
	Slow   time.Duration // also those whose root took as long, unless it is 0
}

// Check says what is unusable.
func (k *Keeping) Check() (err error) {
	if !(k.Share >= 0 && k.Share <= 1) {
		err = fmt.Errorf("check share of traces: %v is none, it is from 0 to 1", k.Share)
	}
	if k.Slow < 0 {
		err = errors.Join(err, fmt.Errorf("check slow traces: %v is less than 0", k.Slow))
	}
	return err
}

// Tally is how many traces there are, and how many spans.
type Tally struct{ Traces, Spans int }

// Left is what of a body goes on.
type Left struct {
	IsWhole    bool  // all of it, as it came
	Size       int   // bytes
	Kept, Gone Tally // counted where a Keeping says which traces go on
}
