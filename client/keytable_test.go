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

// TestKeyTable compares it with a map, through many generations.
func TestKeyTable(t *testing.T) {
	table := &keyTable{}
	for generation := range 8 {
		clear(table[:])
		var definitions []byte
		model := map[string]uint16{}
		for i := range 3 * maxKeys {
			key := fmt.Appendf(nil, "key %d", i*7%(maxKeys-generation))
			slot, hash, found := table.find(key, definitions)
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

// TestKeysWithEqualHashesStayApart: a hash only says where to look. The key's bytes decide what is
// there.
func TestKeysWithEqualHashesStayApart(t *testing.T) {
	table := &keyTable{}
	definitions := []byte("onetwo")
	slot, hash, _ := table.find([]byte("two"), definitions)
	*slot = keySlot{hash: hash, offset: 0, size: 3, number: 1}
	slot, hash, found := table.find([]byte("two"), definitions)
	if found {
		t.Fatal("a key is found as another with its hash")
	}
	*slot = keySlot{hash: hash, offset: 3, size: 3, number: 2}
	if slot, _, found = table.find([]byte("two"), definitions); !found || slot.number != 2 {
		t.Errorf("behind another with its hash a key is found %t, as number %d", found, slot.number)
	}
}

// TestTheKeysOfABufferFitEveryDaemon: the keys that a buffer may define cost less than the least
// that a daemon announces, so that no number of a buffer is ever without its key.
func TestTheKeysOfABufferFitEveryDaemon(t *testing.T) {
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
