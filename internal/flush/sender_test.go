package flush

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
		end  func(*sender)
	}{
		{"closed", accepting, func(s *sender) { s.close() }},
		{"closed and aborted", accepting, func(s *sender) { s.close(); s.abort() }},
		{"aborted", draining, func(s *sender) { s.close(); s.abort() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it fails where all would wait for ever
				cfg, err := Config{}.withDefaults()
				if err != nil {
					t.Fatal(err)
				}
				s := newSender(cfg, &scripted{})
				c.end(s)
				s.wait(time.Now(), c.in)
			})
		})
	}
}
