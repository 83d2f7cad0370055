package registry

import (
	"slices"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// KeyID numbers a key in one interval. IDs are dense, and are not valid in other intervals.
type KeyID uint32

// KeyEntry is the key that a KeyID identifies.
type KeyEntry struct {
	Origin OriginID
	Key    span.Key
}

// Admission is the result of admitting a key in one interval.
type Admission struct {
	ID                 KeyID
	Hash               uint32   // determines the key's partition; the same in every interval
	Collapsed          LabelSet // labels whose values were replaced by tracer_blocked_value; span.WholeKey if all were
	Masked             LabelSet // labels whose values were replaced by a mask
	ReplacedAtFirstUse bool     // a value was replaced that was not used before in this interval
}

// IsUnchanged reports whether the key has all of its labels as the client sent them.
func (a *Admission) IsUnchanged() bool { return a.Collapsed|a.Masked == 0 }

// LabelSet is a set of labels, which can include span.WholeKey.
type LabelSet uint16

// Has reports whether the label is in the set.
func (s LabelSet) Has(l span.Label) bool { return s&setOf(l) != 0 }

func setOf(l span.Label) LabelSet { return 1 << l }

// Registry assigns IDs to the keys and origins of one interval, and enforces its budgets. Entries
// that have an ID never change, so the exporters can read the entries of a sealed cycle while the
// next cycle of the interval adds more.
type Registry struct {
	mu       *sync.Mutex // shared by the registries of all intervals
	tables   tables
	admitter admitter
}

// tables is the state of one interval.
type tables struct {
	config       *Config
	previous     *previous
	filter       *filter // shared by all intervals
	origins      originTable
	labels       labelTable
	rows         rowTable
	rowBudget    rowBudget
	overflowRows map[overflowID]Admission // rows without labels
	overflows    overflows
	lostCounts   [span.LabelCount]uint64  // keys that lost a label; tags are counted per tag key, see tagValues
	masked       *[span.LabelCount]uint64 // keys with a masked label, in all intervals
}

// overflowID identifies a row without labels: it counts spans of an origin, or values of a measure.
type overflowID struct {
	origin  OriginID
	measure span.Measure
}

// newRegistry returns an empty registry, whose state i guards and shares with other registries.
func (i *Intervals) newRegistry(config *Config) *Registry {
	r := &Registry{
		mu:     &i.mu,
		tables: tables{config: config, filter: i.filter, masked: &i.masked},
	}
	r.admitter.tables = &r.tables
	r.tables.begin(&previous{})
	return r
}

// begin clears the tables for a new interval, given the state of the previous one.
func (t *tables) begin(p *previous) {
	t.previous = p
	t.lostCounts = [span.LabelCount]uint64{}
	t.overflows = overflows{}
	t.overflowRows = map[overflowID]Admission{}
	t.origins = newOriginTable(t.config.MaxOrigins, p)
	t.labels = newLabelTable()
	t.rows = newRowTable()
	t.rowBudget = newRowBudget(t.config, p)
}

// AdmitOrigin returns the ID of an origin. It returns false if the origin is new and the interval
// already has the maximum number of origins.
func (r *Registry) AdmitOrigin(o span.Origin) (OriginID, bool) {
	const unlimitedProcess = 0
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.admitOrigin(r.conflated(o), unlimitedProcess)
}

// AdmitOriginOrShared returns the ID under which the spans of an origin, a process, are counted. If there are too
// many origins, all instances of the service share an ID. If there are too many services, all of them share
// one. isShared is true in both cases. process is the process ID of the client, or 0 if it is unknown.
func (r *Registry) AdmitOriginOrShared(o span.Origin, process int32) (id OriginID, isShared bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.conflated(o) // without the runtime ID, if so configured
	id, ok := r.tables.admitOrigin(o, process)
	if ok {
		return id, false
	}
	id, ok = r.tables.admitOrigin(o.WithoutInstance(), process)
	if ok {
		return id, true
	}
	return r.tables.joinCommon(o), true
}

// conflated returns o without its runtime ID if Config.ConflateRuntimes is set. Otherwise it returns o
// unchanged.
func (r *Registry) conflated(o span.Origin) span.Origin {
	if r.tables.config.ConflateRuntimes {
		return o.WithoutRuntimeID()
	}
	return o
}

// Admit returns the ID of a normalized key. Labels with too many different values are replaced. Admit
// neither retains nor changes the key. A publisher must call it for the first two uses of a key in an
// interval, so that the registry knows that the key recurs. It can reuse the result of the second call.
func (r *Registry) Admit(origin OriginID, key *span.Key) Admission {
	const isCounted = false
	return r.admit(origin, key, 1, isCounted)
}

// admit implements Admit and CountSpans. spans is the number of spans with the key. If isCounted is set, an earlier
// call has counted the key in the counters of replaced labels.
func (r *Registry) admit(origin OriginID, key *span.Key, spans uint64, isCounted bool) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	admission := r.admitter.admit(origin, key, spans, isCounted)
	r.admitter.forgetTexts() // they would keep the client's message in memory
	return admission
}

// AdmitUnlabeled returns the ID under which spans of an origin are counted without labels, because
// their keys are unknown. Spans whose keys got no row of their own have the same ID.
func (r *Registry) AdmitUnlabeled(origin OriginID) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.overflowRow(origin, 0)
}

// overflowRow returns the Admission that all keys of an origin have if they get no row of their own. Their spans,
// or their values of a measure, are counted together in one row without labels. The first call for an origin and
// a measure adds this row.
func (t *tables) overflowRow(id OriginID, measure span.Measure) Admission {
	overflow := overflowID{id, measure}
	if admission, hasRow := t.overflowRows[overflow]; hasRow {
		return admission
	}
	key := keyWithoutLabels
	key.Measure = measure
	unlabeledRow := row{} // it has no encoded key, because rowTable.find need not find it
	admission := Admission{
		ID:        t.rows.appendRow(unlabeledRow, KeyEntry{Origin: id, Key: key}),
		Hash:      uint32(t.origins.byID[id].hash),
		Collapsed: setOf(span.WholeKey),
	}
	t.overflowRows[overflow] = admission
	return admission
}

// keyWithoutLabels has tracer_blocked_value in every label, as in the tracers. TraceRoot and Synthetics are not set.
var keyWithoutLabels = func() (k span.Key) {
	for l := range span.EndOfTexts {
		*k.Text(l) = span.Blocked
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		*k.Tags(l) = []string{span.Blocked}
	}
	return k
}()

// Size returns the number of origins, without the common one, and the number of keys.
func (r *Registry) Size() (origins, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tables.origins.ids), len(r.tables.rows.entries)
}

// Contents returns all origins of the interval, by OriginID, and all keys, by KeyID, that have IDs so
// far. The caller can read both slices without a lock, but must not change them.
func (r *Registry) Contents() ([]span.Origin, []KeyEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.tables.origins.descriptions), slices.Clip(r.tables.rows.entries)
}

// Intervals owns the registries: one per interval, two in alternation. A flush request seals a
// cycle before its interval ends. The next cycle continues to use the interval's registry, so
// budgets, rows and key IDs last until the end of the interval, and a client cannot get another
// budget by requesting flushes.
//
// When an interval begins, the registry of the interval before the last is unused. The sealer
// begins an interval while it begins a cycle n, after it has sealed cycle n-2 and the exporters
// have released it, so no publisher is inside n-2 or an earlier cycle. Cycle n-1 belongs to the
// last interval; n-2 belongs to the last one or to an earlier one.
type Intervals struct {
	mu         sync.Mutex // guards all fields, and both registries
	number     uint64     // number of the current interval
	registries [2]*Registry
	filter     *filter
	lostLabels lostLabels
	masked     [span.LabelCount]uint64 // keys with a masked label

	overflow        *Overflow // overflow of the last interval with one, without IsLast; immutable
	lastHadOverflow bool      // the last ended interval has had one, so overflow is not of an earlier interval
}

// NewIntervals returns Intervals whose first interval has begun.
func NewIntervals(config *Config) *Intervals {
	i := &Intervals{lostLabels: lostLabels{}, filter: newFilter(filterBytes(config.LabelBytes))}
	for n := range i.registries {
		i.registries[n] = i.newRegistry(config)
	}
	return i
}

// Begin ends the current interval and begins a new one. The two registries alternate: the new interval uses that
// of the interval before the ended one, which Begin clears.
// Keys that were used at least twice in the last interval keep their rows in the new one, as far as the
// limits allow. Only the goroutine that ends intervals may call Begin. It must call ReportEnded afterwards.
func (i *Intervals) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	ended, reused := &i.Registry().tables, &i.previousRegistry().tables
	i.lostLabels.moveFrom(reused)
	reused.begin(ended.snapshot())
	i.filter.beginInterval()
	i.number++ // Registry now returns the reused one
}

// Number returns the number of the current interval. Only the sealer calls it.
func (i *Intervals) Number() uint64 { return i.number }

// Registry returns the registry of the current interval. Only the sealer calls it.
func (i *Intervals) Registry() *Registry { return i.registries[i.number%2] }

// previousRegistry returns the registry of the interval before the current one.
func (i *Intervals) previousRegistry() *Registry { return i.registries[(i.number+1)%2] }

// Size returns the number of origins, without the common one, and of keys in the current interval.
func (i *Intervals) Size() (origins, keys int) {
	i.mu.Lock()
	current := i.Registry()
	i.mu.Unlock()
	return current.Size()
}

// Masked returns the number of keys in which a mask, such as "GET /users/{id}", has replaced the value of a label.
// The map contains every label that can be masked, by name.
func (i *Intervals) Masked() map[string]uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	masked := map[string]uint64{}
	for _, l := range maskedLabels {
		masked[l.String()] = i.masked[l]
	}
	return masked
}

// MostCollapsed returns the label that was replaced in the most keys since the last call, and the number of these
// keys. A label is replaced if it has too many different values. For tags, label is the name of the list of tags,
// a space, and the tag key. keys is 0 if no label was replaced.
func (i *Intervals) MostCollapsed() (label string, keys uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.registries {
		i.lostLabels.moveFrom(&r.tables)
	}
	return i.lostLabels.takeHighest()
}

// lostLabels counts the keys that lost a label, by name, over all intervals. A label is lost if it
// exceeds its budget, or if it is new and its key gets no row. The counts are approximate: keys
// that a connection finds in its own cache are not counted again, and beyond maxLostLabels names, tag
// keys are counted under their list.
type lostLabels map[string]uint64 // by name of the label, or name of the list and tag key

// maxLostLabels limits the number of names, because clients choose them.
const maxLostLabels = 256

// moveFrom adds the counts of an interval to c, and resets them in the interval.
func (c lostLabels) moveFrom(t *tables) {
	for l, keys := range t.lostCounts {
		name := span.Label(l).String()
		c.add(name, name, keys)
	}
	t.lostCounts = [span.LabelCount]uint64{}
	for i := range t.labels.byID {
		l := &t.labels.byID[i]
		isTagKey := l.values != nil
		if isTagKey {
			list := l.scope.kind.label().String()
			c.add(list+" "+l.text, list, l.values.lostCount)
			l.values.lostCount = 0
		}
	}
}

// add adds a number of keys to the count for name. If name is new and there are maxLostLabels names
// already, it adds the number to the count for fallback.
func (c lostLabels) add(name, fallback string, keys uint64) {
	if keys == 0 {
		return
	}
	_, isKnown := c[name]
	if !isKnown && len(c) >= maxLostLabels {
		name = fallback
	}
	c[name] += keys
}

// takeHighest returns the name with the highest count, and this count, and resets all counts. If several
// names have this count, it returns the first in alphabetical order. It returns "" and 0 if there are no
// counts.
func (c lostLabels) takeHighest() (topName string, topCount uint64) {
	for name, count := range c {
		isFirstOfEqual := count == topCount && name < topName
		if count > topCount || isFirstOfEqual {
			topName, topCount = name, count
		}
	}
	clear(c)
	return topName, topCount
}
