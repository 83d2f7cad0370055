package spans

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The grammar of the W3C tracestate and of its OpenTelemetry entry.
var (
	member = regexp.MustCompile(`^([a-z][a-z0-9_*/-]{0,255}|` +
		`[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})=([ -+\x2d-<>-~]{1,256})$`)
	pair = regexp.MustCompile(`^([a-z][a-z0-9]*):([a-zA-Z0-9._-]*)$`)
)

// state is the sampling information of a tracestate, read from the text of its entry.
type state struct {
	isMalformed bool
	th, rv      string
	own         []string // pairs of the OpenTelemetry entry except th
	others      []string
}

func stateOf(text string) (s state) {
	malformed, seen := state{isMalformed: true}, false
	if len(text) > 1024 {
		return malformed
	}
	members := 0
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.Trim(one, " \t"); one == "" {
			continue
		}
		found := member.FindStringSubmatch(one)
		if members++; found == nil || members > 32 || found[1] == "ot" && seen {
			return malformed
		}
		if found[1] != "ot" {
			s.others = append(s.others, one)
			continue
		}
		seen = true
		s.th, s.rv, s.own = ownOf(found[2])
	}
	return s
}

// ownOf parses the OpenTelemetry entry. It returns nothing if any part of the entry is invalid.
func ownOf(entry string) (th, rv string, others []string) {
	for one := range strings.SplitSeq(entry, ";") {
		found := pair.FindStringSubmatch(one)
		if found == nil {
			return "", "", nil
		}
		_, err := strconv.ParseUint(found[2], 16, 64)
		switch found[1] {
		case "th":
			if err != nil || len(found[2]) > 14 || th != "" {
				return "", "", nil
			}
			th = found[2]
			continue
		case "rv":
			if err != nil || len(found[2]) != 14 || rv != "" {
				return "", "", nil
			}
			rv = found[2]
		}
		others = append(others, one)
	}
	return th, rv, others
}

// isTrue reports whether there is a threshold that is consistent with the randomness.
func (s *state) isTrue() bool {
	return s.th != "" && (s.rv == "" || s.randomness() >= s.threshold())
}

func (s *state) randomness() uint64 {
	v, _ := strconv.ParseUint(s.rv, 16, 64)
	return v
}

// threshold returns the value of th, in units of 2^-56.
func (s *state) threshold() uint64 {
	v, _ := strconv.ParseUint((s.th + strings.Repeat("0", 14))[:14], 16, 64)
	return v
}

func weightOf(text string) float64 {
	s := stateOf(text)
	if !s.isTrue() {
		return 1
	}
	return min(math.Pow(2, 56)/(math.Pow(2, 56)-float64(s.threshold())), 1<<32)
}
