//go:build languages

package java

import (
	"maps"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDaemon_Restarts stops the daemon gracefully, suspends it and kills it while the application
// works. The counted spans and the spans known to be lost must add up to all spans.
func TestDaemon_Restarts(t *testing.T) {
	eachJava(t, func(t *testing.T, java string) {
		behind, ours, oracle := newReceiver(t), newLedger(t), newLedger(t)
		socket := filepath.Join(t.TempDir(), "s")
		o := start(t, oracle, filepath.Join(t.TempDir(), "o"))
		d := start(t, ours, socket)
		s := startShop(t, java, behind, []string{extensions(true)}, "SPANSTATSD_SOCKET="+socket,
			"ORACLE_ENDPOINT=http://"+o.otlp+"/v1/traces")
		const orders = 300
		s.order(t, orders)
		if lost := d.status(t).ClientLost; sum(lost) != 0 {
			t.Errorf("with a daemon there, %v was lost", lost)
		}
		d.stop(t)
		s.order(t, orders)
		d = start(t, ours, socket)
		s.order(t, orders)
		d.signal(t, syscall.SIGSTOP)
		s.order(t, orders)
		d.signal(t, syscall.SIGCONT)
		s.order(t, orders)
		if lost := d.status(t).ClientLost; sum(lost) != 0 {
			t.Errorf("over a stop in order, %v was lost", lost)
		}
		d.kill(t)
		s.order(t, orders)
		d = start(t, ours, socket)
		s.order(t, orders)
		s.end(t)
		lost := maps.Clone(d.status(t).ClientLost)
		d.stop(t)
		o.stop(t)

		died := lost["daemon_died"]
		delete(lost, "daemon_died")
		counted, all := ours.hits(anyKey), oracle.hits(anyKey)
		if missing := all - counted; sum(lost) != 0 || counted > all || missing > died {
			t.Errorf("of %d spans %d are counted; the dead daemon had %d at most, and %v was lost else", all,
				counted, died, lost)
		}
		if requests := oracle.hits(isRequest); requests != 7*orders {
			t.Errorf("the oracle has %d requests of %d", requests, 7*orders)
		}
		t.Logf("of %d spans %d are counted, the dead daemon had %d of the others at most", all, counted, died)
	})
}

// TestDaemon_Missing checks that the application starts, works and exits, and logs the missing daemon
// in one line.
func TestDaemon_Missing(t *testing.T) {
	eachJava(t, func(t *testing.T, java string) {
		s := startShop(t, java, newReceiver(t), []string{extensions(false)},
			"SPANSTATSD_SOCKET="+filepath.Join(t.TempDir(), "s"))
		s.order(t, 200)
		said := 0
		for line := range strings.Lines(s.end(t)) {
			if strings.Contains(line, "spanstatsd") {
				said++
				t.Log(strings.TrimSpace(line))
			}
		}
		if said != 1 {
			t.Errorf("%d lines are about it: %s", said, s.output)
		}
	})
}
