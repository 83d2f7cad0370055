package client

import (
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// maxKeyBytes is more than any key has after cut: 64 peer tags of 200 bytes,
	// 4 additional ones of 400, a resource of 5000, and the rest.
	maxKeyBytes = 21 << 10
	// stringOverhead is the longest header of a string, keyOverhead those of a
	// whole key without its tags.
	stringOverhead = 5
	keyOverhead    = 80
)

// keyBound is how many bytes the key's encoding can have at most. It is
// asked of every snapshot, so it only adds.
func keyBound(k *Key) int {
	n := keyOverhead + len(k.Service) + len(k.Operation) + len(k.Resource) + len(k.Type) + len(k.Kind) +
		len(k.HTTPMethod) + len(k.HTTPEndpoint) + len(k.GRPCStatus) + len(k.ServiceSource)
	for _, tag := range k.PeerTags {
		n += stringOverhead + len(tag)
	}
	for _, tag := range k.AdditionalTags {
		n += stringOverhead + len(tag)
	}
	return n
}

// isOversized reports whether the key must be cut before it is encoded.
func isOversized(k *Key, bound int) bool {
	return bound > maxKeyBytes || len(k.PeerTags) > span.MaxPeerTags ||
		len(k.AdditionalTags) > span.MaxAdditionalTags
}

// cutter holds the cut tags of one key, so that cutting allocates nothing.
type cutter struct {
	key  Key
	tags [span.MaxPeerTags + span.MaxAdditionalTags]string
}

// cut returns the key without the bytes that the daemon would throw away. The
// daemon repairs UTF-8 within the first limit+utf8.UTFMax bytes of a label before
// it cuts, so with those it comes to the same label.
func (c *cutter) cut(k *Key) *Key {
	c.key = *k
	for l := range span.FirstList {
		text := c.key.Text(l)
		*text = head(*text, l.MaxBytes())
	}
	peer, additional := c.tags[:span.MaxPeerTags], c.tags[span.MaxPeerTags:]
	c.key.PeerTags = cutTags(peer, k.PeerTags, span.LabelPeerTag)
	c.key.AdditionalTags = cutTags(additional, k.AdditionalTags, span.LabelAdditionalTag)
	return &c.key
}

func cutTags(dst, tags []string, of span.Label) []string {
	dst = dst[:min(len(dst), len(tags))]
	for i := range dst {
		dst[i] = head(tags[i], of.MaxBytes())
	}
	return dst
}

func head(s string, limit int) string {
	return s[:min(len(s), limit+utf8.UTFMax)]
}
