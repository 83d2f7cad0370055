package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Destination is one place where statistics go.
type Destination interface {
	Name() string // in metrics, the log and status
	URL() string  // for operators, without credentials
	Stats() Stats
	Flushes() []Flush // the last ones, the newest first

	// join takes the spans of a sealed cycle into the stats, and reports whether accept must follow.
	join(cleared, spans uint64) (takesPart bool)
	accept(c *Cycle)

	// Shutdown, in this order: close has no more cycles accepted, end returns when nothing is sent any
	// more, and settle gives every cycle that is left its outcome.
	close()
	end(ctx context.Context)
	settle()
}

// Flusher hands sealed cycles to every destination. See the package comment.
type Flusher struct {
	destinations []Destination
	busiest      atomic.Pointer[Busiest]

	measuring sync.Mutex // guards the next one
	durations Histogram

	accepting     sync.Mutex // guards the next two, and that nothing is accepted after Close
	merger        Merger
	busiestReader busiestReader
}

// New starts a flusher with a destination for each exporter. Close ends it.
func New(cfg Config, exporters ...Exporter) (*Flusher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Flusher{durations: newHistogram(.0001, .0005, .001, .005, .01, .05, .1, .5, 1)}
	f.busiest.Store(f.busiestReader.busiest(&aggregate.Sealed{}, nil))
	for _, x := range exporters {
		if x.Pull != nil {
			f.destinations = append(f.destinations, newPull(cfg, x))
			continue
		}
		d := newPush(cfg, x)
		d.start()
		f.destinations = append(f.destinations, d)
	}
	return f, nil
}

// Accept takes over a sealed cycle: it merges the cycle once, has each destination encode it, and releases
// its memory. It does not wait for destinations.
func (f *Flusher) Accept(sealed *aggregate.Sealed) {
	f.accepting.Lock()
	defer f.accepting.Unlock()
	began, spans, delivery := time.Now(), sealed.Spans(), sealed.Delivery
	var to []Destination
	for _, d := range f.destinations {
		if d.join(sealed.Cleared, spans) {
			to = append(to, d)
		}
	}
	if len(to) == 0 && spans == 0 {
		sealed.Release()
		delivery.Resolve(nil)
		return
	}
	c := &Cycle{
		Sealed: sealed, Rows: f.merger.Merge(sealed), spans: spans, state: &cycleState{delivery: delivery},
	}
	c.state.add() // resolved last, so that the cycle is not settled while payloads are still made
	if spans > 0 {
		f.busiest.Store(f.busiestReader.busiest(sealed, c.Rows))
	}
	c.merging = time.Since(began)
	for _, d := range to {
		d.accept(c)
	}
	f.merger.Forget()
	sealed.Release()
	f.measuring.Lock()
	f.durations.observe(time.Since(began).Seconds())
	f.measuring.Unlock()
	c.state.resolve(nil)
}

// Close tries to send queued payloads, each once and without pauses, until ctx ends. Spans that are left
// then are unsent for Shutdown. It returns when every payload has its outcome and no goroutine is left.
func (f *Flusher) Close(ctx context.Context) {
	f.accepting.Lock()
	for _, d := range f.destinations {
		d.close()
	}
	f.accepting.Unlock()
	var ending sync.WaitGroup
	for _, d := range f.destinations {
		ending.Go(func() { d.end(ctx) })
	}
	ending.Wait()
	f.accepting.Lock()
	defer f.accepting.Unlock()
	for _, d := range f.destinations {
		d.settle()
	}
}

// Destinations are in the order of their exporters.
func (f *Flusher) Destinations() []Destination { return f.destinations }

// Durations are of merging and encoding one sealed cycle for all destinations, in seconds.
func (f *Flusher) Durations() Histogram {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	return f.durations.clone()
}

// Busiest is of the last sealed cycle with spans. The caller does not write to it.
func (f *Flusher) Busiest() Busiest { return *f.busiest.Load() }

// Row has one key's counts in one bucket and mapping: the sum of the aggregates that are its parts. Usually
// there is one; a key that several drainers have counted, or a tracer too, has more.
type Row struct {
	aggregate.Counts
	parts []part
}

// Key is the key of all parts.
func (r *Row) Key() *span.Key { return r.parts[0].key }

// KeyID is the number of the key in the cycle.
func (r *Row) KeyID() registry.KeyID { return r.parts[0].Key }

// Origin is the index of the key's origin in Sealed.Origins.
func (r *Row) Origin() registry.OriginID { return r.parts[0].origin }

// Bucket is when the bucket begins, in nanoseconds since the Unix epoch.
func (r *Row) Bucket() int64 { return r.parts[0].Bucket }

// Mapping is the mapping of its distributions, an index of Sealed.Mappings.
func (r *Row) Mapping() sketch.MappingID { return r.parts[0].Mapping }

// ReadOK adds the distribution of the spans without an error to a histogram, or to a sketch of the same
// mapping.
func (r *Row) ReadOK(to sketch.Sum) {
	for i := range r.parts {
		r.parts[i].ReadOK(to)
	}
}

// ReadErrors does the same for the spans with an error.
func (r *Row) ReadErrors(to sketch.Sum) {
	for i := range r.parts {
		r.parts[i].ReadErrors(to)
	}
}

// ErrorDuration is the part of Duration that spans with an error took.
func (r *Row) ErrorDuration() (nanoseconds float64) {
	for i := range r.parts {
		nanoseconds += r.parts[i].ErrorDuration()
	}
	return nanoseconds
}

// part is one aggregate with what decides its position among the rows.
type part struct {
	aggregate.Part
	origin registry.OriginID
	key    *span.Key
}

// compareParts is the order of rows: by origin, then bucket, mapping and type, because a change of any of
// these begins a new payload, or a bucket of one. Equal parts belong to one row.
func compareParts(a, b part) int {
	order := cmp.Or(
		cmp.Compare(a.origin, b.origin),
		cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Mapping, b.Mapping),
	)
	if order != 0 {
		return order
	}
	return cmp.Or(strings.Compare(a.key.Type, b.key.Type), cmp.Compare(a.Key, b.Key))
}

// Merger makes rows of a sealed cycle. It only reads the tables: counts are added up here, sketches while
// they are encoded. Its memory is reused from cycle to cycle; it has one user at a time.
type Merger struct {
	parts []part
	rows  []Row
}

// Merge returns one row for each (key, bucket, mapping) of the sealed cycle, sorted by origin, bucket,
// mapping, type and key. They are valid until Forget.
func (m *Merger) Merge(sealed *aggregate.Sealed) []Row {
	for counted := range sealed.Parts {
		entry := &sealed.Keys[counted.Key]
		m.parts = append(m.parts, part{Part: counted, origin: entry.Origin, key: &entry.Key})
	}
	slices.SortFunc(m.parts, compareParts)
	for first := 0; first < len(m.parts); {
		last := first + 1
		for last < len(m.parts) && compareParts(m.parts[first], m.parts[last]) == 0 {
			last++
		}
		r := Row{parts: m.parts[first:last]}
		for i := range r.parts {
			counts := r.parts[i].Counts()
			r.Add(&counts)
		}
		m.rows = append(m.rows, r)
		first = last
	}
	return m.rows
}

// Forget drops the rows, whose cycle is about to be released, and keeps their memory.
func (m *Merger) Forget() {
	clear(m.parts)
	clear(m.rows)
	m.parts, m.rows = m.parts[:0], m.rows[:0]
}

// Whole rounds a weighted count, for destinations that take integers: up with a probability of its
// fraction, so that the mean over many payloads is exact. A count that the destination's type cannot hold
// becomes the largest one, because wrapping around would make it small.
func Whole(f float64, most uint64) uint64 {
	switch {
	case !(f > 0): // also NaN
		return 0
	case f >= float64(most):
		return most
	}
	n := uint64(f)
	if fraction := f - float64(n); fraction > 0 && rand.Float64() < fraction {
		n++
	}
	return n
}

// Config is what a Flusher needs to know. A zero field takes its default. The bounds
// are of each destination.
type Config struct {
	Log *slog.Logger

	MaxPayloadBytes int           // one payload's body
	RetryBytes      int           // bodies of all payloads that wait
	RetryAge        time.Duration // how long a payload may wait
	Timeout         time.Duration // of one request
}

const (
	DefaultMaxPayloadBytes = 1 << 20
	DefaultRetryBytes      = 16 << 20
	DefaultRetryAge        = 2 * time.Minute
	DefaultTimeout         = 10 * time.Second

	// MinPayloadBytes leaves room for an origin and the largest group that normalized keys and two full
	// sketches can make, some 60 KB.
	MinPayloadBytes = 128 << 10
	// mostPayloadBytes is the longest payload that the agent reads.
	mostPayloadBytes = 25 << 20
	// maxWaiting limits the number of queued payloads.
	maxWaiting = 4096
)

// withDefaults sets defaults and checks the values.
func (c Config) withDefaults() (Config, error) {
	c.MaxPayloadBytes = cmp.Or(c.MaxPayloadBytes, DefaultMaxPayloadBytes)
	c.RetryBytes = cmp.Or(c.RetryBytes, DefaultRetryBytes)
	c.RetryAge = cmp.Or(c.RetryAge, DefaultRetryAge)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	var err error
	if c.RetryBytes < c.MaxPayloadBytes {
		err = fmt.Errorf("check retry-bytes: %s does not hold one payload; give at least %s",
			memory.SizeText(c.RetryBytes), memory.SizeText(c.MaxPayloadBytes))
	}
	if c.RetryAge < 0 || c.Timeout < 0 {
		err = errors.Join(err, fmt.Errorf("check retry-age and timeout: %s and %s must be positive",
			c.RetryAge, c.Timeout))
	}
	return c, errors.Join(err,
		check.AtMost("retry-bytes", c.RetryBytes, memory.MostBytes),
		check.Size("payload", c.MaxPayloadBytes, MinPayloadBytes, mostPayloadBytes),
	)
}

// Check returns everything that is unusable.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}
