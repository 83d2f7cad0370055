package registry

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestATagIsCutBehindItsKey: whatever tag key was found before it.
func TestATagIsCutBehindItsKey(t *testing.T) {
	for _, last := range []string{"", "host", "hostname"} {
		for _, tag := range []string{"", ":", ":web", "host", "host:", "host:web", "host:web:80", "hostname", "hostname:web", "hos:t"} {
			key, value, _ := strings.Cut(tag, ":")
			f := found{text: last}
			if k, v, isLast := f.cut(tag); k != key || v != value || isLast != (key == last && key != "") {
				t.Errorf("%q behind %q is cut into %q and %q", tag, last, k, v)
			}
		}
	}
}

// TestATagKeyThatIsTriedAgainDoesNotComeAgain, but does by the next key that has it.
func TestATagKeyThatIsTriedAgainDoesNotComeAgain(t *testing.T) {
	config := testConfig()
	config.Budgets[span.LabelPeerTag] = 1
	r := New(&config)
	origin, _ := r.AdmitOrigin(span.Origin{})
	first := keyWith("r", "key:1")
	r.Admit(origin, &first, false)
	id, ok := r.budgets.labels.lookUp(tagKeyScope(origin, span.LabelPeerTag), "key")
	if !ok {
		t.Fatal("the tag key has no number")
	}
	p := newPublisher(r, origin)
	for step, isRetry := range []bool{true, true, false} {
		key := keyWith("r", "key:2")
		p.isRetry = isRetry
		p.lookUp(&key)
		if has := r.repeats.labels.has(id); has == isRetry {
			t.Errorf("step %d: the tag key came again is %t, retry %t", step, has, isRetry)
		}
	}
}
