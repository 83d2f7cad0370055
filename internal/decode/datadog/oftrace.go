package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// texts are what the spans of a trace say of its process, and where the trace came from.
type texts struct{ env, version, host, commit, origin spantable.Text }

// override replaces each text by another that is not empty.
func (t *texts) override(by *texts) {
	replace(&t.env, by.env)
	replace(&t.version, by.version)
	replace(&t.host, by.host)
	replace(&t.commit, by.commit)
	replace(&t.origin, by.origin)
}

func replace(to *spantable.Text, by spantable.Text) {
	if by.Len != 0 {
		*to = by
	}
}

// ofTrace is what a trace of the older formats says of itself in its spans.
type ofTrace struct {
	texts
	id           uint64 // its lower half
	priority     int32
	hasPriority  bool
	rootPriority int32
	seenRoot     bool
}

// note notes a tag that is its trace's more than its span's: the last one of a trace counts, also
// an empty one.
func (o *ofTrace) note(t *spantable.Tag) {
	switch t.Label {
	case LabelEnv:
		o.env = t.Text()
	case LabelVersion:
		o.version = t.Text()
	case LabelHostname:
		o.host = t.Text()
	case LabelCommit:
		o.commit = t.Text()
	case LabelOrigin:
		o.origin = t.Text()
	}
}

// notePriority notes the priority, which is written as a number.
func (o *ofTrace) notePriority(t *spantable.Tag) {
	if t.Label == LabelPriority {
		o.priority, o.hasPriority = int32(math.Float64frombits(t.Bits)), true
	}
}

// reconcile has the root's priority stand against those of later spans.
func (o *ofTrace) reconcile(parent uint64) {
	if parent == 0 && o.hasPriority {
		o.rootPriority, o.seenRoot = o.priority, true
	} else if o.seenRoot {
		o.priority = o.rootPriority
	}
}
