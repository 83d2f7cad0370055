package admit

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// snapshot is one span of a batch, from a message of the native protocol or from a request body
// that a receiver has counted.
type snapshot struct {
	wire.Snapshot              // Key is the span's fingerprint if labeler is set
	labeler       span.Labeler // makes the key of a span from a request body; nil for the native protocol
	span          uint32       // number of the span in the labeler
}

// finder finds the rows in which the spans of one publisher are counted. It owns the publisher's key
// table, and memory for decoding one key.
type finder struct {
	shared   *Publishers
	origin   *span.Origin
	originID registry.OriginID // ID of origin in the current interval
	firstUse use               // first use of a key in the current interval; unused before the first interval
	laterUse use               // every further use of a key in the current interval
	keys     *keyTable
	found    int // index in keys of the last found key; none if it is not in the table

	decodedKeys decodedKeys

	collapsedSpans uint64 // spans of known keys in which a label was replaced

	key            span.Key // scratch; cleared after each batch, so that it does not retain the message
	uncachedResult resolved // result of find or findValue for a key that is not in the table
}

// isInInterval reports whether the current interval has the given number.
func (f *finder) isInInterval(interval uint64) bool { return f.firstUse == firstUseIn(interval) }

// beginInterval starts an interval, in which the publisher's origin has the given ID.
func (f *finder) beginInterval(interval uint64, origin registry.OriginID) {
	f.keys.sweep(f.firstUse) // keeps the keys that were used in the interval that ends
	f.originID = origin
	f.firstUse = firstUseIn(interval)
	f.laterUse = laterUseIn(interval)
}

// nextUse returns the use of a key that follows lastUse: the first in the current interval, or a later one.
func (f *finder) nextUse(lastUse use) use {
	if lastUse < f.firstUse {
		return f.firstUse
	}
	return f.laterUse
}

// wasUsedTwice reports whether lastUse is at least the second use of a key in the current interval. Such a key does
// not have to be admitted again.
func (f *finder) wasUsedTwice(lastUse use) bool { return lastUse == f.laterUse }

// find returns where the spans of a snapshot's key are counted, and decodes the key only if necessary. The
// first two uses of a key in an interval are reported to the registry, which keeps recurring keys. It
// returns an error if the key is malformed, or has a number that was not defined. The result is valid
// until the next call.
func (f *finder) find(cycle *aggregate.Cycle, s *snapshot) (*resolved, error) {
	if s.Flags&span.Ignored != 0 {
		f.uncachedResult = resolved{id: ignoredKey}
		return &f.uncachedResult, nil
	}
	var index int
	if s.Numbered {
		index = f.keys.indexOfNumber(s.Number)
		if index == none {
			return f.findUnlabeled(cycle, s.Number)
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
	f.found = index
	known := &f.keys.known[index]
	if !f.wasUsedTwice(known.lastUse) {
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

// sampleCollapsed must be called for each span of a known key in which a label was replaced because it has too many
// values. The registry finds the most frequent of these values from a sample: one span in collapsedPerSample, which
// counts as that many spans.
func (f *finder) sampleCollapsed(cycle *aggregate.Cycle, s *snapshot, known *knownKey) {
	f.collapsedSpans++
	if f.collapsedSpans%collapsedPerSample != 0 {
		return
	}
	key, err := f.decode(s, known.keyBytes)
	if err != nil {
		return // unlikely: the key was decoded before
	}
	f.normalize(key)
	cycle.CountSpans(f.originID, key, collapsedPerSample)
}

// admitted is the result of admitting a key.
type admitted struct {
	registry.Admission
	objectives slo.Set // objectives that count spans of the key
}

// findNew returns where the spans of a key are counted that is not in the key table. It adds the key to the
// table if mayCache allows this and there is space. hash is the hash of the key.
func (f *finder) findNew(cycle *aggregate.Cycle, s *snapshot, hash uint64) (*resolved, error) {
	f.found = none
	admission, wasNormalized, err := f.admit(cycle, s, s.Key)
	if err != nil {
		return nil, err
	}
	f.decodedKeys.add(wasNormalized)
	if !mayCache(s.Key, &admission.Admission) {
		return f.resolveUncached(&admission), nil
	}
	index := f.keys.add(s.Key, hash, forUnnumberedKey)
	if index == none {
		f.decodedKeys.uncached++
		return f.resolveUncached(&admission), nil
	}
	thisUse := f.firstUse
	hasReplacedLabels := !admission.IsUnchanged()
	if hasReplacedLabels {
		thisUse = f.laterUse // at the first use of such a key, mayCache has returned false
	}
	f.found = index
	known := &f.keys.known[index]
	known.resolved = newResolved(&admission, thisUse)
	return &known.resolved, nil
}

// findValue returns where values of a measure are counted that belong to s, a span from a request body. The last call of
// find must have been for s. The result is valid until the next call of find or findValue.
func (f *finder) findValue(cycle *aggregate.Cycle, s *snapshot, measure span.Measure) *resolved {
	isCached := f.found != none
	if !isCached {
		admission := f.admitValue(cycle, s, measure)
		return f.resolveUncached(&admission)
	}
	value := f.keys.valueOf(f.found, measure)
	if !f.wasUsedTwice(value.lastUse) {
		admission := f.admitValue(cycle, s, measure)
		*value = newResolved(&admission, f.nextUse(value.lastUse))
	}
	return value
}

// admitValue admits the key of a span from a request body for values of a measure.
func (f *finder) admitValue(cycle *aggregate.Cycle, s *snapshot, measure span.Measure) admitted {
	key := s.labeler.Label(s.span)
	key.Measure = measure
	f.normalize(key)
	return admitted{Admission: cycle.Admit(f.originID, key)}
}

// resolveUncached returns where the spans of an admitted key are counted that is not in the key table.
func (f *finder) resolveUncached(a *admitted) *resolved {
	f.uncachedResult = newResolved(a, f.firstUse)
	return &f.uncachedResult
}

// mayCache reports whether a new key may be added to the key table. If labels of the key were replaced, their
// original values must have been used before, so that a burst of new values does not fill the table. An empty
// key is never added.
func mayCache(key []byte, admission *registry.Admission) bool {
	return len(key) > 0 && !admission.ReplacedAtFirstUse
}

// findUnlabeled returns where spans are counted without labels, for a span with a number that stands for no key in the
// key table. It returns an error if the client has not defined the number. Otherwise, there was no memory for the key.
func (f *finder) findUnlabeled(cycle *aggregate.Cycle, number uint32) (*resolved, error) {
	if !f.keys.isUnlabeled(number) {
		return nil, fmt.Errorf("resolve key: number %d is not defined on this connection", number)
	}
	return f.resolveUncached(&admitted{Admission: cycle.AdmitUnlabeled(f.originID)}), nil
}

// admitKnown asks the registry where the spans of a known key are counted in the current interval, and stores the
// result in known. It must be called for the first two uses of the key in an interval, because the registry keeps
// keys that are used twice.
func (f *finder) admitKnown(cycle *aggregate.Cycle, s *snapshot, known *knownKey) error {
	isFirstSpan := known.lastUse == unused // the key is known because the client has defined a number for it
	admission, wasNormalized, err := f.admit(cycle, s, known.keyBytes)
	if err != nil {
		return err
	}
	known.resolved = newResolved(&admission, f.nextUse(known.lastUse))
	if isFirstSpan {
		f.decodedKeys.add(wasNormalized)
	}
	return nil
}

// admit decodes and normalizes the key of a span, and returns where the span is counted, and by which objectives.
// a.ID is ignoredKey if a rule in the configuration excludes the span. wasNormalized reports whether a label was
// changed. encoded is the key in the native protocol; it is not used if the span is from a request body.
func (f *finder) admit(
	cycle *aggregate.Cycle, s *snapshot, encoded []byte,
) (a admitted, wasNormalized bool, err error) {
	key, err := f.decode(s, encoded)
	if err != nil {
		return a, false, err
	}
	wasNormalized = f.normalize(key)
	if f.shared.config.Ignore.MatchesKey(key) {
		a.ID = ignoredKey
		return a, wasNormalized, nil
	}
	a.objectives = f.shared.config.Objectives.Match(key, f.origin)
	a.Admission = cycle.Admit(f.originID, key)
	return a, wasNormalized, nil
}

// decode returns the key of a span: made by the labeler if the span is from a request body, otherwise decoded from
// encoded, the key in the native protocol. The result is valid until the next call.
func (f *finder) decode(s *snapshot, encoded []byte) (*span.Key, error) {
	isFromRequest := s.labeler != nil
	if isFromRequest {
		return s.labeler.Label(s.span), nil
	}
	err := wire.ReadKey(&f.key, encoded)
	return &f.key, err //nolint:wrapcheck // the decoder's error is complete
}

// newResolved returns where the spans of a key are counted that was admitted at its last use.
func newResolved(a *admitted, lastUse use) resolved {
	return resolved{lastUse, a.ID, a.Hash, a.Collapsed, a.objectives}
}

// normalize makes the labels of a key valid UTF-8 of limited length. It writes names of services and
// operations as the Datadog agent does. It reports whether it changed any label.
func (f *finder) normalize(k *span.Key) (changed bool) {
	isNormalized := k.NormalizeLabels(f.origin.Lang)
	isShortened := k.ShortenResource(f.shared.config.MaxResource)
	return isNormalized || isShortened
}

// define assigns a number to an encoded key, so that spans can refer to the key by the number. The number
// must be less than MaxKeys. If there is no memory for the key, spans with the number are counted
// without labels. define returns an error if the key is malformed.
func (f *finder) define(number uint32, encoded []byte) error {
	index, hash := f.keys.find(encoded)
	isNew := index == none
	if isNew {
		err := f.checkKey(encoded)
		if err != nil {
			return err
		}
	}
	isAssigned := f.keys.assign(number, encoded, index, hash)
	if !isAssigned {
		isAssigned = f.evictAndAssign(number, encoded)
	}
	if !isAssigned { // there is no memory
		f.keys.markUnlabeled(number)
		f.shared.totals.unnumbered.Add(1)
	}
	return nil
}

// checkKey returns an error if an encoded key is malformed.
func (f *finder) checkKey(encoded []byte) error {
	defer f.key.Clear()                  // so that it does not retain the message's buffer
	return wire.ReadKey(&f.key, encoded) //nolint:wrapcheck // the decoder's error is complete
}

// evictAndAssign removes all keys to which the client has not assigned a number from the key table, and then
// assigns a number to an encoded key. It does nothing and returns false if that would free too little memory.
// It also returns false if the memory is still not enough.
func (f *finder) evictAndAssign(number uint32, encoded []byte) bool {
	if !f.keys.isSweepWorthwhile() {
		return false
	}
	f.keys.removeUnnumbered()
	index, hash := f.keys.find(encoded) // the indexes have changed
	return f.keys.assign(number, encoded, index, hash)
}

// decodedKeys counts the keys of a batch that were decoded, because their row was unknown.
type decodedKeys struct {
	decoded    uint64
	uncached   uint64
	normalized uint64
}

// add counts a key that was decoded. wasNormalized reports whether its labels had to be normalized.
func (d *decodedKeys) add(wasNormalized bool) {
	d.decoded++
	if wasNormalized {
		d.normalized++
	}
}

// countDecodedKeys adds the decoded keys of a batch to the totals and resets their counts.
func (f *finder) countDecodedKeys() {
	if f.decodedKeys == (decodedKeys{}) {
		return
	}
	totals := &f.shared.totals
	totals.decoded.Add(f.decodedKeys.decoded)
	totals.uncached.Add(f.decodedKeys.uncached)
	totals.normalized.Add(f.decodedKeys.normalized)
	f.decodedKeys = decodedKeys{}
	f.key.Clear() // so that it does not retain the message's buffer
}
