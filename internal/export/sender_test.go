package export

import (
	"testing"
	"testing/synctest"
	"time"
)

// A sender that has decided to wait does so whatever ends meanwhile: it is told of each end that
// has come since, so it never waits for one that is over.
func TestAnEndThatComesBeforeTheWaitEndsIt(t *testing.T) {
	for _, c := range []struct {
		name string
		in   phase
		end  func(*pushDestination)
	}{
		{"closed", accepting, func(s *pushDestination) { s.stopAccepting() }},
		{"closed and aborted", accepting, func(s *pushDestination) { s.stopAccepting(); s.abort() }},
		{"aborted", draining, func(s *pushDestination) { s.stopAccepting(); s.abort() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it fails where all would wait for ever
				cfg, err := Config{}.withDefaults()
				if err != nil {
					t.Fatal(err)
				}
				s := newPush(cfg, (&scripted{}).describe())
				c.end(s)
				s.wait(time.Now(), c.in)
			})
		})
	}
}
