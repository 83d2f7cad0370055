package registry

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Layout of an encoded key, a list of numbers. Two keys are equal if and only if their encodings are.
// After the texts follows each list of tags: its length, and the IDs of the tags in ascending order.
const (
	wordOrigin = iota
	wordStatus
	wordFacts
	wordTexts
	wordTags = wordTexts + int(span.FirstList)
)

// rowTable assigns IDs to the keys of one interval and finds them by their encoding.
type rowTable struct {
	list    []row // by KeyID
	entries []KeyEntry
	ids     map[uint64]KeyID // by identity; after a collision, by the next free number
}

type row struct {
	words    []uint32 // encoded key; nil for an unlabelled row
	identity uint64   // hash of the key, the same in every interval
	history
}

func newRowTable() rowTable { return rowTable{ids: map[uint64]KeyID{}} }

// find returns the ID of a key. It compares encodings, because two keys can have the same identity.
func (t *rowTable) find(words []uint32, identity uint64) (id KeyID, ok bool) {
	for id, ok = t.ids[identity]; ok && !slices.Equal(t.list[id].words, words); id, ok = t.ids[identity] {
		identity++
	}
	return id, ok
}

// add assigns an ID to a key that find did not return.
func (t *rowTable) add(words []uint32, identity uint64, history history, entry KeyEntry) KeyID {
	id := t.addUnlabelled(entry)
	t.list[id] = row{words: slices.Clone(words), identity: identity, history: history}
	for _, isTaken := t.ids[identity]; isTaken; _, isTaken = t.ids[identity] {
		identity++
	}
	t.ids[identity] = id
	return id
}

// addUnlabelled assigns an ID to a row that find never returns.
func (t *rowTable) addUnlabelled(entry KeyEntry) KeyID {
	t.list, t.entries = append(t.list, row{}), append(t.entries, entry)
	return KeyID(len(t.list) - 1)
}

// orderTags sorts the tags of each list of an encoded key in place, and returns the encoding. It
// removes duplicates from lists in which tags collapsed: several tags can collapse into one, and
// equal keys must not differ in how many did.
func orderTags(words []uint32, anyBlocked *[lists]bool) []uint32 {
	from, to := wordTags, wordTags // offsets of the list that is read, and of the one that is written
	for list := range lists {
		count := int(words[from])
		ids := words[from+1 : from+1+count]
		from += 1 + count
		slices.Sort(ids)
		if anyBlocked[list] {
			ids = slices.Compact(ids)
		}
		words[to] = uint32(len(ids))
		to += 1 + copy(words[to+1:], ids)
	}
	return words[:to]
}

// keyOf decodes a key. Its texts are those of the label table, so the key does not refer to the
// message that it came from.
func (t *labelTable) keyOf(words []uint32) (k span.Key) {
	status, _ := strconv.ParseUint(t.list[words[wordStatus]].text, 10, 32) // 0 if absent
	k.HTTPStatus = uint32(status)
	k.SetFacts(byte(words[wordFacts]))
	for l := range span.FirstList {
		*k.Text(l) = t.list[words[wordTexts+int(l)]].text
	}
	lists := words[wordTags:]
	for l := span.FirstList; l < span.EndOfLists; l++ {
		ids := lists[1 : 1+lists[0]]
		lists = lists[1+len(ids):]
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

// rowBytes returns the memory of a row and its key, without the texts of its labels. It includes
// the spare capacity of the lists, the map entry, and the record in the next interval.
func rowBytes(words []uint32) int {
	const text = int(unsafe.Sizeof(""))
	lists := int(unsafe.Sizeof(row{})) + int(unsafe.Sizeof(KeyEntry{}))
	return lists*5/4 + 4*len(words)*9/8 + 2*mapSlot + text*(len(words)-wordTags)
}

// usage is a number of rows, and the memory of their keys and labels.
type usage struct{ rows, bytes int }

func (u usage) isBelow(limit usage) bool { return u.rows < limit.rows && u.bytes < limit.bytes }

func (u *usage) add(bytes int) {
	u.rows++
	u.bytes += bytes
}

func (u usage) dividedBy(divisor int) usage {
	return usage{rows: max(1, u.rows/divisor), bytes: max(1, u.bytes/divisor)}
}

// rowBudget limits the rows of one interval and the memory of their keys. Both are budgets that all
// origins share, and a key takes from both.
//
// A reserve of a quarter as much exists beyond them. It guarantees that an origin below its fair
// share, which is the total divided by the number of origins, can in every interval take at least a
// quarter of its fair share in addition, however much other origins have taken.
type rowBudget struct {
	total   usage // total, without the reserve
	rows    budget
	bytes   budget
	reserve usage // taken from the reserve
	origins int   // origins of this interval, and those that keep rows of the previous one
}

// newRowBudget returns the budget of a new interval, given the rows and bytes kept from the
// previous one.
func newRowBudget(total usage, prev *previous) rowBudget {
	b := rowBudget{
		total: total,
		rows:  newBudget(total.rows, prev.rows, false),
		bytes: newBudget(total.bytes, prev.bytes, false),
	}
	for _, o := range prev.origins {
		if o.kept.rows > 0 {
			b.origins++
		}
	}
	return b
}

// join registers an origin, given its record of the previous interval.
func (b *rowBudget) join(record *previousOrigin) {
	if record.kept.rows == 0 {
		b.origins++
	}
}

// rowSource names the shares that a row is taken from.
type rowSource struct {
	rows, bytes class
	fromReserve bool
}

// find returns the shares from which an origin can take a row for a key of the given class: those
// of the shared budgets, or otherwise the reserve, if the origin is below its fair share.
func (b *rowBudget) find(o *origin, class class) (from rowSource, ok bool) {
	rows, hasRows := b.rows.find(class, false, noPending)
	bytes, hasBytes := b.bytes.find(class, false, noPending)
	if hasRows && hasBytes {
		return rowSource{rows: rows, bytes: bytes}, true
	}
	fairShare := b.total.dividedBy(b.origins)
	mayUseReserve := b.origins > 1 && b.reserve.isBelow(b.total.dividedBy(4)) &&
		o.rows.isBelow(fairShare) && o.extra.isBelow(fairShare.dividedBy(4))
	return rowSource{rows: classNew, fromReserve: true}, mayUseReserve
}

// take charges a row to the shares that find returned. The last key of a share can exceed its
// bytes, because find only requires that some are left.
func (b *rowBudget) take(o *origin, from rowSource, bytes int) {
	o.rows.add(bytes)
	if from.fromReserve {
		o.extra.add(bytes)
		b.reserve.add(bytes)
		return
	}
	b.rows.take(from.rows, false)
	b.bytes.shares[from.bytes].taken += bytes
}
