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

// encodedKey is a key as a list of numbers, mostly IDs of labels.
type encodedKey []uint32

func (k encodedKey) origin() OriginID { return OriginID(k[wordOrigin]) }
func (k encodedKey) status() labelID  { return k[wordStatus] }
func (k encodedKey) facts() uint32    { return k[wordFacts] } // see span.Key.Facts
func (k encodedKey) texts() []labelID { return k[wordTexts:wordTags] }

// rowTable assigns IDs to the keys of one interval and finds them by their encoding.
type rowTable struct {
	byID    []row // index is a KeyID
	entries []KeyEntry
	ids     map[uint64]KeyID // by hash; after a collision, by the next free number
}

type row struct {
	encoded encodedKey // nil for an unlabelled row
	hash    uint64     // hash of the key, the same in every interval
	history
}

func newRowTable() rowTable { return rowTable{ids: map[uint64]KeyID{}} }

// find returns the ID of an encoded key, or false if the table has no such key. hash is the hash of the key.
// If several keys have the same hash, they are stored under hash, hash+1, hash+2 and so on.
func (t *rowTable) find(encoded encodedKey, hash uint64) (KeyID, bool) {
	for mapKey := hash; ; mapKey++ {
		id, isUsed := t.ids[mapKey]
		if !isUsed {
			return 0, false
		}
		if slices.Equal(t.byID[id].encoded, encoded) {
			return id, true
		}
	}
}

// add gives the next ID to a key that is not in the table yet, and returns the ID. hash is the hash of the
// key. If the table has another key with the same hash, the new key is stored under the next free number,
// where find looks for it.
func (t *rowTable) add(encoded encodedKey, hash uint64, history history, entry KeyEntry) KeyID {
	id := t.appendRow(row{encoded: slices.Clone(encoded), hash: hash, history: history}, entry)
	mapKey := hash
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

// appendRow gives the next ID to a row. find does not return the row yet.
func (t *rowTable) appendRow(added row, entry KeyEntry) KeyID {
	t.byID = append(t.byID, added)
	t.entries = append(t.entries, entry)
	return KeyID(len(t.byID) - 1)
}

// keyOf decodes a key. It takes the strings of the key from the label table, because strings of a received
// message would keep the whole message in memory.
func (t *labelTable) keyOf(encoded encodedKey) (k span.Key) {
	statusText := t.byID[encoded.status()].text
	status, _ := strconv.ParseUint(statusText, 10, 32) // 0 if the text is empty
	k.HTTPStatus = uint32(status)
	k.SetFacts(encoded.facts())
	for i, id := range encoded.texts() {
		label := span.Label(i) // the first labels are single texts
		*k.Text(label) = t.byID[id].text
	}
	label := span.FirstList // the others are lists of tags
	for ids := range encoded.tagLists() {
		*k.Tags(label) = t.sortedTexts(ids)
		label++
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
// The lists share memory with k.
func (k encodedKey) tagLists() iter.Seq[[]labelID] {
	return func(yield func(ids []labelID) bool) {
		rest := k[wordTags:]
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

// rowBytes returns the approximate memory of one key: the encoded key, the string headers of its tags, and its
// entries in lists and maps.
func rowBytes(encoded encodedKey) int {
	const (
		numberBytes       = int(unsafe.Sizeof(encoded[0]))
		stringHeaderBytes = int(unsafe.Sizeof(""))
		entryBytes        = int(unsafe.Sizeof(row{}) + unsafe.Sizeof(KeyEntry{}))
		listBytes         = entryBytes * 5 / 4 // the lists can have a quarter of spare capacity
		mapBytes          = 2 * mapSlot        // one entry in this interval, one in the next
	)
	maxTags := len(encoded) - wordTags // each tag is one number
	tagBytes := maxTags * stringHeaderBytes
	encodedBytes := len(encoded) * numberBytes * 9 / 8 // the allocator rounds sizes up
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

// newRowBudget returns the limits on the rows (one for each key) of a new interval and on their memory. A part of
// both is reserved for keys that had a row in the previous interval and can keep it. Their origins are counted as
// origins of the new interval from the start.
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
	rows, bytes rowPriority // shares of rowBudget.rows and rowBudget.bytes; unused with fromReserve
	fromReserve bool
}

// findFreeRow returns where an origin can take the row, the counters, of a new key from: the rows and bytes that all
// origins share or, if either is used up, the reserve for origins with few rows. It returns false if nothing
// is left. Parts of the shared rows and bytes are reserved for keys with a higher priority, which were used in
// the previous interval.
func (b *rowBudget) findFreeRow(o *origin, priority rowPriority) (source rowSource, ok bool) {
	rowShare, hasRows := b.rows.findFree(priority)
	byteShare, hasBytes := b.bytes.findFree(priority)
	if hasRows && hasBytes {
		return rowSource{rows: rowShare, bytes: byteShare}, true
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

// take counts a new row of an origin, and the memory of its key and labels in bytes, as taken from the given
// source. The bytes can exceed the limit, because findFreeRow only checks that some are left.
func (b *rowBudget) take(o *origin, source rowSource, bytes int) {
	o.rows.add(bytes)
	if source.fromReserve {
		o.fromReserve.add(bytes)
		b.fromReserve.add(bytes)
		return
	}
	b.rows.shares[source.rows].taken++
	b.bytes.shares[source.bytes].taken += bytes
}
