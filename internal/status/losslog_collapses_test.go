package status

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLog_Collapses runs the log for an hour of fake time, with labels that collapse during some minutes.
func TestLog_Collapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the race detector does not see the order of timers in a synctest bubble
		var out lockedBuffer
		spans, label, keys := map[string]uint64{"resource": 0, "peer_tag": 0}, "", uint64(0)
		log := LossLog{
			Dropped: func() map[string]uint64 { return nil },
			Collapsed: func() map[string]uint64 {
				mu.Lock()
				defer mu.Unlock()
				return maps.Clone(spans)
			},
			MostCollapsed: func() (string, uint64) {
				mu.Lock()
				defer mu.Unlock()
				l, n := label, keys
				label, keys = "", 0
				return l, n
			},
			Masked: func() map[string]uint64 { return nil },
			Log:    slog.New(slog.NewJSONHandler(&out, nil)),
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { log.Run(stop); close(stopped) }()
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("nothing collapsed, and it wrote %s", out.String())
		}
		for range 9 { // minutes, so that the first line falls into them
			mu.Lock()
			spans["resource"] += 10
			spans["peer_tag"] += 100
			label, keys = "peer_tag peer.hostname", keys+70
			mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 1 {
			t.Fatalf("%d lines in nine minutes:\n%s", len(lines), out.String())
		}
		var line struct {
			Spans map[string]uint64 `json:"spans_since_last_line"`
			Label string            `json:"mostly"`
			Keys  uint64            `json:"mostly_keys"`
		}
		if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
			t.Fatal(err)
		}
		if line.Spans["resource"] != 50 || line.Spans["peer_tag"] != 500 || len(line.Spans) != 2 ||
			line.Label != "peer_tag peer.hostname" || line.Keys != 350 {
			t.Errorf("the first line is %s", lines[0])
		}
		time.Sleep(5 * time.Minute)
		spans["origin"] = 7 // origin can't be the label with the most collapses
		close(stop)
		<-stopped
		lines = strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[1], `"resource":40`) ||
			!strings.Contains(lines[1], `"peer_tag":400`) ||
			!strings.Contains(lines[2], `{"origin":7}`) || strings.Contains(lines[2], "mostly") {
			t.Errorf("the last lines are\n%s", out.String())
		}
	})
}

// TestLog_Masks checks that each line has the masked keys since the previous line, and that there is
// no line without any.
func TestLog_Masks(t *testing.T) {
	var out bytes.Buffer
	masked := map[string]uint64{"resource": 5, "http_endpoint": 0}
	log := LossLog{
		Masked: func() map[string]uint64 { return maps.Clone(masked) },
		Log:    slog.New(slog.NewJSONHandler(&out, nil)),
	}
	for _, want := range []string{
		`"keys_since_last_line":{"resource":5}`, "",
		`"keys_since_last_line":{"resource":7}`,
	} {
		if log.logMaskedNames(); !strings.Contains(out.String(), want) || (out.Len() == 0) != (want == "") {
			t.Errorf("the line is %s, want %s", out.String(), want)
		}
		out.Reset()
		if want == "" {
			masked["resource"] += 7
		}
	}
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
