package status

import (
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// TestLog_Drops runs the log for minutes of fake time, with a tracer that loses spans. The first line comes
// soon, and then at most one per minute. Each line has the drops since the previous line by reason, and the tracer
// with the most drops. The last line comes at shutdown.
func TestLog_Drops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the race detector does not see the order of timers in a synctest bubble
		var out lockedBuffer
		since := time.Now()
		spans := map[string]uint64{"ring_full": 7, "over_share": 0, leftToAgent: 0}
		tracers := []ingest.Tracer{
			{Service: "shop", PID: 1, Since: since},
			{Service: "cart", PID: 2, Since: since},
		}
		locked := func(do func()) { mu.Lock(); defer mu.Unlock(); do() }
		log := LossLog{
			Collapsed:     func() map[string]uint64 { return nil },
			Masked:        func() map[string]uint64 { return nil },
			MostCollapsed: func() (string, uint64) { return "", 0 },
			Dropped: func() (now map[string]uint64) {
				locked(func() {
					now = maps.Clone(spans)
				})
				return now
			},
			Tracers: func() (now []ingest.Tracer) {
				locked(func() {
					now = append(now, tracers...)
				})
				return now
			},
			Log: slog.New(slog.NewJSONHandler(&out, nil)),
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { log.Run(stop); close(stopped) }()
		synctest.Wait()
		locked(func() { spans[leftToAgent] = 1000 })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("nothing was lost, and it wrote %s", out.String())
		}
		type line struct {
			Spans  map[string]uint64 `json:"spans_since_last_line"`
			Mostly struct {
				Service string
				PID     int32
			}
			MostlySpans uint64 `json:"mostly_spans"`
		}
		// lose adds dropped spans, waits, and returns the lines logged in that time
		lose := func(cart uint64, pass time.Duration) (lines []line) {
			before := len(out.String())
			locked(func() {
				spans["over_share"] += cart + 1
				tracers[0].Dropped++
				tracers[1].Dropped += cart
			})
			time.Sleep(pass)
			synctest.Wait()
			for text := range strings.Lines(out.String()[before:]) {
				var l line
				if err := json.Unmarshal([]byte(text), &l); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, l)
			}
			return lines
		}
		check := func(what string, lines []line, all, most uint64) {
			t.Helper()
			if len(lines) != 1 || len(lines[0].Spans) != 1 || lines[0].Spans["over_share"] != all ||
				lines[0].Mostly.Service != "cart" || lines[0].MostlySpans != most {
				t.Errorf("%s: %+v", what, lines)
			}
		}
		check("the first loss", lose(10, tickInterval), 11, 10)
		if early := lose(20, 50*time.Second); len(early) != 0 {
			t.Errorf("within the minute: %+v", early)
		}
		check("after the minute", lose(30, 10*time.Second), 52, 50)
		before := len(out.String())
		lose(3, 0)
		close(stop)
		<-stopped
		if last := out.String()[before:]; !strings.Contains(last, `"over_share":4}`) {
			t.Errorf("the last line is %q", last)
		}
	})
}
