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
	indexOfOrigin = iota
	indexOfStatus
	indexOfEnums
	indexOfTexts
	indexOfTags = indexOfTexts + int(span.EndOfTexts)
)

// encodedKey is a key as a list of numbers, mostly IDs of labels.
type encodedKey []uint32

func (k encodedKey) origin() OriginID { return OriginID(k[indexOfOrigin]) }
func (k encodedKey) status() labelID  { return k[indexOfStatus] }
func (k encodedKey) enums() uint32    { return k[indexOfEnums] }             // see span.Key.Enums
func (k encodedKey) texts() []labelID { return k[indexOfTexts:indexOfTags] } // index is a span.Label

// rowTable assigns IDs to the keys of one interval and finds them by their encoding.
type rowTable struct {
	byID    []row // index is a KeyID
	entries []KeyEntry
	ids     map[uint64]KeyID // by hash; after a collision, by the next free number
}

type row struct {
	encoded encodedKey // nil for an unlabeled row
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

// add gives the next ID to a key that is not in the table yet, and returns the ID. hash is the hash of the key.
// If t.ids already has this hash, because of another key, the new key is stored under hash+1, hash+2 and so on, as
// find expects.
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
	k.SetEnums(encoded.enums())
	for i, id := range encoded.texts() {
		label := span.Label(i)
		*k.Text(label) = t.byID[id].text
	}
	for list, ids := range encoded.tagLists() {
		*k.Tags(list) = t.sortedTexts(ids)
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

// tagLists iterates over the lists of tags of an encoded key, in which each list follows its length. It returns
// the label of each list, and the IDs of its tags. The lists share memory with k.
func (k encodedKey) tagLists() iter.Seq2[span.Label, []labelID] {
	return func(yield func(list span.Label, ids []labelID) bool) {
		rest := k[indexOfTags:]
		for list := span.FirstList; list < span.EndOfLists; list++ {
			length := int(rest[0])
			ids := rest[1 : 1+length]
			rest = rest[1+length:]
			if !yield(list, ids) {
				return
			}
		}
	}
}

// rowBytes returns an upper estimate of the memory of one key: the encoded key, the string headers of its tags,
// and its entries in lists and maps.
func rowBytes(encoded encodedKey) int {
	const (
		numberBytes       = int(unsafe.Sizeof(encoded[0]))
		stringHeaderBytes = int(unsafe.Sizeof(""))
		mapBytes          = 2 * mapEntryBytes // one entry in this interval, one in the next
	)
	maxTags := len(encoded) - indexOfTags // too high by the lengths of the lists, which are numbers, too
	tagBytes := maxTags * stringHeaderBytes
	encodedBytes := len(encoded) * numberBytes * 9 / 8 // the allocator rounds sizes up by at most an eighth
	entryBytes := listEntryBytes(unsafe.Sizeof(row{}) + unsafe.Sizeof(KeyEntry{}))
	return entryBytes + encodedBytes + tagBytes + mapBytes
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
	limit       usage // limit for all origins, without the reserve
	rows        budget
	bytes       budget
	reserve     usage
	reserveUsed usage
	origins     int // origins of this interval, and those that keep rows of the previous one
}

// newRowBudget returns the limits on the rows of a new interval, of which each key takes one, and on their memory.
// Some rows are reserved for keys of the previous interval. An origin with such keys counts as an origin of the new
// interval before it sends any span.
func newRowBudget(config *Config, prev *previous) rowBudget {
	limit := config.all()
	b := rowBudget{
		limit:   limit,
		rows:    newBudget(limit.rows, prev.keptRows),
		bytes:   newBudget(limit.bytes, prev.keptBytes),
		reserve: config.reserve(),
	}
	for _, o := range prev.origins {
		if o.keepsRows() {
			b.origins++
		}
	}
	return b
}

// rowSource states from where a row and its memory are taken: from a share of each budget that all origins use, or
// from the reserve.
type rowSource struct {
	rows, bytes *slots // nil with fromReserve
	fromReserve bool
}

// findFreeRow returns from where a new key of an origin can take a row: from the budgets that all origins share or,
// if these have no free row or byte for the priority of the key, from the reserve for origins with few rows. It
// returns false if the key can get no row.
func (b *rowBudget) findFreeRow(o *origin, priority slotPriority) (source rowSource, ok bool) {
	rows, bytes := b.rows.findFree(priority), b.bytes.findFree(priority)
	if rows != nil && bytes != nil {
		return rowSource{rows: rows, bytes: bytes}, true
	}
	if b.mayUseReserve(o) {
		return rowSource{fromReserve: true}, true
	}
	return rowSource{}, false
}

// mayUseReserve reports whether an origin can take a row from the reserve. The reserve is for origins that have less
// than their fair share of all rows. An origin can take at most a quarter of a fair share from it, and nothing if
// it is the only origin.
func (b *rowBudget) mayUseReserve(o *origin) bool {
	if b.origins <= 1 {
		return false
	}
	fairShare := b.limit.dividedBy(b.origins)
	maxFromReserve := fairShare.dividedBy(4)
	return o.rows.isBelow(fairShare) &&
		o.reserveRows.isBelow(maxFromReserve) &&
		b.reserveUsed.isBelow(b.reserve)
}

// take takes a row for a new key of an origin from the source that findFreeRow returned. bytes is the memory of the
// key and of its new labels. It can be more than the source has left, because findFreeRow checks only that a byte is
// free.
func (b *rowBudget) take(o *origin, source rowSource, bytes int) {
	o.rows.add(bytes)
	if source.fromReserve {
		o.reserveRows.add(bytes)
		b.reserveUsed.add(bytes)
		return
	}
	source.rows.taken++
	source.bytes.taken += bytes
}
