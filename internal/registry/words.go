package registry

import (
	"bytes"
	"hash/maphash"
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A key in words: numbers that are equal exactly where the keys are. First its origin, the
// id of its HTTP status, its facts, then the ids of its texts, then of each list of tags how many
// there are and their ids in ascending order.
const (
	wordOrigin = iota
	wordStatus
	wordFacts
	wordTexts
	wordTags = wordTexts + int(span.FirstList)
)

// beginWords appends the words before the texts.
func beginWords(words []uint32, origin OriginID, k *span.Key) []uint32 {
	return append(words, uint32(origin), absentID, uint32(k.Facts()))
}

// orderTags puts the tags of each list in order, in place. Tags that collapsed into the same
// are left once, or their number would tell keys apart that their names do not.
func orderTags(words []uint32, anyBlocked *[lists]bool) []uint32 {
	from, to := wordTags, wordTags
	for list := range lists {
		ids := words[from+1 : from+1+int(words[from])]
		from += 1 + len(ids)
		if len(ids) > 1 {
			slices.Sort(ids)
		}
		if anyBlocked[list] {
			ids = slices.Compact(ids)
		}
		words[to] = uint32(len(ids))
		to += 1 + copy(words[to+1:], ids)
	}
	return words[:to]
}

// keyOf makes a key of its words again, of the texts that the table owns.
func (t *labelTable) keyOf(words []uint32) (k span.Key) {
	k.HTTPStatus = statusOf(t.at(words[wordStatus]).text)
	k.SetFacts(byte(words[wordFacts]))
	for l := range span.FirstList {
		*k.Text(l) = t.at(words[wordTexts+int(l)]).text
	}
	words = words[wordTags:]
	for l := span.FirstList; l < span.EndOfLists; l++ {
		count := int(words[0])
		*k.Tags(l) = t.tagsOf(words[1 : 1+count])
		words = words[1+count:]
	}
	return k
}

// tagsOf are the texts of tags, in the agent's order.
func (t *labelTable) tagsOf(ids []labelID) []string {
	if len(ids) == 0 {
		return nil
	}
	tags := make([]string, len(ids))
	for i, id := range ids {
		tags[i] = t.at(id).text
	}
	slices.Sort(tags)
	return tags
}

func hashWords(words []uint32) uint64 { return maphash.Bytes(seed, bytesOf(words)) }

func equalWords(a, b []uint32) bool { return bytes.Equal(bytesOf(a), bytesOf(b)) }

func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
