package otel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// This file implements the sampling specification (tracestate-probability-sampling and
// tracestate-handling) in the simplest way. It shares no code with the daemon.

// none is a missing threshold or randomness.
const none = -1

// never is above every randomness value, which has 56 bits.
const never = 1 << 56

// said is the sampling context that a span receives and passes to its children.
type said struct {
	id         [16]byte
	isRoot     bool // no context received
	isSampled  bool
	threshold  int64 // th
	randomness int64 // rv
}

// root is the context of the n-th root span, with the trace ID that apps/chain assigns.
func root(n int) said {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return said{id: [16]byte(sum[:16]), isRoot: true, threshold: none, randomness: none}
}

// random returns the randomness of the trace: the explicit value, or else the last 56 bits of its ID.
func (s said) random() int64 {
	if s.randomness != none {
		return s.randomness
	}
	return int64(binary.BigEndian.Uint64(s.id[8:]) % never)
}

// sampler is the sampler configured in apps/chain. Its thresholds have the given number of digits after
// their leading f digits.
type sampler struct {
	isParent bool
	rate     float64
	digits   int
}

func (s sampler) String() string {
	return map[bool]string{true: "parent:", false: "probability:"}[s.isParent] + fmt.Sprint(s.rate)
}

// child returns the context of a child span after this sampler has decided.
func (s sampler) child(parent said) said {
	child := parent
	child.isRoot = false
	if parent.isRoot || !s.isParent {
		child.threshold = thresholdOf(s.rate, s.digits)
		child.isSampled = parent.random() >= child.threshold
	}
	if !child.isSampled {
		child.threshold = none
	}
	return child
}

// thresholdOf returns the threshold for a sampling rate, rounded as the specification recommends.
func thresholdOf(rate float64, digits int) int64 {
	t := never - int64(math.Round(rate*never))
	hex := fmt.Sprintf("%014x", t)
	for digits < len(hex) && hex[0] == 'f' {
		hex = hex[1:]
	}
	for unit := int64(1); digits < len(hex); hex = hex[:len(hex)-1] {
		unit *= 16
		if len(hex)-1 == digits {
			t = (t + unit/2) / unit * unit
		}
	}
	return t
}

// weightOf returns the adjusted count of a span with the given threshold.
func weightOf(threshold int64) float64 {
	if threshold == none {
		return 1
	}
	return never / float64(never-threshold)
}

// sampled applies another sampling step with the given threshold. The stricter of both thresholds
// applies.
func (s said) sampled(threshold int64) (left said, goesOn bool) {
	if s.threshold >= threshold {
		return s, true
	}
	left, goesOn = s, s.random() >= threshold
	if threshold > 0 { // a share of 1 leaves the spans unchanged
		left.threshold = threshold
	}
	return left, goesOn
}

// entry returns the OpenTelemetry tracestate entry.
func (s said) entry() string {
	var pairs []string
	if s.threshold != none {
		digits := strings.TrimRight(fmt.Sprintf("%014x", s.threshold), "0")
		if digits == "" {
			digits = "0"
		}
		pairs = append(pairs, "th:"+digits)
	}
	if s.randomness != none {
		pairs = append(pairs, fmt.Sprintf("rv:%014x", s.randomness))
	}
	return strings.Join(pairs, ";")
}
