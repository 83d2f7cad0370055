package client

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// The daemon normalizes a truncated key to the same key as the original.
func TestTruncate_SameKeyAfterNormalization(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	text := func(limit int) string {
		pieces := []string{"a", "\xff", "é", "€", "😀", "\xf0\x9f"}
		var b strings.Builder
		for want := limit - 20 + r.IntN(40); b.Len() < want; {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	tags := func() []string {
		tags := make([]string, r.IntN(100))
		for i := range tags {
			tags[i] = text(span.MaxLabel)
		}
		return tags
	}
	for range 300 {
		k := Key{
			Service: text(span.MaxService), Operation: text(span.MaxOperation),
			Resource: text(span.MaxResource), Type: text(span.MaxType), Kind: text(span.MaxLabel),
			HTTPMethod: text(span.MaxLabel), HTTPEndpoint: text(span.MaxLabel),
			GRPCStatus: text(span.MaxLabel), ServiceSource: text(span.MaxLabel), PeerTags: tags(),
			AdditionalTags: tags(),
		}
		var c keyTruncator
		original := slices.Clone(k.PeerTags)
		cut := *c.truncate(&k)
		if !slices.Equal(original, k.PeerTags) {
			t.Fatal("the caller's tags were changed")
		}
		if normalized(cut) != normalized(k) {
			t.Fatalf("cut %+v is another key than %+v", cut, k)
		}
		if bound := maxEncodedLength(&cut); bound > maxKeyBytes || len(wire.AppendKey(nil, &cut)) > bound {
			t.Fatalf("a cut key has up to %d bytes, encoded %d", bound, len(wire.AppendKey(nil, &cut)))
		}
	}
}

// Every snapshot fits into an empty buffer, so a batch always makes progress when it continues in the next
// buffer.
func TestLargestKey_FitsEmptyBuffer(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	many := slices.Repeat([]string{long}, 500)
	k := Key{
		Service: long, Operation: long, Resource: long, Type: long, Kind: long, HTTPMethod: long,
		HTTPEndpoint: long, GRPCStatus: long, ServiceSource: long, PeerTags: many, AdditionalTags: many,
		TraceRoot: TraceRootTrue, HTTPStatus: 1 << 31, Synthetics: true,
	}
	var c keyTruncator
	cut := c.truncate(&k)
	bound := maxEncodedLength(cut)
	if bound > maxKeyBytes || headerRoom+maxBytesWithoutKey+bound > bufferBytes-defineRoom {
		t.Errorf("the largest key is bounded by %d bytes, want at most %d", bound, maxKeyBytes)
	}
}

// fullKey returns a key with a value for every label.
func fullKey() Key {
	return Key{
		Service: "web-store", Operation: "http.request", Resource: "GET /users/?", Type: "web",
		Kind: "server", TraceRoot: TraceRootTrue, HTTPStatus: 200,
		PeerTags: []string{"peer.service:users", "db.name:users"}, HTTPMethod: "GET",
		HTTPEndpoint: "/users/?", GRPCStatus: "5", ServiceSource: "m", Synthetics: true,
		AdditionalTags: []string{"tier:gold"},
	}
}

// another returns a value that differs slightly from v.
func another(v reflect.Value) (others []reflect.Value) {
	add := func(other any) { others = append(others, reflect.ValueOf(other).Convert(v.Type())) }
	switch v.Kind() {
	case reflect.String:
		add("")
		add(v.String() + "x")
		add("x" + v.String()[1:])
	case reflect.Slice:
		tags := v.Interface().([]string)
		add([]string(nil))
		add(append(slices.Clone(tags), ""))
		for i := range tags {
			changed := slices.Clone(tags)
			changed[i] = "x" + changed[i][1:]
			add(changed)
		}
	case reflect.Bool:
		add(!v.Bool())
	default:
		add(v.Uint() + 1)
	}
	return others
}

// The test changes one label after the other, by reflection so that it includes future labels, and expects
// that the key differs.
func TestLabels_EachChangesTheKey(t *testing.T) {
	k := fullKey()
	var l keyLabels
	l.set(&k)
	if !l.equal(&k) {
		t.Fatal("a key is not itself")
	}
	for i := range reflect.TypeFor[Key]().NumField() {
		name := reflect.TypeFor[Key]().Field(i).Name
		if name == "Measure" {
			continue // not sent: only the daemon sets it
		}
		for _, other := range another(reflect.ValueOf(k).Field(i)) {
			changed := k
			reflect.ValueOf(&changed).Elem().Field(i).Set(other)
			if l.equal(&changed) {
				t.Errorf("with %s %v the keys are equal", name, other)
			}
		}
	}
	moved := k
	moved.PeerTags, moved.AdditionalTags = k.PeerTags[:1],
		append(slices.Clone(k.PeerTags[1:]), k.AdditionalTags...)
	if l.equal(&moved) {
		t.Error("a tag may be in the other list")
	}
	k.PeerTags, k.AdditionalTags = []string{"a:b"}, []string{"a:b", "a:b"}
	l.set(&k)
	k.PeerTags, k.AdditionalTags = k.AdditionalTags, k.PeerTags
	if l.equal(&k) {
		t.Error("a tag may be in the other list, among others that are equal")
	}
}

// A shard that finds keys by their labels sends the same messages as one that does not. The labels are equal strings,
// copies of them, in reused lists, truncated, and with more keys and tags than a table can contain.
func TestLabelTable_SameMessagesWithout(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 13))
	for round := range 12 {
		quick, slow := shardOf(t), shardOf(t)
		slow.numbersByLabels.buffersToSkip = 1 << 30
		keys := make([]Key, 1+rnd.IntN(3*maxKnownKeys))
		for i := range keys {
			if round%2 == 0 {
				keys[i] = fullKey() // large: a buffer defines fewer of them than the table could contain
			}
			keys[i].Resource = fmt.Sprint("r", i/2)
			keys[i].HTTPStatus = uint32(i % 2)
			keys[i].PeerTags = slices.Repeat([]string{"a:b"}, rnd.IntN(maxKnownTags+2))
		}
		keys[0].Resource = strings.Repeat("x", maxKeyBytes)
		scratch := make([]string, 0, 16)
		for range 300 {
			batch := sampleBatch(1 + rnd.IntN(8))
			for i := range batch {
				k := keys[rnd.IntN(len(keys))]
				if rnd.IntN(2) == 0 {
					k.Resource, k.Service = strings.Clone(k.Resource), strings.Clone(k.Service)
				}
				if len(batch) == 1 {
					scratch = append(scratch[:0], k.PeerTags...)
					k.PeerTags = scratch
				}
				batch[i].Key = k
			}
			one, _ := quick.encodeBatch(batch)
			other, _ := slow.encodeBatch(batch)
			if one != other {
				t.Fatal("only one of the two took the batch")
			}
		}
		if slow.numbersByLabels.usedKeys != 0 || quick.numbersByLabels.usedKeys == 0 && quick.numbersByLabels.buffersToSkip == 0 {
			t.Fatalf("known are %d and %d keys", quick.numbersByLabels.usedKeys, slow.numbersByLabels.usedKeys)
		}
		got, want := &fakeDaemon{counts: map[string]tally{}}, &fakeDaemon{counts: map[string]tally{}}
		replay(t, got, sealedBytes(quick))
		replay(t, want, sealedBytes(slow))
		if !reflect.DeepEqual(got.counts, want.counts) {
			t.Fatal("the two shards encoded different counts")
		}
	}
}

// shardOf returns a shard with its own pool.
func shardOf(t *testing.T) *shard {
	return &open(t, Config{Socket: t.TempDir() + "/absent"}).shards[0]
}

// sealedBytes returns all messages of a shard.
func sealedBytes(s *shard) (all []byte) {
	s.submitBuffer()
	for _, b := range s.pool.takeSubmitted(nil) {
		all = append(all, b.bytes()...)
	}
	return all
}

// A shard keeps no label string of a buffer that it has sealed, of a batch that it has removed, or of a key
// that it had to truncate.
func TestLabelTable_KeepsNoOldStrings(t *testing.T) {
	isEmpty := func(s *shard) bool { return s.numbersByLabels.keys == [maxKnownKeys]keyLabels{} }
	s := shardOf(t)
	s.encodeBatch(sampleBatch(40))
	if s.numbersByLabels.usedKeys != 32 {
		t.Errorf("%d of 32 keys are known", s.numbersByLabels.usedKeys)
	}
	s.submitBuffer()
	if !isEmpty(s) {
		t.Error("labels of a sealed buffer are kept")
	}
	s = shardOf(t)
	s.encodeBatch(uniqueBatch(2, maxKeyBytes))
	if !isEmpty(s) || s.buffer.keyCount != 2 {
		t.Error("labels of truncated keys are kept")
	}
	p := newPool(3)
	s = &shard{pool: p, gate: new(gate)}
	if why, _ := s.encodeBatch(sampleBatch(20_000)); why == noReason || s.numbersByLabels.hits == 0 {
		t.Fatal("accepted more than all buffers hold, or knew no key of it")
	}
	if !isEmpty(s) {
		t.Error("labels of a removed batch are kept")
	}
	if why, _ := s.encodeBatch(uniqueBatch(5000, 100)); why == noReason {
		t.Fatal("accepted more than all buffers hold")
	}
	// None of them may be used as a number in the next buffer.
	s.encodeBatch(uniqueBatch(3, 100))
	got := &fakeDaemon{counts: map[string]tally{}}
	replay(t, got, sealedBytes(s))
	if got.spans != 3 || len(got.counts) != 3 {
		t.Errorf("%d spans of %d keys came of 3", got.spans, len(got.counts))
	}
}

// A table that finds few keys is not used for some buffers, and used again afterwards.
func TestLabelTable_PausesWhenFewKeysMatch(t *testing.T) {
	s := shardOf(t)
	fill := func(batch []Snapshot) {
		s.encodeBatch(batch)
		s.submitBuffer()
	}
	fill(uniqueBatch(200, 30))
	for range skippedBuffers {
		s.encodeBatch(sampleBatch(200))
		if s.numbersByLabels.usedKeys != 0 || s.numbersByLabels.hits != 0 {
			t.Fatal("it does not rest")
		}
		s.submitBuffer()
	}
	s.encodeBatch(sampleBatch(200))
	if s.numbersByLabels.hits < 100 { // 168, except those that overwrite each other
		t.Errorf("only %d of 200 were found after the rest", s.numbersByLabels.hits)
	}
	s.submitBuffer()
	fill(sampleBatch(32))
	if s.encodeBatch(sampleBatch(1)); s.numbersByLabels.buffersToSkip != skippedBuffers {
		t.Errorf("a buffer of misses is followed by %d of rest", s.numbersByLabels.buffersToSkip)
	}
}
