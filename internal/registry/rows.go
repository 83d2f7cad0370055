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

// usage is rows, and the memory of their keys and new labels.
type usage struct{ rows, bytes int }

func (u usage) isBelow(limit usage) bool { return u.rows < limit.rows && u.bytes < limit.bytes }

func (u *usage) add(bytes int) {
	u.rows++
	u.bytes += bytes
}

func (u usage) over(divisor int) usage {
	return usage{rows: max(1, u.rows/divisor), bytes: max(1, u.bytes/divisor)}
}

// rowBudget is the rows of one interval, and the memory of the keys that have them: two
// budgets that all origins share, of which a key takes from both.
//
// Beyond them there is a quarter as much in reserve. An origin below its fair share, which is
// all rows divided by the origins that are there, finds in every interval at least a quarter of
// its fair share more than it had, whatever the other origins have taken.
type rowBudget struct {
	all     usage
	rows    budget
	bytes   budget
	reserve usage // taken
	present int   // origins that are there, or that keep rows
}

func newRowBudget(all usage, p *previous) rowBudget {
	b := rowBudget{
		all:   all,
		rows:  newBudget(all.rows, p.rows, false),
		bytes: newBudget(all.bytes, p.bytes, false),
	}
	for _, o := range p.origins {
		if o.kept.rows > 0 {
			b.present++
		}
	}
	return b
}

// join adds an origin with its part of the previous interval.
func (b *rowBudget) join(left *previousOrigin) {
	if left.kept.rows == 0 {
		b.present++
	}
}

// rowPart is where a row is taken from.
type rowPart struct {
	rows, bytes recurrence
	isReserve   bool
}

// find returns where an origin may take a row, if it may.
func (b *rowBudget) find(o *origin, known recurrence) (from rowPart, ok bool) {
	rows, hasRows := b.rows.find(known, false, alone)
	bytes, hasBytes := b.bytes.find(known, false, alone)
	if hasRows && hasBytes {
		return rowPart{rows: rows, bytes: bytes}, true
	}
	fair := b.all.over(b.present)
	hasReserve := b.present > 1 && b.reserve.isBelow(b.all.over(4)) &&
		o.rows.isBelow(fair) && o.extra.isBelow(fair.over(4))
	return rowPart{rows: open, isReserve: true}, hasReserve
}

// take takes a row from where find has found it. Its key may take more bytes than are left
// there, but no key after it.
func (b *rowBudget) take(o *origin, from rowPart, bytes int) {
	o.rows.add(bytes)
	if from.isReserve {
		o.extra.add(bytes)
		b.reserve.add(bytes)
		return
	}
	b.rows.take(from.rows, false)
	b.bytes.parts[from.bytes].taken += bytes
}
