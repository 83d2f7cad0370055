package checkclient

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestSession_IsBounded: a tracer that sends ever new keys, tag keys, numbers and labels
// to normalize cannot make a session exceed its limits. The message that ends the session is
// still printed.
func TestSession_IsBounded(t *testing.T) {
	all := hello()
	for i := range 3 * maxWhole {
		key := keyWith(func(k *span.Key) {
			k.Service, k.Resource = fmt.Sprint("Shop ", i), fmt.Sprint("r", i)
			k.PeerTags = []string{fmt.Sprint("b", i, ":1"), fmt.Sprint("a:", i)}
		})
		all = append(append(all, batch(key)...), define(uint32(i%8192), key)...)
	}
	all = append(all, framed(0x92, 5, 0x80)...)
	var out bytes.Buffer
	c := New(configOf(&out))
	s := newSession(c, &sent{Reader: bytes.NewReader(all)}, 1)
	ended := s.run()
	if ended == nil {
		t.Fatal("a malformed message ended nothing")
	}
	s.fail(ended)
	if !strings.Contains(out.String(), "malformed: bad_message: walk spans: expected an array") {
		t.Error("the cause of the end is not reported")
	}
	if len(s.noted) > maxNotes+1 || len(s.keys.complete) > maxWhole || len(s.keys.numbers) > 8192 ||
		len(s.keys.used) > maxScopes {
		t.Errorf("kept: %d notes, %d keys, %d numbers, %d scopes", len(s.noted), len(s.keys.complete),
			len(s.keys.numbers), len(s.keys.used))
	}
	budgets := 0
	for label := range span.WholeKey {
		budgets += label.Budget() + 1
	}
	if most := budgets + maxScopes*(span.LabelPeerTag.Budget()+1); len(s.keys.values) > most {
		t.Errorf("kept: %d values, at most %d", len(s.keys.values), most)
	}
}

// TestOutput_LongTextIsTruncated: a label of one megabyte does not make the printed line as long.
func TestOutput_LongTextIsTruncated(t *testing.T) {
	s := serve(t, 1, nil)
	s.send(t, hello(), batch(keyWith(func(k *span.Key) { k.Resource = strings.Repeat("r", 1_000_000) })))
	if out, err := s.wait(t); err != nil || len(out) > 4096 || !strings.Contains(out, "(1000000 bytes)") {
		t.Errorf("%d bytes are printed, verdict %v", len(out), err)
	}
}

// TestInterrupt_IsAShutdown: on an interrupt, tracers are sent bye as during a daemon's
// shutdown, messages already written are read, and the verdict covers the tracers that had
// connected.
func TestInterrupt_IsAShutdown(t *testing.T) {
	s := serve(t, 0, nil)
	conn, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(append(hello(), batch(webKey())...)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the batch is reported", func() bool {
		return strings.Contains(s.out.String(), "#1 spans")
	})
	s.stop()
	out, err := s.wait(t)
	if err != nil || !strings.Contains(out, `type "bye", bytes`) ||
		!strings.Contains(out, `reason "shutdown"`) || !strings.Contains(out, "well true") {
		t.Errorf("verdict %v:\n%s", err, out)
	}
}

// TestVerdict_FailsWithoutConnection: a check without any connection fails.
func TestVerdict_FailsWithoutConnection(t *testing.T) {
	s := serve(t, 0, nil)
	s.stop()
	if _, err := s.wait(t); err == nil || !strings.Contains(err.Error(), "no tracer connected") {
		t.Errorf("verdict %v", err)
	}
}

// TestClients_ServedConcurrently: tracers are served concurrently. A silent tracer does not delay the
// others, and each gets its own verdict.
func TestClients_ServedConcurrently(t *testing.T) {
	s := serve(t, 3, nil)
	silent, err := net.Dial("unix", s.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Write(hello()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the silent one is there", func() bool {
		return strings.Contains(s.out.String(), "#1 hello")
	})
	s.send(t, hello(), batch(webKey()), wire.AppendBye(nil, &wire.Bye{Reason: "exit"}))
	s.send(t, hello(), []byte{0, 0, 0, 0})
	silent.Close()
	out, err := s.wait(t)
	if err == nil || !strings.Contains(err.Error(), "1 of 3 connections") ||
		strings.Count(out, "well true") != 2 || !strings.Contains(out, "#2 bye") {
		t.Errorf("verdict %v:\n%s", err, out)
	}
}
