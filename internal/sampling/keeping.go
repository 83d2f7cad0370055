package sampling

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Keeping says which traces go on.
type Keeping struct {
	Share  float64       // of all traces, from 0 to 1
	Errors bool          // also those in which the request has a span with an error
	Slow   time.Duration // also those whose root took as long, unless it is 0
}

// ParseKeeping reads which traces go on: a share, and what goes on beside it, such as
// 0.05,errors,slow:500ms.
func ParseKeeping(text string) (k Keeping, err error) {
	words := strings.Split(text, ",")
	if k.Share, err = strconv.ParseFloat(words[0], 64); err != nil || !(k.Share >= 0 && k.Share <= 1) {
		return k, fmt.Errorf("parse otlp-keep: %q does not begin with a share of traces, from 0 to 1; give "+
			"0.05, or 0.05,errors,slow:500ms", text)
	}
	for _, word := range words[1:] {
		duration, isSlow := strings.CutPrefix(word, "slow:")
		if isSlow {
			k.Slow, err = time.ParseDuration(duration)
		}
		switch {
		case word == "errors":
			k.Errors = true
		case !isSlow || err != nil || k.Slow <= 0:
			return k, fmt.Errorf("parse otlp-keep: %q is neither errors nor slow:500ms", word)
		}
	}
	return k, nil
}

// Tally is how many traces there are, and how many spans.
type Tally struct{ Traces, Spans int }

// Left is what of a body goes on.
type Left struct {
	IsWhole    bool  // all of it, as it came
	Size       int   // bytes
	Kept, Gone Tally // counted where a Keeping says which traces go on
}
