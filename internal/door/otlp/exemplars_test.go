package otlp

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// TestWhatTheDestinationTookIsAnExemplar, and nothing else is: not what it refused, or took only
// in part, or what did not go on; and the room of each candidate comes back.
func TestWhatTheDestinationTookIsAnExemplar(t *testing.T) {
	in := func(rejected byte) []byte { return nested(nil, 1, []byte{8, rejected}) }
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		keep   *sampling.Keeping
		isJSON bool
		want   exemplars.Counts
	}{
		"taken":               {want: exemplars.Counts{Taken: 1}},
		"taken, with a share": {keep: &sampling.Keeping{Share: 1}, want: exemplars.Counts{Taken: 1}},
		"refused": {answer: func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
		}, want: exemplars.Counts{Refused: 1}},
		"later": {answer: func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, want: exemplars.Counts{Refused: 1}},
		"broken off": {answer: func(http.ResponseWriter) {
			panic(http.ErrAbortHandler)
		}, want: exemplars.Counts{Refused: 1}},
		"in part": {answer: func(w http.ResponseWriter) {
			_, _ = w.Write(in(3))
		}, want: exemplars.Counts{Refused: 1}},
		"with a warning": {answer: func(w http.ResponseWriter) {
			_, _ = w.Write(in(0))
		}, want: exemplars.Counts{Taken: 1}},
		"in part, JSON": {isJSON: true, answer: func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"1"}}`)
		}, want: exemplars.Counts{Refused: 1}},
		"taken, JSON": {isJSON: true, answer: func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{}`)
		}, want: exemplars.Counts{Taken: 1}},
		"ended here": {keep: &sampling.Keeping{Share: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			to := newCollector(t, false, func(w http.ResponseWriter, _ int) {
				if c.answer != nil {
					c.answer(w)
				}
			})
			forward, table := forwardTo(t, to.url()), exemplars.New(1)
			h := newHarness(t, func(config *Config, a *aggregate.Config) {
				forward(config, a)
				config.Exemplars, config.Keep = table, c.keep
			})
			if c.isJSON {
				send(t, h.client(false), http.MethodPost, "/v1/traces", bytes.NewReader([]byte(inJSONText)),
					"Content-Type", mediaJSON)
			} else {
				post(t, h.client(c.want.Taken == 0), exported("shop", 0, 5, 1))
			}
			h.stop()
			if got := table.Counts(); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestAnExemplarIsItsSpan: the slowest of its series that goes on, by its ids, whatever stands
// between; and room for one is enough for one request after the other.
func TestAnExemplarIsItsSpan(t *testing.T) {
	to := newCollector(t, true, nil)
	forward, table := forwardTo(t, to.url()), exemplars.New(1)
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.Exemplars = table
	})
	for _, isHTTP2 := range []bool{false, true} {
		if a := post(t, h.client(isHTTP2), exported("shop", 41, 1, 1)); a.status != http.StatusOK {
			t.Errorf("answered %+v", a)
		}
	}
	h.stop()
	found := exemplars.Exemplar{}
	for cycle := range uint64(8) { // of some interval
		for key := range uint32(4) {
			if e := table.Seal(cycle).Of(key, false); e.Span != 0 {
				found = e
			}
		}
	}
	if got := table.Counts(); found.TraceLow == 0 || found.Span != found.TraceLow || found.Duration != 1000 ||
		got.Taken != 1 {
		t.Errorf("found %+v; %+v", found, got)
	}
}
