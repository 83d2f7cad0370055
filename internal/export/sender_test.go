package export

import (
	"testing"
	"testing/synctest"
	"time"
)

// A sender that waits for an event also notices events that occurred before it began to wait.
func TestSender_EventBeforeWait(t *testing.T) {
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
			synctest.Test(t, func(t *testing.T) { // it fails if all goroutines would wait forever
				cfg, err := Config{}.withDefaults()
				if err != nil {
					t.Fatal(err)
				}
				s := newPush(cfg, (&scripted{}).describe())
				c.end(s)
				s.waitForEvent(time.Now(), c.in)
			})
		})
	}
}
