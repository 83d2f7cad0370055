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
	byID    []row // index is a KeyID
	entries []KeyEntry
	ids     map[uint64]KeyID // by identity; after a collision, by the next free number
}

type row struct {
	encoded  []uint32 // encoded key; nil for an unlabelled row
	identity uint64   // hash of the key, the same in every interval
	history
}

func newRowTable() rowTable { return rowTable{ids: map[uint64]KeyID{}} }

// find returns the ID of an encoded key, or false if the table has no such key. identity is the hash of
// the key. A key whose hash was taken when it was added is in the map under the next free number.
func (t *rowTable) find(encoded []uint32, identity uint64) (KeyID, bool) {
	for mapKey := identity; ; mapKey++ {
		id, isUsed := t.ids[mapKey]
		if !isUsed {
			return 0, false
		}
		if slices.Equal(t.byID[id].encoded, encoded) {
			return id, true
		}
	}
}

// add gives the next ID to a key that is not in the table yet, and returns the ID. identity is the hash
// of the key. If the table has another key with the same hash, the new key is stored under the next
// free number, where find looks for it.
func (t *rowTable) add(encoded []uint32, identity uint64, history history, entry KeyEntry) KeyID {
	id := t.addUnlabelled(entry)
	t.byID[id] = row{encoded: slices.Clone(encoded), identity: identity, history: history}
	mapKey := identity
	for t.isUsed(mapKey) {
		mapKey++
	}
	t.ids[mapKey] = id
	return id
}

func (t *rowTable) isUsed(mapKey uint64) bool {
	_, ok := t.ids[mapKey]
	return ok
}

// addUnlabelled assigns an ID to a row that find never returns.
func (t *rowTable) addUnlabelled(entry KeyEntry) KeyID {
	t.byID = append(t.byID, row{})
	t.entries = append(t.entries, entry)
	return KeyID(len(t.byID) - 1)
}

// orderTags sorts the IDs in each list of tags of an encoded key, and returns the encoding. Several
// tags with one tag key can collapse into the same tag, which must occur only once. So orderTags
// removes duplicates from the lists for which mayRepeat is true. It overwrites encoded.
func orderTags(encoded []uint32, mayRepeat *[lists]bool) []uint32 {
	ordered := encoded[:wordTags]
	list := 0
	for ids := range tagLists(encoded) {
		slices.Sort(ids)
		if mayRepeat[list] {
			ids = slices.Compact(ids)
		}
		ordered = append(ordered, uint32(len(ids)))
		ordered = append(ordered, ids...)
		list++
	}
	return ordered
}

// keyOf decodes a key. It takes the strings of the key from the label table, because strings of a received
// message would keep the whole message in memory.
func (t *labelTable) keyOf(encoded []uint32) (k span.Key) {
	statusText := t.byID[encoded[wordStatus]].text
	status, _ := strconv.ParseUint(statusText, 10, 32) // 0 if the text is empty
	k.HTTPStatus = uint32(status)
	k.SetFacts(byte(encoded[wordFacts]))
	for l := range span.FirstList { // labels before FirstList are single texts
		*k.Text(l) = t.byID[encoded[wordTexts+int(l)]].text
	}
	list := span.FirstList
	for ids := range tagLists(encoded) {
		*k.Tags(list) = t.sortedTexts(ids)
		list++
	}
	return k
}

// sortedTexts returns the texts of labels in alphabetical order, or nil if there are none.
func (t *labelTable) sortedTexts(ids []labelID) []string {
	if len(ids) == 0 {
		return nil
	}
	texts := make([]string, 0, len(ids))
	for _, id := range ids {
		texts = append(texts, t.byID[id].text)
	}
	slices.Sort(texts)
	return texts
}

// tagLists iterates over the lists of tags of an encoded key, in which each list follows its length.
// The lists share memory with encoded.
func tagLists(encoded []uint32) iter.Seq[[]uint32] {
	return func(yield func(ids []uint32) bool) {
		rest := encoded[wordTags:]
		for len(rest) > 0 {
			length := int(rest[0])
			ids := rest[1 : 1+length]
			rest = rest[1+length:]
			if !yield(ids) {
				return
			}
		}
	}
}

// rowBytes returns the approximate memory of one key: its encoding, its strings without their texts, and
// its entries in lists and maps. encoded is the encoded key.
func rowBytes(encoded []uint32) int {
	const wordBytes, stringHeaderBytes = int(unsafe.Sizeof(uint32(0))), int(unsafe.Sizeof(""))
	listBytes := int(unsafe.Sizeof(row{})) + int(unsafe.Sizeof(KeyEntry{}))
	listBytes += listBytes / 4 // spare capacity of the lists
	encodedBytes := wordBytes * len(encoded)
	encodedBytes += encodedBytes / 8    // the allocator rounds sizes up
	tagWords := len(encoded) - wordTags // at least the number of tags
	tagBytes := stringHeaderBytes * tagWords
	mapBytes := 2 * mapSlot // one entry in this interval, one in the next
	return listBytes + encodedBytes + tagBytes + mapBytes
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
	limit       usage // for all origins, without the reserve
	rows        budget
	bytes       budget
	fromReserve usage // taken from the reserve
	origins     int   // origins of this interval, and those that keep rows of the previous one
}

// newRowBudget divides the limit on the rows of a new interval and on their memory. It reserves rows for
// keys that recurred in the previous interval. It counts the processes with such keys as origins of the new
// interval.
func newRowBudget(limit usage, prev *previous) rowBudget {
	b := rowBudget{
		limit: limit,
		rows:  newBudget(limit.rows, prev.keptRows),
		bytes: newBudget(limit.bytes, prev.keptBytes),
	}
	for _, o := range prev.origins {
		keepsRows := o.kept.rows > 0
		if keepsRows {
			b.origins++
		}
	}
	return b
}

// countOrigin counts an origin that is new in this interval. Origins that kept rows of the previous
// interval are counted from the start.
func (b *rowBudget) countOrigin(previous *previousOrigin) {
	wasCounted := previous.kept.rows > 0
	if !wasCounted {
		b.origins++
	}
}

// rowSource is where a row comes from: a share of each shared budget, or the reserve.
type rowSource struct {
	rows, bytes class // shares of rowBudget.rows and rowBudget.bytes; unused with fromReserve
	fromReserve bool
}

// find returns where an origin can take a new row from: the rows that all origins share or, if these are
// used up, the reserve for origins with few rows. It returns false if neither has a row for the origin. Some
// shared rows are only for keys that recurred in the previous interval. class tells if the new key did.
func (b *rowBudget) find(o *origin, class class) (source rowSource, ok bool) {
	rows, hasRows := b.rows.findFree(class)
	bytes, hasBytes := b.bytes.findFree(class)
	if hasRows && hasBytes {
		return rowSource{rows: rows, bytes: bytes}, true
	}
	if b.mayUseReserve(o) {
		return rowSource{fromReserve: true}, true
	}
	return rowSource{}, false
}

// mayUseReserve reports whether an origin can take a row from the reserve, which is for origins with
// less than an equal share of all rows. An origin takes at most a quarter of an equal share from the
// reserve, and nothing if it is the only origin.
func (b *rowBudget) mayUseReserve(o *origin) bool {
	hasOtherOrigins := b.origins > 1
	equalShare := b.limit.dividedBy(b.origins)
	hasFewRows := o.rows.isBelow(equalShare)
	mayTakeMore := o.fromReserve.isBelow(equalShare.dividedBy(4))
	isReserveLeft := b.fromReserve.isBelow(b.limit.dividedBy(4))
	return hasOtherOrigins && hasFewRows && mayTakeMore && isReserveLeft
}

// take counts a new row of an origin, and the bytes of its key and labels, as taken from the given
// source. The bytes can exceed the limit, because find only checks that some are left.
func (b *rowBudget) take(o *origin, source rowSource, bytes int) {
	o.rows.add(bytes)
	if source.fromReserve {
		o.fromReserve.add(bytes)
		b.fromReserve.add(bytes)
		return
	}
	b.rows.take(source.rows, notMask)
	byteShare := &b.bytes.shares[source.bytes]
	byteShare.taken += bytes
}
