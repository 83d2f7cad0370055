package main

import (
	"io"
	"log"
	"os"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// A process of a crowd is this program too.
func TestMain(m *testing.M) {
	if os.Getenv(crowdVariable) != "" {
		main()
		return
	}
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// unmended are shapes that the short soak leaves out, each with the defect that it shows.
// Who mends one takes its row away.
var unmended = map[string]string{}

// TestAShortSoak: everything at once, for less than a minute.
func TestAShortSoak(t *testing.T) {
	program, err := built.Plain(t.TempDir(), built.Daemon)
	if err != nil {
		t.Fatal(err)
	}
	line, isGood, err := run(settings{
		program: program, length: 30 * time.Second, log: io.Discard, notes: testLog{t},
		isTried: func(shape string) bool { return unmended[shape] == "" },
	})
	t.Log(line)
	if err != nil || !isGood {
		t.Errorf("%v: %s", err, line)
	}
}

// testLog is a test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(p))
	return len(p), nil
}
