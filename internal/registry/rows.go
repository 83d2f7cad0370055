package registry

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A key in words: numbers that are equal exactly where the keys are. First its origin, the
// number of its HTTP status, its facts, then the numbers of its texts, then of each list of tags
// how many there are and their numbers in ascending order.
const (
	wordOrigin = iota
	wordStatus
	wordFacts
	wordTexts
	wordTags = wordTexts + int(span.FirstList)
)

// rowTable finds the keys of one interval by their words.
type rowTable struct {
	list    []row // by KeyID
	entries []KeyEntry
	ids     map[uint64]KeyID // by identity, or by the next number that is free
}

type row struct {
	words    []uint32 // none if the row is not found by its words
	identity uint64   // a hash of the key, the same in every interval
	history
}

func newRowTable() rowTable { return rowTable{ids: map[uint64]KeyID{}} }

// find returns the number of a key. Two keys may have one identity, so the words decide.
func (t *rowTable) find(words []uint32, identity uint64) (id KeyID, ok bool) {
	for id, ok = t.ids[identity]; ok && !slices.Equal(t.list[id].words, words); id, ok = t.ids[identity] {
		identity++
	}
	return id, ok
}

// add numbers a key that was not found.
func (t *rowTable) add(words []uint32, identity uint64, h history, entry KeyEntry) KeyID {
	id := t.addUnlabelled(entry)
	t.list[id] = row{words: slices.Clone(words), identity: identity, history: h}
	for _, isTaken := t.ids[identity]; isTaken; _, isTaken = t.ids[identity] {
		identity++
	}
	t.ids[identity] = id
	return id
}

// addUnlabelled numbers a key that is not found by its words.
func (t *rowTable) addUnlabelled(entry KeyEntry) KeyID {
	t.list, t.entries = append(t.list, row{}), append(t.entries, entry)
	return KeyID(len(t.list) - 1)
}

// orderTags puts the tags of each list in order, in place. Tags that collapsed into the same
// are left once, or their number would tell keys apart that their names do not.
func orderTags(words []uint32, anyBlocked *[lists]bool) []uint32 {
	from, to := wordTags, wordTags
	for list := range lists {
		ids := words[from+1 : from+1+int(words[from])]
		from += 1 + len(ids)
		slices.Sort(ids)
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
	status, _ := strconv.ParseUint(t.list[words[wordStatus]].text, 10, 32) // absent is 0
	k.HTTPStatus = uint32(status)
	k.SetFacts(byte(words[wordFacts]))
	for l := range span.FirstList {
		*k.Text(l) = t.list[words[wordTexts+int(l)]].text
	}
	words = words[wordTags:]
	for l := span.FirstList; l < span.EndOfLists; l++ {
		ids := words[1 : 1+words[0]]
		words = words[1+len(ids):]
		tags := make([]string, 0, len(ids))
		for _, id := range ids {
			tags = append(tags, t.list[id].text)
		}
		slices.Sort(tags)
		if len(tags) > 0 {
			*k.Tags(l) = tags
		}
	}
	return k
}

// rowBytes is the memory of a row with its key, the capacity that the lists have for more, its
// place in the map, and what the next interval knows of it, without the texts of its labels.
func rowBytes(words []uint32) int {
	const text = int(unsafe.Sizeof(""))
	lists := int(unsafe.Sizeof(row{})) + int(unsafe.Sizeof(KeyEntry{}))
	return lists*5/4 + 4*len(words)*9/8 + 2*mapSlot + text*(len(words)-wordTags)
}
