package registry

import (
	"iter"
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

// orderTags sorts the tags of each list of an encoded key in place, and returns the encoding. In a
// list with collapsed tags, it removes duplicates: tags with the same tag key collapse into the same
// label, which must occur once, however many tags collapsed.
func orderTags(words []uint32, anyBlocked *[lists]bool) []uint32 {
	from, to := wordTags, wordTags // offsets of the list that is read and of its new position
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
	l := span.FirstList
	for ids := range tagLists(words) {
		tags := make([]string, 0, len(ids))
		for _, id := range ids {
			tags = append(tags, t.list[id].text)
		}
		slices.Sort(tags)
		if len(tags) > 0 {
			*k.Tags(l) = tags
		}
		l++
	}
	return k
}

// tagLists iterates over the lists of tags of an encoded key.
func tagLists(words []uint32) iter.Seq[[]uint32] {
	return func(yield func(ids []uint32) bool) {
		for lists := words[wordTags:]; len(lists) > 0; {
			length := int(lists[0])
			if !yield(lists[1 : 1+length]) {
				return
			}
			lists = lists[1+length:]
		}
	}
}

// rowBytes returns the memory of a row and its key, without the texts of its labels. It includes
// the spare capacity of the lists, the map entry, and the record in the next interval.
func rowBytes(words []uint32) int {
	const wordBytes, stringHeader = int(unsafe.Sizeof(uint32(0))), int(unsafe.Sizeof(""))
	elements := (int(unsafe.Sizeof(row{})) + int(unsafe.Sizeof(KeyEntry{}))) * 5 / 4
	encoding := wordBytes * len(words) * 9 / 8
	tags := stringHeader * (len(words) - wordTags)
	return elements + encoding + tags + 2*mapSlot
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
// The fair share of an origin is the total divided by the number of origins. If the shared budgets
// have no row left, an origin below its fair share can take up to a quarter of its fair share from
// a reserve. The reserve is a quarter of the total, and exists in addition to it.
type rowBudget struct {
	total   usage // total, without the reserve
	rows    budget
	bytes   budget
	reserve usage // taken from the reserve
	origins int   // origins of this interval, and those that keep rows of the previous one
}

// newRowBudget returns the budget of a new interval. Keys that recurred in the previous interval keep their rows and
// bytes, and the origins of these keys take part in the new interval from its start.
func newRowBudget(total usage, prev *previous) rowBudget {
	b := rowBudget{
		total: total,
		rows:  newBudget(total.rows, prev.rows),
		bytes: newBudget(total.bytes, prev.bytes),
	}
	for _, o := range prev.origins {
		if keepsRows := o.kept.rows > 0; keepsRows {
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

// rowSource is where a row comes from: a share of each shared budget, or the reserve.
type rowSource struct {
	rows, bytes class // shares of rowBudget.rows and rowBudget.bytes; unused with fromReserve
	fromReserve bool
}

// find returns the source of a row for a key of the given class: the budgets that all origins share or, if they are
// used up, the reserve. It reports false if the origin can take a row from neither.
func (b *rowBudget) find(o *origin, class class) (source rowSource, ok bool) {
	rows, hasRows := b.rows.findFree(class)
	bytes, hasBytes := b.bytes.findFree(class)
	if hasRows && hasBytes {
		return rowSource{rows: rows, bytes: bytes}, true
	}
	return rowSource{fromReserve: true}, b.mayUseReserve(o)
}

// mayUseReserve reports whether an origin can take a row from the reserve. A single origin cannot,
// because no other origin takes its rows.
func (b *rowBudget) mayUseReserve(o *origin) bool {
	fairShare := b.total.dividedBy(b.origins)
	isBelowFairShare := o.rows.isBelow(fairShare) && o.extra.isBelow(fairShare.dividedBy(4))
	hasReserve := b.reserve.isBelow(b.total.dividedBy(4))
	return b.origins > 1 && isBelowFairShare && hasReserve
}

// take takes a row of an origin from the source that find returned. A row can take more bytes than
// its share has left, because find only requires that some are left.
func (b *rowBudget) take(o *origin, source rowSource, bytes int) {
	o.rows.add(bytes)
	if source.fromReserve {
		o.extra.add(bytes)
		b.reserve.add(bytes)
		return
	}
	b.rows.take(source.rows, notMask)
	b.bytes.shares[source.bytes].taken += bytes
}
