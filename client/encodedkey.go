package client

import "github.com/spanstatsd/spanstatsd/internal/wire"

// EncodedKey is a key that was encoded once, for a tracer that publishes it many
// times. Encoding its labels is two thirds of what publishing a snapshot costs,
// so a tracer that can keep one beside whatever it knows the span's labels by (a
// route, a statement, a peer) should. It is immutable, belongs to no client, and
// holds some bytes more than its labels.
type EncodedKey struct {
	raw  []byte
	hash uint64
}

// EncodeKey encodes a key. It keeps nothing of it.
func EncodeKey(k Key) *EncodedKey {
	if isOversized(&k, keyBound(&k)) {
		k = *new(cutter).cut(&k)
	}
	raw := wire.AppendKey(nil, &k)
	return &EncodedKey{raw: raw, hash: hashOf(raw)}
}
