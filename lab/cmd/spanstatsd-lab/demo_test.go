package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestDemo runs the demo of each destination briefly and checks its output.
func TestDemo(t *testing.T) {
	for _, destination := range []string{"agent", "otlp", "prometheus"} {
		t.Run(destination, func(t *testing.T) { testDemo(t, destination) })
	}
}

func testDemo(t *testing.T, destination string) {
	cmd := program(t, "demo", "--destination", destination, "--for", "3s", "--rate", "5000", "--json")
	// Hides an installed Prometheus. test/commands tests the demo with a real one, if it is
	// installed.
	cmd.Env = append(cmd.Env, "PATH=/nowhere")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	var last map[string]any
	objects := 0
	for ; ; objects++ {
		var object map[string]any
		if err := decoder.Decode(&object); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		last = object
	}
	if objects < 2 || last["balanced"] != true || last["equal"] != true || last["received"].(float64) < 5000 {
		t.Errorf("%d objects, the last is %v", objects, last)
	}
	dropped, ok := last["dropped"].(map[string]any)
	for _, reason := range []string{"ring_full", "malformed", "batch_too_large", "not_wanted", "shutdown"} {
		if count, there := dropped[reason]; !ok || !there || count != 0.0 {
			t.Errorf("dropped[%s] is %v", reason, count)
		}
	}
	cmd = program(t, "demo", "--destination", destination, "--for", "1s", "--rate", "3000")
	cmd.Env = append(cmd.Env, "PATH=/nowhere")
	table, err := cmd.Output()
	if err != nil || !strings.Contains(string(table), "SERVICE") ||
		!strings.Contains(string(table), "every span is accounted for") {
		t.Errorf("%v\n%s", err, table)
	}
}
