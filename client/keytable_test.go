package client

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// The test compares the table with a map, over many generations.
func TestKeyTable(t *testing.T) {
	table := &keyTable{}
	for generation := range 8 {
		clear(table[:])
		var definitions []byte
		model := map[string]uint16{}
		for i := range 3 * maxKeys {
			key := fmt.Appendf(nil, "key %d", i*7%(maxKeys-generation))
			hash := hashKey(key)
			slot := table.find(key, hash, definitions)
			found := !slot.isEmpty()
			number, known := model[string(key)]
			if found != known || found && slot.number != number {
				t.Fatalf("generation %d: found %q %v, want %v", generation, key, found, known)
			}
			if !found {
				number = uint16(len(model))
				model[string(key)] = number
				*slot = keySlot{
					hash: hash, offset: uint16(len(definitions)), size: uint16(len(key)),
					number: number,
				}
				definitions = append(definitions, key...)
			}
		}
	}
}

// Keys with equal hashes are distinguished by their bytes.
func TestKeyTable_EqualHashes(t *testing.T) {
	table := &keyTable{}
	definitions := []byte("onetwo")
	two := []byte("two")
	hash := hashKey(two)
	*table.find(two, hash, definitions) = keySlot{hash: hash, offset: 0, size: 3, number: 1}
	slot := table.find(two, hash, definitions)
	if !slot.isEmpty() {
		t.Fatal("a key is found as another with its hash")
	}
	*slot = keySlot{hash: hash, offset: 3, size: 3, number: 2}
	if found := table.find(two, hash, definitions); found != slot {
		t.Errorf("a key after another with its hash is found as number %d, want 2", found.number)
	}
}

// The keys that a buffer defines cost less than the minimum limit of a daemon, so the daemon accepts all of
// them.
func TestKeyTable_FitsMinimumLimit(t *testing.T) {
	most := 0
	for length := 1; length <= defineRoom; length++ {
		keys := min(maxKeys, defineRoom/length)
		most = max(most, keys*wire.KeyCost(length))
	}
	if most > maxKeyCost || maxKeyCost > wire.MinMaxKeyBytes {
		t.Errorf("the keys of a buffer may cost %d; %d is asked of a daemon, %d announced at least", most,
			maxKeyCost, wire.MinMaxKeyBytes)
	}
}

// Snapshots with labels and the same ones with encoded keys result in the same bytes.
func TestEncodedKey_SameBytesAsLabels(t *testing.T) {
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

// The test encodes one key more often than the table has slots.
func TestEncodedKey_ManyEncodings(t *testing.T) {
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

// Two encoded keys whose IDs share a slot are sent with separate keys.
func TestEncodedKey_SharedSlot(t *testing.T) {
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

// A key number is valid in one buffer only.
func TestEncodedKey_DefinedInEachBuffer(t *testing.T) {
	byLabels, encoded := sampleBatch(1), sampleBatch(1)
	encoded[0].Encoded = EncodeKey(encoded[0].Key)
	for what, batch := range map[string][]Snapshot{"by its labels": byLabels, "encoded": encoded} {
		s := shardOf(t)
		for range 2 {
			if why, _ := s.encodeBatch(batch); why != noReason || s.buffer.keyCount != 1 {
				t.Errorf("a buffer with one key, published %s, defines %d", what, s.buffer.keyCount)
			}
			s.submitBuffer()
			for _, b := range s.pool.takeSubmitted(nil) {
				s.pool.release(b) // still contains the bytes of its definitions
			}
		}
	}
}

// The limits of labels apply to encoded keys as well.
func TestEncodedKey_IsTruncated(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	key := EncodeKey(Key{Service: huge, Resource: huge, PeerTags: []string{huge, huge}})
	if len(key.raw) > maxKeyBytes {
		t.Errorf("a key of %d bytes", len(key.raw))
	}
}

// bytesOf returns the messages that a client sends for one batch.
func bytesOf(t *testing.T, batch []Snapshot) []byte {
	t.Helper()
	c := open(t, Config{Socket: t.TempDir() + "/absent", MaxAge: time.Hour})
	s := &c.shards[0]
	s.lockByPolling()
	defer s.mu.Unlock()
	if why, _ := s.encodeBatch(batch); why != noReason || s.buffer == nil {
		t.Fatal("the batch was refused")
	}
	return append(bytes.Clone(s.buffer.definitions), s.buffer.spanMessages...)
}
