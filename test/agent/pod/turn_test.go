package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Everything is as in a run, but short: each request of a pod in Go is counted once in
// every way.
func TestEveryRequestIsCounted(t *testing.T) {
	at := places{built: t.TempDir()}
	build(t, ".", at.built, "./agent", "./apps/goshop")
	build(t, "../../..", at.built, "./cmd/spanstatsd")
	for _, c := range cells() {
		if c.app.name != "go v0.4" {
			continue
		}
		for _, w := range ways {
			if w.computes {
				continue // that takes its tracer's ten seconds
			}
			t.Run(c.String()+"/"+w.name, func(t *testing.T) {
				got, err := take(at, c, w, windows{500 * time.Millisecond, 500 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				want := counts{Hits: got.Spans, Requests: got.Requests, Named: got.Counted.Named}
				if !w.traced {
					want = counts{}
				}
				if got.Counted != want || got.Requests == 0 || got.Failed != 0 || got.CPU.App <= 0 || got.Peak.App <= 0 {
					t.Errorf("%+v", got)
				}
				if !c.many && w.traced && got.Counted.Named != got.Window {
					t.Errorf("of %d requests %d have their own name", got.Window, got.Counted.Named)
				}
				if (got.Peak.Agent > 0) != w.traced || (got.Peak.Daemon > 0) != (w.daemon != nil) {
					t.Errorf("on the bill are %+v", got)
				}
			})
		}
	}
}

func build(t *testing.T, dir, into string, packages ...string) {
	t.Helper()
	command := exec.Command("go", append([]string{"build", "-o", into + string(filepath.Separator)}, packages...)...)
	command.Dir = dir
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}
