package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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

// Destination is a receiver of statistics.
type Destination interface {
	Name() string // in metrics, the log and status
	URL() string  // for operators, without credentials
	Stats() Stats
	Flushes() []Flush // the most recent ones, newest first

	// recordSealed counts the spans and values of a sealed cycle as pending, and those discarded before the cycle,
	// because no destination wanted them, as unsent. It returns true if accept must be called with the cycle.
	recordSealed(pending, discarded Amount) (mustAccept bool)
	accept(c *Cycle)

	// Shutdown calls these in order: close stops the acceptance of cycles, finishSending waits until nothing
	// is being sent, and settleRemaining gives the remaining cycles their outcome.
	close()
	finishSending(ctx context.Context)
	settleRemaining()
}

// Flusher passes the counts of each export interval to every destination. See the package comment.
type Flusher struct {
	destinations []Destination
	busiest      atomic.Pointer[Busiest]

	measuring sync.Mutex // guards durations
	durations Histogram

	accepting     sync.Mutex // guards merger and busiestReader; held by Accept
	merger        Merger
	busiestReader busiestReader
}

// New starts a flusher with a destination for each exporter. The caller must call Close.
func New(cfg Config, exporters ...Exporter) (*Flusher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	f := &Flusher{durations: newHistogram(.0001, .0005, .001, .005, .01, .05, .1, .5, 1)}
	f.busiest.Store(f.busiestReader.findBusiest(&aggregate.Sealed{}, nil)) // until the first cycle
	for _, exporter := range exporters {
		if exporter.Pull != nil {
			f.destinations = append(f.destinations, newPull(cfg, exporter))
			continue
		}
		d := newPush(cfg, exporter)
		d.start()
		f.destinations = append(f.destinations, d)
	}
	return f, nil
}

// Accept takes ownership of sealed, the counts of one export interval. It merges counts with equal labels into
// rows, lets each destination encode the rows, and releases the memory of sealed. It does not wait until payloads
// are delivered.
func (f *Flusher) Accept(sealed *aggregate.Sealed) {
	f.accepting.Lock()
	defer f.accepting.Unlock()
	began := time.Now()
	delivery := sealed.Delivery
	amount := Amount{sealed.Spans(), sealed.Values()}
	discarded := Amount{sealed.Cleared, sealed.ClearedValues}
	destinations := f.recordSealed(amount, discarded) // those that need the rows
	if len(destinations) == 0 && amount.Spans == 0 {  // there is nothing to encode
		sealed.Release()
		delivery.Resolve(nil)
		return
	}
	state := &cycleState{delivery: delivery}
	state.addPart() // stands for the payloads that do not exist yet, so that the cycle is not resolved before they do
	f.mergeAndDeliver(sealed, state, destinations)
	sealed.Release()
	f.recordDuration(time.Since(began))
	state.resolvePart(nil) // all payloads exist, and each has added a part of its own
}

// mergeAndDeliver merges the counts of an export interval into rows, one for each label set and period, and passes the
// rows to destinations. It also sets f.busiest to the label sets with the most spans.
func (f *Flusher) mergeAndDeliver(sealed *aggregate.Sealed, state *cycleState, destinations []Destination) {
	began := time.Now()
	c := &Cycle{Sealed: sealed, Rows: f.merger.Merge(sealed), amount: Amount{sealed.Spans(), sealed.Values()}, state: state}
	if c.amount.Spans > 0 {
		f.busiest.Store(f.busiestReader.findBusiest(sealed, c.SpanRows()))
	}
	c.mergeTime = time.Since(began)
	for _, d := range destinations {
		d.accept(c)
	}
	f.merger.Forget() // the caller releases sealed, so the merger must not refer to it
}

// recordSealed counts the spans and values of a cycle, one export interval, as pending at each destination. It counts
// discarded ones as unsent: the daemon has discarded them because no destination wanted statistics. It returns the
// destinations whose method accept must be called with the cycle.
func (f *Flusher) recordSealed(pending, discarded Amount) (accepting []Destination) {
	for _, d := range f.destinations {
		mustAccept := d.recordSealed(pending, discarded)
		if mustAccept {
			accepting = append(accepting, d)
		}
	}
	return accepting
}

// recordDuration adds the time to merge and encode a cycle to the histogram of durations.
func (f *Flusher) recordDuration(duration time.Duration) {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	f.durations.observe(duration.Seconds())
}

// Close shuts all destinations down. Until ctx ends, it tries once more to send each queued payload. Spans that are
// not delivered then are counted as unsent, with the reason Shutdown. When Close returns, every payload is counted
// as delivered or lost, and no goroutine of a destination is running.
func (f *Flusher) Close(ctx context.Context) {
	// Stop accepting counts. The lock waits for a concurrent call of Accept.
	f.accepting.Lock()
	for _, d := range f.destinations {
		d.close()
	}
	f.accepting.Unlock()

	// Send the queued payloads to all destinations at the same time.
	var sending sync.WaitGroup
	for _, d := range f.destinations {
		sending.Go(func() { d.finishSending(ctx) })
	}
	sending.Wait()

	// Count the remaining spans as delivered or lost.
	f.accepting.Lock()
	defer f.accepting.Unlock()
	for _, d := range f.destinations {
		d.settleRemaining()
	}
}

// Destinations returns the destinations in the order of their exporters.
func (f *Flusher) Destinations() []Destination { return f.destinations }

// Durations returns a copy of a histogram with one duration in seconds per call of Accept: the time to merge the
// counts of an export interval, and to encode them for all destinations.
func (f *Flusher) Durations() Histogram {
	f.measuring.Lock()
	defer f.measuring.Unlock()
	return f.durations.clone()
}

// Busiest returns the label sets with the most spans in the last export interval that had spans. The caller must not
// modify them.
func (f *Flusher) Busiest() Busiest { return *f.busiest.Load() }

// Row contains the counts of the spans with the same labels in the same period of time. The counts are the sum of
// several parts: what each goroutine of the daemon has counted, and what tracers have counted themselves.
type Row struct {
	aggregate.Counts
	parts []part
}

// Key returns the key.
func (r *Row) Key() *span.Key { return r.parts[0].labels }

// KeyID returns the ID of the key in the cycle.
func (r *Row) KeyID() registry.KeyID { return r.parts[0].Key }

// Values returns the number of values of a measure in the row. It is 0 for a row of spans.
func (r *Row) Values() uint64 {
	if r.Key().Measure == 0 {
		return 0
	}
	return uint64(r.Hits) // each value has the weight 1
}

// Origin returns the index of the key's origin in Sealed.Origins.
func (r *Row) Origin() registry.OriginID { return r.parts[0].origin }

// Bucket returns the start of the bucket, in nanoseconds since the Unix epoch.
func (r *Row) Bucket() int64 { return r.parts[0].Bucket }

// Mapping returns the mapping of the distributions, an index of Sealed.Mappings.
func (r *Row) Mapping() sketch.MappingID { return r.parts[0].Mapping }

// ReadOK adds the durations of the row's spans without an error to a histogram or a sketch. A sketch must map
// durations to bins in the same way as the row.
func (r *Row) ReadOK(to sketch.Sum) {
	for i := range r.parts {
		r.parts[i].ReadOK(to)
	}
}

// ReadErrors adds the durations of spans with an error, like ReadOK.
func (r *Row) ReadErrors(to sketch.Sum) {
	for i := range r.parts {
		r.parts[i].ReadErrors(to)
	}
}

// ErrorDuration returns the part of Duration that spans with an error took.
func (r *Row) ErrorDuration() (nanoseconds float64) {
	for i := range r.parts {
		nanoseconds += r.parts[i].ErrorDuration()
	}
	return nanoseconds
}

// part is an aggregate with the fields that rows are sorted by.
type part struct {
	aggregate.Part
	origin registry.OriginID
	labels *span.Key
}

// compareParts compares two parts by the fields that determine their row: the measure (0 for spans), the process that
// sent the spans, the period of time, the sketch mapping, the span type and the labels. It returns 0 if all are equal.
// The type precedes the other labels because payloads for the Datadog agent need adjacent rows of the same type.
func compareParts(a, b part) int {
	if a.labels.Measure != b.labels.Measure {
		return cmp.Compare(a.labels.Measure, b.labels.Measure)
	}
	if a.origin != b.origin {
		return cmp.Compare(a.origin, b.origin)
	}
	if a.Bucket != b.Bucket {
		return cmp.Compare(a.Bucket, b.Bucket)
	}
	if a.Mapping != b.Mapping {
		return cmp.Compare(a.Mapping, b.Mapping)
	}
	if a.labels.Type != b.labels.Type {
		return strings.Compare(a.labels.Type, b.labels.Type)
	}
	return cmp.Compare(a.Key, b.Key) // the IDs of the labels
}

// Merger merges the aggregates of a sealed cycle into rows. It only reads the tables: counts are
// added up here, sketches during encoding. Its memory is reused for the next cycle. It is not safe
// for concurrent use.
type Merger struct {
	parts []part
	rows  []Row
}

// Merge sums the counts of spans with equal labels in the same period of time. It returns one row for each of these
// sums, in the order of compareParts. The rows refer to sealed, and are valid until Forget.
func (m *Merger) Merge(sealed *aggregate.Sealed) []Row {
	for p := range sealed.Parts {
		entry := &sealed.Keys[p.Key]
		m.parts = append(m.parts, part{Part: p, origin: entry.Origin, labels: &entry.Key})
	}
	slices.SortFunc(m.parts, compareParts)
	remaining := m.parts
	for len(remaining) > 0 {
		row := Row{parts: partsOfFirstRow(remaining)}
		for i := range row.parts {
			counts := row.parts[i].Counts()
			row.Add(&counts)
		}
		m.rows = append(m.rows, row)
		remaining = remaining[len(row.parts):]
	}
	return m.rows
}

// partsOfFirstRow returns the leading parts that belong to the same row as the first one.
func partsOfFirstRow(parts []part) []part {
	for i := range parts {
		if compareParts(parts[0], parts[i]) != 0 {
			return parts[:i]
		}
	}
	return parts
}

// Forget removes all references to the counts that Merge was called with, so that their memory can be released. It
// invalidates the rows, and keeps their memory for the next call of Merge.
func (m *Merger) Forget() {
	clear(m.parts)
	clear(m.rows)
	m.parts = m.parts[:0]
	m.rows = m.rows[:0]
}

// RoundRandomly rounds a count to an integer between 0 and limit. It rounds up with a probability
// equal to the fraction (2.3 becomes 3 in three of ten cases), so that the mean of many rounded counts
// is exact.
func RoundRandomly(count float64, limit uint64) uint64 {
	switch {
	case count <= 0 || math.IsNaN(count):
		return 0
	case count >= float64(limit):
		return limit
	}
	rounded := uint64(count)
	fraction := count - float64(rounded)
	if rand.Float64() < fraction {
		rounded++
	}
	return rounded
}

// Config configures a Flusher. Zero fields have defaults. The limits apply to each destination.
type Config struct {
	Log *slog.Logger

	MaxPayloadBytes int           // body of one payload
	RetryBytes      int           // bodies of all waiting payloads
	RetryAge        time.Duration // maximum time that a payload is queued
	Timeout         time.Duration // timeout of one request
}

const (
	DefaultMaxPayloadBytes = 1 << 20
	DefaultRetryBytes      = 16 << 20
	DefaultRetryAge        = 2 * time.Minute
	DefaultTimeout         = 10 * time.Second

	// MinPayloadBytes is enough for an origin and the largest group of a normalized key with two full
	// sketches, about 60 KB.
	MinPayloadBytes = 128 << 10
	// mostPayloadBytes is the longest payload that the agent reads.
	mostPayloadBytes = 25 << 20
	// maxWaiting limits the number of queued payloads.
	maxWaiting = 4096
)

// withDefaults returns a copy of the configuration in which zero fields are replaced by their defaults. The error
// describes each invalid value.
func (c Config) withDefaults() (Config, error) {
	c.MaxPayloadBytes = cmp.Or(c.MaxPayloadBytes, DefaultMaxPayloadBytes)
	c.RetryBytes = cmp.Or(c.RetryBytes, DefaultRetryBytes)
	c.RetryAge = cmp.Or(c.RetryAge, DefaultRetryAge)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	var err error
	if c.RetryBytes < c.MaxPayloadBytes {
		err = fmt.Errorf("check retry-bytes: %s is less than one payload; use at least %s",
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

// Check returns an error for each invalid value.
func (c Config) Check() error {
	_, err := c.withDefaults()
	return err
}
