package admit

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// snapshot is one span of a batch, from a message of the native protocol or from a request body
// that a receiver has counted.
type snapshot struct {
	wire.Snapshot               // Key is the span's fingerprint if labeller is set
	labeller      span.Labeller // makes the key of a span from a request body; nil for the native protocol
	span          uint32        // number of the span in the labeller
}

// finder finds the rows in which the spans of one publisher are counted. It owns the publisher's key
// table, and memory for decoding one key.
type finder struct {
	shared   *Publishers
	lang     string // language of the origin
	originID registry.OriginID
	interval uint64 // interval in which originID is valid: its number plus one, 0 before the first
	keys     *keyTable
	misses   misses

	reusedCollapsed uint64 // spans of known keys that lost a label

	key      span.Key // scratch; cleared after each batch, so that it does not retain the message
	uncached resolved // result of find for a key that is not in the table
}

// begin starts an interval, in which the publisher's origin has the given ID.
func (f *finder) begin(interval uint64, origin registry.OriginID) {
	f.keys.sweep(f.interval)
	f.originID, f.interval = origin, interval
}

// find returns where the spans of a snapshot's key are counted, and decodes the key only if necessary. The
// first two uses of a key in an interval are reported to the registry, which keeps recurring keys. It
// returns an error if the key is malformed, or has a number that was not defined. The result is valid
// until the next call.
func (f *finder) find(cycle *aggregate.Cycle, s *snapshot) (*resolved, error) {
	if s.Flags&span.Ignored != 0 {
		f.uncached = resolved{id: ignoredKey}
		return &f.uncached, nil
	}
	var index int
	if s.Numbered {
		index = f.keys.numbered(s.Number)
		if index == none {
			return f.findUnlabelled(cycle, s.Number)
		}
	} else {
		index = f.keys.predict(s.Key)
		if index == none {
			var hash uint64
			index, hash = f.keys.find(s.Key)
			if index == none {
				return f.findNew(cycle, s, hash)
			}
			f.keys.train(index) // so that predict finds the key the next time
		}
	}
	known := &f.keys.known[index]
	wasUsedTwice := known.used == firstUseIn(f.interval).asSecondUse()
	if !wasUsedTwice {
		err := f.admitKnown(cycle, s, known)
		if err != nil {
			return nil, err
		}
	} else if known.collapsed != 0 {
		f.sampleCollapsed(cycle, s, known)
	}
	return &known.resolved, nil
}

// collapsedPerSample is the number of spans of collapsed keys from which one is reported to the registry. It
// is a prime number, so that a sender that repeats the same keys does not always hit the same one.
const collapsedPerSample = 61

// sampleCollapsed reports one in collapsedPerSample spans of known keys that lost a label to the registry,
// which finds the most frequent values of labels over their budget.
func (f *finder) sampleCollapsed(cycle *aggregate.Cycle, s *snapshot, known *knownKey) {
	f.reusedCollapsed++
	if f.reusedCollapsed%collapsedPerSample != 0 {
		return
	}
	key, err := f.decode(s, known.cacheKey)
	if err != nil {
		return // unlikely: the key was decoded before
	}
	f.normalize(key)
	cycle.CountSpans(f.originID, key, collapsedPerSample)
}

// findNew returns the row for a key that is not in the key table, and adds the key to the table if
// there is space. If the registry has replaced labels of the key, the key is only added if it recurs, so
// that a burst of new values does not fill the table. An empty key is never added.
func (f *finder) findNew(cycle *aggregate.Cycle, s *snapshot, hash uint64) (*resolved, error) {
	admission, wasNormalized, err := f.admit(cycle, s, s.Key)
	if err != nil {
		return nil, err
	}
	f.misses.count(wasNormalized)
	f.uncached = f.resolved(admission)
	isUnchanged := admission.IsUnchanged()
	isBurst := !isUnchanged && !admission.AllRecur
	mayCache := len(s.Key) > 0 && !isBurst
	if !mayCache {
		return &f.uncached, nil
	}
	index := f.keys.add(s.Key, hash, keyCached)
	if index == none {
		f.misses.uncached++
		return &f.uncached, nil
	}
	known := &f.keys.known[index]
	known.resolved = f.uncached
	if !isUnchanged { // then the registry has recorded several uses
		known.used = known.used.asSecondUse()
	}
	return &known.resolved, nil
}

// findUnlabelled returns the row without labels. It counts the spans with a number whose key was not stored
// for lack of memory. findUnlabelled returns an error if the client has not defined the number.
func (f *finder) findUnlabelled(cycle *aggregate.Cycle, number uint32) (*resolved, error) {
	if !f.keys.isUnlabelled(number) {
		return nil, fmt.Errorf("resolve key: number %d is not defined on this connection", number)
	}
	f.uncached = f.resolved(cycle.AdmitUnlabelled(f.originID))
	return &f.uncached, nil
}

// admitKnown admits a key of the key table. It must be called for the first two uses of the key in an
// interval, so that the registry knows that the key recurs.
func (f *finder) admitKnown(cycle *aggregate.Cycle, s *snapshot, known *knownKey) error {
	isFirstEver := known.used == 0
	wasUsedInInterval := known.used.isIn(f.interval)
	admission, wasNormalized, err := f.admit(cycle, s, known.cacheKey)
	if err != nil {
		return err
	}
	known.resolved = f.resolved(admission) // as the first use in the interval
	if wasUsedInInterval {
		known.used = known.used.asSecondUse()
	}
	if isFirstEver {
		f.misses.count(wasNormalized)
	}
	return nil
}

// admit decodes and normalizes the key of a span, and admits it to the registry, which returns the row
// in which the span is counted. If a configured rule ignores the key, the ID is ignoredKey instead.
// wasNormalized reports whether a label was changed.
func (f *finder) admit(
	cycle *aggregate.Cycle, s *snapshot, native []byte,
) (a registry.Admission, wasNormalized bool, err error) {
	key, err := f.decode(s, native)
	if err != nil {
		return a, false, err
	}
	wasNormalized = f.normalize(key)
	if f.shared.config.Ignore.MatchesKey(key) {
		return registry.Admission{ID: ignoredKey}, wasNormalized, nil
	}
	return cycle.Admit(f.originID, key), wasNormalized, nil
}

// decode returns the key of a span from a request body, or decodes native, a key of the native protocol. The
// result is valid until the next call.
func (f *finder) decode(s *snapshot, native []byte) (*span.Key, error) {
	isFromRequest := s.labeller != nil
	if isFromRequest {
		return s.labeller.Label(s.span), nil
	}
	err := wire.ReadKey(&f.key, native)
	return &f.key, err //nolint:wrapcheck // the decoder's error is complete
}

// resolved returns the table's entry for a key that was admitted in the current interval.
func (f *finder) resolved(a registry.Admission) resolved {
	return resolved{firstUseIn(f.interval), a.ID, a.Hash, a.Collapsed}
}

// normalize makes the labels of a key valid UTF-8 of limited length. It writes names of services and
// operations as the Datadog agent does. It reports whether it changed any label.
func (f *finder) normalize(k *span.Key) (changed bool) {
	isNormalized := k.NormalizeLabels(f.lang)
	isShortened := k.ShortenResource(f.shared.config.MaxResource)
	return isNormalized || isShortened
}

// define assigns a number to an encoded key, so that spans can refer to the key by the number. The number
// must be less than MaxKeys. If there is no memory for the key, spans with the number are counted
// without labels. define returns an error if the key is malformed.
func (f *finder) define(number uint32, encoded []byte) error {
	index, hash := f.keys.find(encoded)
	if index == none {
		defer f.key.Clear() // so that it does not retain the message's buffer
		if err := wire.ReadKey(&f.key, encoded); err != nil {
			return err //nolint:wrapcheck // the decoder's error is complete
		}
	}
	isAssigned := f.keys.assign(number, encoded, index, hash)
	if !isAssigned {
		isAssigned = f.assignAfterSweep(number, encoded)
	}
	if !isAssigned {
		f.keys.markUnlabelled(number)
		f.shared.totals.unnumbered.Add(1)
	}
	return nil
}

// assignAfterSweep removes all keys without a number from the key table, and then assigns a number to an
// encoded key. It returns false if there is no memory for the key, or too little would become free.
func (f *finder) assignAfterSweep(number uint32, encoded []byte) bool {
	if !f.keys.isSweepWorthwhile() {
		return false
	}
	nextInterval := f.interval + 1 // no key was used in it
	f.keys.sweep(nextInterval)
	index, hash := f.keys.find(encoded)
	return f.keys.assign(number, encoded, index, hash)
}

// misses counts the keys of a batch that were decoded.
type misses struct {
	decoded    uint64
	uncached   uint64
	normalised uint64
}

// count counts a key that was decoded. changed reports whether its labels had to be normalized.
func (m *misses) count(changed bool) {
	m.decoded++
	if changed {
		m.normalised++
	}
}

// countMisses adds the misses of a batch to the totals and resets them.
func (f *finder) countMisses() {
	if f.misses == (misses{}) {
		return
	}
	totals := &f.shared.totals
	totals.decoded.Add(f.misses.decoded)
	totals.uncached.Add(f.misses.uncached)
	totals.normalised.Add(f.misses.normalised)
	f.misses = misses{}
	f.key.Clear() // so that it does not retain the message's buffer
}
