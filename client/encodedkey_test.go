package client

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestEncodedKeyIsTheSame puts the same snapshots in two shards, with their
// labels and with keys encoded before, and expects the same bytes.
func TestEncodedKeyIsTheSame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for range 200 {
		batch := sampleBatch(1 + rnd.IntN(300))
		for i := range batch {
			batch[i].Error, batch[i].Weight = rnd.IntN(3) == 0, float64(rnd.IntN(3))
			batch[i].Key.Kind = []string{"", "server", "client"}[rnd.IntN(3)]
		}
		before := make([]Snapshot, len(batch))
		for i := range batch {
			before[i] = batch[i]
			before[i].Encoded, before[i].Key = EncodeKey(batch[i].Key), Key{}
		}
		labels, keys := bytesOf(t, batch), bytesOf(t, before)
		if !bytes.Equal(labels, keys) {
			t.Fatalf("%d bytes with labels, %d with encoded keys, and not the same", len(labels), len(keys))
		}
	}
}

// TestManyEncodingsOfOneKey fills the table of ids, and more, with one key.
func TestManyEncodingsOfOneKey(t *testing.T) {
	batch := sampleBatch(1)
	for range 3 * tableSlots {
		s := batch[0]
		s.Encoded, s.Key = EncodeKey(batch[0].Key), Key{}
		batch = append(batch, s)
	}
	labels := make([]Snapshot, len(batch))
	for i := range labels {
		labels[i] = batch[0]
	}
	if !bytes.Equal(bytesOf(t, batch), bytesOf(t, labels)) {
		t.Error("the same key, encoded often, is not sent as it is with labels")
	}
}

// TestEncodedKeysWithOnePlaceAreTwo: two encoded keys whose ids have one place in the table are
// each sent as themselves.
func TestEncodedKeysWithOnePlaceAreTwo(t *testing.T) {
	labels := make([]Snapshot, 4)
	encoded := make([]Snapshot, len(labels))
	for i := range labels {
		labels[i].Key = Key{Service: "shop", Operation: "op", Resource: []string{"one", "other"}[i%2]}
	}
	keys := [2]*EncodedKey{EncodeKey(labels[0].Key), EncodeKey(labels[1].Key)}
	keys[1].id = keys[0].id + tableSlots
	for i := range encoded {
		encoded[i].Encoded = keys[i%2]
	}
	if !bytes.Equal(bytesOf(t, encoded), bytesOf(t, labels)) {
		t.Error("two keys with one place are not sent as they are with labels")
	}
}

// TestAKeyIsDefinedInEachBuffer: a number says nothing in the next buffer.
func TestAKeyIsDefinedInEachBuffer(t *testing.T) {
	byLabels, encoded := sampleBatch(1), sampleBatch(1)
	encoded[0].Encoded = EncodeKey(encoded[0].Key)
	for what, batch := range map[string][]Snapshot{"by its labels": byLabels, "encoded": encoded} {
		s := shardOf(t)
		for range 2 {
			if _, _, ok := s.put(batch); !ok || s.buffer.keys != 1 {
				t.Errorf("a buffer with one key, published %s, defines %d", what, s.buffer.keys)
			}
			s.seal()
			for _, b := range s.pool.appendSealed(nil) {
				s.pool.give(b) // with the bytes of its definitions
			}
		}
	}
}

// TestEncodedKeyIsCut: it is no way round the limits of labels.
func TestEncodedKeyIsCut(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	key := EncodeKey(Key{Service: huge, Resource: huge, PeerTags: []string{huge, huge}})
	if len(key.raw) > maxKeyBytes {
		t.Errorf("a key of %d bytes", len(key.raw))
	}
}

// bytesOf is what a client would send of one batch.
func bytesOf(t *testing.T, batch []Snapshot) []byte {
	t.Helper()
	c := open(t, Config{Socket: t.TempDir() + "/nobody", MaxAge: time.Hour})
	s := &c.shards[0]
	s.lock()
	defer s.mu.Unlock()
	if _, _, ok := s.put(batch); !ok || s.buffer == nil {
		t.Fatal("the batch was refused")
	}
	return append(bytes.Clone(s.buffer.definitions), s.buffer.frames...)
}
