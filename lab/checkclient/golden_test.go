package checkclient

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.* from what is printed")

// story returns the frames of a tracer that uses most features and ends with a mistake.
func story() [][]byte {
	return [][]byte{
		hello(), define(0, webKey()), numbered(0, 0), batch(webKey(), webKey()),
		batch(keyWith(func(k *span.Key) {
			k.Service, k.PeerTags, k.AdditionalTags = "My Shop\u202e", []string{
				"b:2",
				"a:\U000e0001",
			}, []string{"c:\"3\""}
		})),
		wire.AppendLost(nil, wire.Lost{"buffer_full": 7}), wire.AppendFlush(nil, &wire.Flush{ID: 1}),
		framed(0x92, 5, 0x91, 0x94, 0, 1, 2, 4),
	}
}

// TestOutput_Golden compares the human-readable and the JSON output with golden files.
func TestOutput_Golden(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"golden.txt": nil, "golden.json": func(c *Config) {
			c.JSON = true
		}, "quiet.txt": func(c *Config) { c.Quiet = true },
	} {
		s := serve(t, 1, change)
		s.send(t, story()...)
		got, err := s.wait(t)
		if err == nil ||
			!strings.Contains(err.Error(), "1 of 1 connections sent what is malformed or dropped") {
			t.Errorf("the verdict is %v", err)
		}
		file := "testdata/" + name
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: printed\n%s\nwant\n%s\nrun go test -run Golden -update and look at the difference",
				file, got, want)
		}
	}
}

// TestOutput_EachJSONLineIsAnObject: every line of --json is a JSON object that contains the texts as they
// were sent.
func TestOutput_EachJSONLineIsAnObject(t *testing.T) {
	s := serve(t, 1, func(c *Config) { c.JSON = true })
	s.send(t, story()...)
	out, _ := s.wait(t)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	services := 0
	for _, line := range lines {
		var e struct {
			Connection int
			Event      string
			Parts      []struct{ Service string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Connection != 1 || e.Event == "" {
			t.Errorf("%s: %v", line, err)
		}
		for _, part := range e.Parts {
			if part.Service == "My Shop\u202e" {
				services++
			}
		}
	}
	if len(lines) != 13 || services != 1 {
		t.Errorf("%d lines, the service is in %d:\n%s", len(lines), services, out)
	}
}

// TestOutput_MessagesOverRateAreCounted: malformed messages and the end are printed regardless of
// the message rate, and the number of messages not printed is reported.
func TestOutput_MessagesOverRateAreCounted(t *testing.T) {
	s := serve(t, 1, func(c *Config) { c.PerSecond = 3 })
	frames := [][]byte{hello()}
	for range 1000 {
		frames = append(frames, batch(webKey()))
	}
	s.send(t, append(frames, []byte{0, 0, 0, 0})...)
	out, _ := s.wait(t)
	if lines := strings.Count(out, "\n#"); lines > 8 || !strings.Contains(out, "hidden_before 999") ||
		!strings.Contains(out, "bad_frame") || !strings.Contains(out, "spans 1000") {
		t.Errorf("%d lines:\n%s", lines, out)
	}
}
