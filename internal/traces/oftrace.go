package traces

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// ofTrace is what a trace of the older formats says of itself in the tags of its spans.
type ofTrace struct {
	env, version, host, commit, origin msgpack.Text
	priority                           int32
	hasPriority                        bool
	rootPriority                       int32
	seenRoot                           bool
}

// noteOfTrace notes those tags of a set that are their trace's more than their span's: the
// last one of a trace counts, also an empty one.
func (p *payload) noteOfTrace(rec *record, set uint64, kind kindOf) {
	has := func(l label, as kindOf) bool { return set&(1<<l) != 0 && kind == as }
	o := &p.ofTrace
	if has(labelPriority, isNumber) {
		o.priority, o.hasPriority = int32(math.Float64frombits(p.said[labelPriority])), true
	}
	if has(labelKind, isText) {
		rec.kind = p.kindNamed(textOf(p.said[labelKind]).Of(p.body))
	}
	if has(labelEnv, isText) {
		o.env = textOf(p.said[labelEnv])
	}
	if has(labelVersion, isText) {
		o.version = textOf(p.said[labelVersion])
	}
	if has(labelOrigin, isText) {
		o.origin = textOf(p.said[labelOrigin])
	}
	if has(labelHostname, isText) {
		o.host = textOf(p.said[labelHostname])
	}
	if has(labelCommit, isText) {
		o.commit = textOf(p.said[labelCommit])
	}
}

// reconcile lets the root's priority stand against those of later spans.
func (o *ofTrace) reconcile(parent uint64) {
	if parent == 0 && o.hasPriority {
		o.rootPriority, o.seenRoot = o.priority, true
		return
	}
	if o.seenRoot {
		o.priority = o.rootPriority
	}
}

// forgetTexts leaves the priority alone, of which the last one counts in all formats.
func (o *ofTrace) forgetTexts() {
	o.env, o.version, o.host, o.commit, o.origin = msgpack.Text{}, msgpack.Text{}, msgpack.Text{}, msgpack.Text{}, msgpack.Text{}
}

// addFirst takes over what an earlier span has not said.
func (o *ofTrace) addFirst(earlier *ofTrace) {
	replace(&o.env, earlier.env)
	replace(&o.version, earlier.version)
	replace(&o.host, earlier.host)
	replace(&o.commit, earlier.commit)
	replace(&o.origin, earlier.origin)
}

// tell gives what a trace says to the payload: what is not empty replaces what an
// earlier trace said.
func (o *ofTrace) tell(f *facts) {
	replace(&f.env, o.env)
	replace(&f.version, o.version)
	replace(&f.host, o.host)
	replace(&f.commit, o.commit)
}

// replace replaces a text by another that is not empty.
func replace(to *msgpack.Text, by msgpack.Text) {
	if by.Len != 0 {
		*to = by
	}
}

// mark gives a trace what its spans say of its origin and priority.
func (o *ofTrace) mark(c *chunk) {
	replace(&c.origin, o.origin)
	if o.hasPriority {
		c.priority, c.hasPriority = o.priority, true
	}
}
