package main

import (
	"os"
	"path/filepath"
	"testing"
)

// As written by Java 17.
const (
	before = "[0.011s][info][gc] Using G1\n[2.1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation " +
		"Pause) 23M->5M(64M) 4.051ms\n"
	within = "[3.2s][info][gc] GC(1) Concurrent Mark Cycle\n[3.3s][info][gc] GC(1) Pause Remark " +
		"21M->20M(64M) 2.500ms\n" +
		"[3.4s][info][gc] GC(1) Concurrent Mark Cycle 40.120ms\n[3.5s][info][gc] GC(2) Pause Full (G1 " +
		"Compaction Pause) 60M->31M(64M) 31.250ms\n"
)

func TestCollections(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	l := collectionLog(file)
	if n, err := l.length(); n != 0 || err != nil {
		t.Errorf("%d, %v for a missing file", n, err)
	}
	if pauses, ms, err := l.between(0, 0); pauses != 0 || ms != 0 || err != nil {
		t.Error(pauses, ms, err)
	}
	write := func(text string) int {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := l.length()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	from, to := write(before), write(before+within)
	write(before + within + before)
	if pauses, ms, err := l.between(from, to); pauses != 2 || ms != 33.75 || err != nil {
		t.Error(pauses, ms, err)
	}
}
