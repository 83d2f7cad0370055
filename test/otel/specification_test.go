package otel

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// This is what the specification has of sampling (tracestate-probability-sampling and
// tracestate-handling), as naively as it reads. It shares nothing with the daemon's code.

// none is a threshold, or randomness, that nobody has said.
const none = -1

// never is above each randomness, which has 56 bits.
const never = 1 << 56

// said is what a span knows of its trace, and hands to the spans below it.
type said struct {
	id         [16]byte
	isRoot     bool // nobody has said anything
	isSampled  bool
	threshold  int64 // th
	randomness int64 // rv
}

// root is what the n-th span without a parent knows, by the ids that apps/chain has.
func root(n int) said {
	sum := sha256.Sum256([]byte(strconv.Itoa(n)))
	return said{id: [16]byte(sum[:16]), isRoot: true, threshold: none, randomness: none}
}

// random is that of the trace: what is said, else the last 56 bits of its id.
func (s said) random() int64 {
	if s.randomness != none {
		return s.randomness
	}
	return int64(binary.BigEndian.Uint64(s.id[8:]) % never)
}

// sampler is one as apps/chain is told to have. Its thresholds have so many digits behind those
// that are all f.
type sampler struct {
	isParent bool
	rate     float64
	digits   int
}

func (s sampler) String() string {
	return map[bool]string{true: "parent:", false: "probability:"}[s.isParent] + fmt.Sprint(s.rate)
}

// child is what a span below knows once this sampler has decided about it.
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

// thresholdOf is that of a share, rounded as the specification recommends it.
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

// weightOf is the adjusted count of a span with a threshold.
func weightOf(threshold int64) float64 {
	if threshold == none {
		return 1
	}
	return never / float64(never-threshold)
}

// sampled is what is left of a span where the share with a threshold goes on: it has the stricter
// of both.
func (s said) sampled(threshold int64) (left said, goesOn bool) {
	if s.threshold >= threshold {
		return s, true
	}
	left, goesOn = s, s.random() >= threshold
	if threshold > 0 { // of a share of all nothing is left out, and its spans stay as they are
		left.threshold = threshold
	}
	return left, goesOn
}

// entry is OpenTelemetry's in a tracestate.
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
