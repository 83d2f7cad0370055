package registry

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// MaxTagKeys bounds the distinct tag keys that one origin can have budgets for, in
// each of the two lists. Tags beyond it collapse whole, key and all, since their
// keys are then what is unbounded.
const MaxTagKeys = 64

// usage is what one origin has taken of its interval.
type usage struct {
	values   [FieldPeerTag]int // distinct labels, by field
	names    [2]int            // distinct tag keys: of peer tags, of additional ones
	taken    allowance         // without the overflow row
	overflow KeyID             // the overflow aggregate, once there is one
	overflew bool
	hash     uint32 // of the origin, the same in every interval
}

// tagName is a tag key that has a budget.
type tagName struct {
	id      valueID
	field   Field
	used    int     // distinct tags with this key
	blocked valueID // of the tag with this key and span.Blocked, once a key has it
	lost    uint64  // keys that lost a tag with this key
}

// charge is one key on its way to a number: each label charged to its budget and
// become a number itself. A value over its budget becomes blocked before the key
// is looked up, so all such spans meet in one aggregate. A value that was admitted
// earlier in the interval keeps its name.
//
// A new value is charged only where there is a row for a new key: a key that finds
// the table full costs no budget and no memory. Where there is one, a key with a
// new value will take it, since no other key can have that value. So nothing ever
// has to be taken back.
type charge struct {
	*Registry
	origin    OriginID
	room      bool     // there is a row for a new key
	words     []uint32 // what the key is: equal exactly when the keys are
	isNew     bool     // a value was charged
	bytes     int      // that the new values take
	collapsed Collapsed
}

// The first words of a key are not labels.
const (
	wordOrigin = iota
	wordStatus
	wordFacts // trace root, synthetics, and the lengths of the lists of tags
	wordLabels
	wordTags = wordLabels + int(FieldPeerTag)
)

// labels are the key's budgeted labels, by field.
func labels(k *span.Key) [FieldPeerTag]*string {
	return [FieldPeerTag]*string{
		FieldService: &k.Service, FieldOperation: &k.Operation, FieldResource: &k.Resource,
		FieldType: &k.Type, FieldSpanKind: &k.Kind, FieldHTTPMethod: &k.HTTPMethod,
		FieldHTTPEndpoint: &k.HTTPEndpoint, FieldGRPCStatus: &k.GRPCStatus,
		FieldServiceSource: &k.ServiceSource,
	}
}

// key charges a whole key. It reports false as soon as it meets a value that is
// new and that there is no row for.
func (c *charge) key(k *span.Key) (ok bool) {
	c.words = append(c.words[:0], uint32(c.origin), k.HTTPStatus, 0)
	if !(c.label(FieldService, k.Service) && c.label(FieldOperation, k.Operation) &&
		c.label(FieldResource, k.Resource) && c.label(FieldType, k.Type) &&
		c.label(FieldSpanKind, k.Kind) && c.label(FieldHTTPMethod, k.HTTPMethod) &&
		c.label(FieldHTTPEndpoint, k.HTTPEndpoint) && c.label(FieldGRPCStatus, k.GRPCStatus) &&
		c.label(FieldServiceSource, k.ServiceSource) && c.tags(FieldPeerTag, k.PeerTags)) {
		return false
	}
	peers := len(c.words) - wordTags
	if !c.tags(FieldAdditionalTag, k.AdditionalTags) {
		return false
	}
	c.words[wordFacts] = uint32(peers)<<8 | uint32(k.TraceRoot)<<1
	if k.Synthetics {
		c.words[wordFacts] |= 1
	}
	return true
}

// label adds the number of the next label, by field, to the key's words.
func (c *charge) label(f Field, text string) (ok bool) {
	id := absent
	if text != "" {
		id, ok = c.value(f, text)
		if !ok {
			return false
		}
	}
	c.words = append(c.words, id)
	return true
}

func (c *charge) value(f Field, text string) (id valueID, ok bool) {
	where := scopeOf(c.origin, f)
	hash := hashOf(where, text)
	if id, ok = c.values.find(where, hash, text); ok {
		return id, true
	}
	used := &c.used[c.origin].values[f]
	switch {
	case text == span.Blocked:
		// The tracer has budgets too. What it collapsed meets what we do.
		return blocked, true
	case *used >= c.config.Budgets[f]:
		c.collapsed |= 1 << f
		c.lost[f]++
		return blocked, true
	case !c.room:
		c.lost[f]++
		return absent, false
	}
	id = c.add(value{scope: where, hash: hash, text: text})
	if *used++; *used >= c.config.Budgets[f] {
		c.standings[c.origin].set(1 << f)
	}
	return id, true
}

// add numbers a value that is new.
func (c *charge) add(v value) valueID {
	c.isNew = true
	c.bytes += valueBytes(v.text)
	return c.values.add(v)
}

// tags charges a list of tags. Their numbers stand in order, so that equal lists
// are equal words. What has become alike stands once, or the number of such tags
// would tell keys apart that their names do not.
func (c *charge) tags(f Field, tags []string) bool {
	from, anyBlocked := len(c.words), false
	for _, tag := range tags {
		id, ok := c.tag(f, tag)
		if !ok {
			return false
		}
		anyBlocked = anyBlocked || c.values.list[id].isBlocked
		c.words = append(c.words, id)
	}
	if len(tags) < 2 {
		return true
	}
	ids := c.words[from:]
	slices.Sort(ids)
	if anyBlocked {
		c.words = c.words[:from+len(slices.Compact(ids))]
	}
	return true
}

func (c *charge) tag(f Field, tag string) (id valueID, ok bool) {
	where := scopeOf(c.origin, f)
	hash := hashOf(where, tag)
	if id, ok = c.values.find(where, hash, tag); ok || tag == span.Blocked {
		return max(id, blocked), true
	}
	key, told, _ := strings.Cut(tag, ":")
	name, ok := c.name(f, key)
	switch {
	case !ok:
		return absent, false
	case name == nil:
		c.collapsed |= 1 << f
		c.lost[f]++
		return blocked, true
	case told == span.Blocked:
		return c.blockedTag(where, key, name)
	case name.used >= c.config.Budgets[f]:
		c.collapsed |= 1 << f
		name.lost++
		return c.blockedTag(where, key, name)
	case !c.room:
		name.lost++
		return absent, false
	}
	name.used++
	id = c.add(value{scope: where, hash: hash, text: tag})
	c.tell(name)
	return id, true
}

// name finds the budget of a tag key, which is none where the origin has too many
// of them.
func (c *charge) name(f Field, key string) (name *tagName, ok bool) {
	where := nameScopeOf(c.origin, f)
	hash := hashOf(where, key)
	if id, known := c.values.find(where, hash, key); known {
		return &c.names[c.values.list[id].name], true
	}
	used := &c.used[c.origin].names[f-FieldPeerTag]
	switch {
	case *used >= MaxTagKeys:
		return nil, true
	case !c.room:
		c.lost[f]++
		return nil, false
	}
	id := c.add(value{scope: where, hash: hash, text: key, name: int32(len(c.names))})
	if *used++; *used >= MaxTagKeys {
		c.standings[c.origin].set(1 << f)
	}
	c.names = append(c.names, tagName{id: id, field: f})
	c.bytes += int(unsafe.Sizeof(tagName{})) * 5 / 4
	return &c.names[len(c.names)-1], true
}

// blockedTag is what a tag with this key becomes over its budget. It is charged to
// none.
func (c *charge) blockedTag(where scope, key string, name *tagName) (id valueID, ok bool) {
	if name.blocked == absent {
		if !c.room {
			return absent, false
		}
		tag := key + ":" + span.Blocked
		name.blocked = c.add(value{scope: where, hash: hashOf(where, tag), text: tag, isBlocked: true})
		c.tell(name)
	}
	return name.blocked, true
}

// tell makes known to those who only glance that a tag key's budget is used up, once
// there is what its tags become.
func (c *charge) tell(name *tagName) {
	if name.blocked != absent && name.used >= c.config.Budgets[name.field] {
		c.values.fill(name.id, name.blocked)
	}
}
