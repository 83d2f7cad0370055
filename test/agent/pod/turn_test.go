package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTurn_EveryRequestIsCounted makes a short run and checks that each request of a Go pod is counted once
// with every variant.
func TestTurn_EveryRequestIsCounted(t *testing.T) {
	at := places{built: t.TempDir()}
	build(t, ".", at.built, "./agent", "./apps/goshop")
	build(t, "../../..", at.built, "./cmd/spanstatsd")
	for _, c := range cells() {
		if c.app.name != "go v0.4" {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			short := schedule{
				warm: 500 * time.Millisecond, interval: 500 * time.Millisecond,
				slice: 100 * time.Millisecond, settle: 100 * time.Millisecond, rounds: 5,
			}
			turns, err := take(at, c, short)
			if err != nil || len(turns) != len(variants) {
				t.Fatal(len(turns), err)
			}
			for i, got := range turns {
				checkTurn(t, c, variants[i], got)
			}
		})
	}
}

func checkTurn(t *testing.T, c cell, w variant, got turn) {
	t.Helper()
	want := counts{
		Hits: got.Spans, Requests: got.Requests, Named: got.Counted.Named,
		Masked: got.Counted.Masked,
	}
	if w.tracer == none {
		want = counts{}
	}
	if got.Way != w.name || got.Counted != want || got.Failed != 0 || got.CPU.App <= 0 || got.Peak.App <= 0 {
		t.Errorf("%+v", got)
	}
	// Besides the billed ones, there are requests of the warm-up, of one round, and of the interval.
	if got.Billed == 0 || got.Interval == 0 || got.Requests <= got.Billed+got.Interval {
		t.Errorf("%+v", got)
	}
	if !c.many && (w.tracer != none) && got.Counted.Named != got.Interval {
		t.Errorf("%d requests, %d of them with a unique name", got.Interval, got.Counted.Named)
	}
	if (got.Peak.Agent > 0) != (w.tracer != none) || (got.Peak.Daemon > 0) != (w.daemon != nil) {
		t.Errorf("billed usage %+v", got)
	}
}

func build(t *testing.T, dir, into string, packages ...string) {
	t.Helper()
	command := exec.Command("go", append([]string{"build", "-o", into + string(filepath.Separator)},
		packages...)...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}
