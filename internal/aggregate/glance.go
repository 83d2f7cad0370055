package aggregate

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Glance admits the keys that change nothing: those whose every label is known
// already, or collapses. In a flood these are nearly all of them, from the first
// seconds of an interval on. It takes no lock, and neither decodes nor normalises a
// key: a label that is as it should be is looked at where it lies, once, and is
// found, or is not while its budget is used up. Of any other key it says that it does
// not know, and Admit does. What it says is what Admit would have said.
//
// It is right without the lock because what it sees only ever grows. It sees first
// that a budget is used up, which stays so, and then that a label is not among those
// admitted: none can have come in between, and none will come.
//
// A Glance is one publisher's, and used between its Enter and Exit.
type Glance struct {
	registry *registry
	standing *standing
	origin   OriginID
	words    []uint32
	tags     [16]int32 // names of this key's tags that lost their values
	lostTags int

	labels    [FieldPeerTag]met // by field, the label that was found last
	name      met               // the name of a tag that was found last
	last      []uint32          // words of the key that was found last
	lastFound Admission

	lost      Collapsed // by so many keys in a row
	lostTimes uint64
	lostSum   [FieldWholeKey]uint64 // by those before
	lostAny   bool
	lostNames []lostName
}

// met is a label that was found. Types, kinds and the names of tags repeat even in a
// flood, and to compare one is less than to look for it.
type met struct {
	text string // the registry's own
	id   valueID
}

// lostName is the keys that lost a tag of a name.
type lostName struct {
	name int32
	keys uint64
}

// Begin makes it an origin's in the cycle's interval. What it has counted of another
// one must have been settled.
func (g *Glance) Begin(c *Cycle, origin OriginID) {
	g.registry, g.origin, g.standing = c.registry, origin, &c.registry.standings[origin]
	g.labels, g.name, g.last = [FieldPeerTag]met{}, met{}, g.last[:0]
	g.forget()
}

// textOf is a part of a key's bytes.
func textOf(raw []byte, p span.Part) string {
	return unsafe.String(&raw[p.From], int(p.To-p.From))
}

// Admit says what Cycle.Admit would say of a key, or that it does not know. It is told
// how much is kept of a resource.
func (g *Glance) Admit(raw []byte, o *span.Outline, maxResource int) (Admission, bool) {
	full := g.standing.full.Load() // before anything is looked for
	if !isNormal(raw, o, maxResource) {
		return Admission{}, false
	}
	g.words = append(g.words[:0], uint32(g.origin), o.HTTPStatus, uint32(o.Peers)<<8|uint32(o.TraceRoot)<<1)
	if o.Synthetics {
		g.words[wordFacts] |= 1
	}
	g.lostTags = 0
	collapsed := Collapsed(0)
	for f, part := range o.Labels {
		id := absent
		if !part.IsEmpty() {
			var known verdict
			id, known = g.label(Field(f), textOf(raw, part), full)
			switch known {
			case unknown:
				return Admission{}, false
			case over:
				collapsed |= 1 << f
			case homeless:
				return g.overflow(collapsed | 1<<f), true
			}
		}
		g.words = append(g.words, id)
	}
	if o.Peers > 0 {
		lost, known := g.peerTags(raw, o, full)
		switch known {
		case unknown:
			return Admission{}, false
		case homeless:
			return g.overflow(collapsed | lost), true
		}
		collapsed |= lost
	}
	return g.row(collapsed, full)
}

// isNormal says whether normalising would leave the names and the resource. The rest
// of a label's rules are its length and whether it is ASCII, see label.
func isNormal(raw []byte, o *span.Outline, maxResource int) bool {
	service, operation, resource := o.Labels[FieldService], o.Labels[FieldOperation], o.Labels[FieldResource]
	return !service.IsEmpty() && !operation.IsEmpty() && !resource.IsEmpty() &&
		int(resource.To-resource.From) <= maxResource &&
		span.IsServiceName(textOf(raw, service)) && span.IsOperationName(textOf(raw, operation))
}

// verdict is what is known of a label.
type verdict uint8

const (
	unknown  verdict = iota // nothing: it is not normal, or may be admitted
	admitted                // it was admitted, or says itself that it is collapsed
	over                    // it collapses: its budget is used up
	homeless                // it can't be admitted, for there is no row for a key that has it
)

func (g *Glance) label(f Field, text string, full uint32) (valueID, verdict) {
	if last := &g.labels[f]; f >= FieldType && last.text == text {
		return last.id, admitted
	}
	hash, isASCII := span.Look(text)
	if !isASCII || f != FieldResource && (len(text) > span.MaxLabel || f == FieldType && len(text) > span.MaxType) {
		return absent, unknown
	}
	where := scopeOf(g.origin, f)
	if id, ok := g.registry.values.find(where, hashIn(where, hash), text); ok {
		g.labels[f] = met{g.registry.values.at(id).text, id}
		return id, admitted
	}
	switch {
	case len(text) == len(span.Blocked) && text == span.Blocked:
		return blocked, admitted
	case full&(1<<f) != 0:
		return blocked, over
	case full&(1<<FieldWholeKey) != 0:
		return absent, homeless
	}
	return absent, unknown
}

// peerTags adds the tags' numbers to the words, in the order of charge.tags.
func (g *Glance) peerTags(raw []byte, o *span.Outline, full uint32) (lost Collapsed, known verdict) {
	from, anyBlocked := len(g.words), false
	for _, part := range o.PeerTags[:o.Peers] {
		text := textOf(raw, part)
		hash, isASCII := span.Look(text)
		if !isASCII || len(text) > span.MaxLabel {
			return 0, unknown
		}
		id, known := g.tag(text, hash, full)
		switch known {
		case over:
			lost |= 1 << FieldPeerTag
			anyBlocked = true
		case unknown, homeless:
			return lost, known
		default:
			anyBlocked = anyBlocked || g.registry.values.at(id).isBlocked
		}
		g.words = append(g.words, id)
	}
	if o.Peers > 1 {
		ids := g.words[from:]
		slices.Sort(ids)
		if anyBlocked {
			g.words = g.words[:from+len(slices.Compact(ids))]
			g.words[wordFacts] = g.words[wordFacts]&0xff | uint32(len(g.words)-from)<<8
		}
	}
	return lost, admitted
}

// nameless stands for the name of a tag whose name has no budget.
const nameless = -1

// tag finds a tag that was admitted. Of one that was not, the name must be used up;
// then it is looked for again, since it may have been the last.
func (g *Glance) tag(text string, hash uint64, full uint32) (valueID, verdict) {
	values := &g.registry.values
	where := scopeOf(g.origin, FieldPeerTag)
	if id, ok := values.find(where, hashIn(where, hash), text); ok {
		return id, admitted
	}
	if text == span.Blocked {
		return blocked, admitted
	}
	id, told := g.nameOf(text)
	if id == absent {
		switch {
		case full&(1<<FieldPeerTag) != 0:
			g.loseTag(nameless)
			return blocked, over
		case full&(1<<FieldWholeKey) != 0:
			g.loseTag(nameless)
			return absent, homeless
		}
		return absent, unknown
	}
	name := values.at(id)
	if becomes := name.becomes(); becomes != absent {
		if id, ok := values.find(where, hashIn(where, hash), text); ok {
			return id, admitted
		}
		g.loseTag(name.name)
		return becomes, over
	}
	if full&(1<<FieldWholeKey) == 0 || told == span.Blocked {
		return absent, unknown
	}
	g.loseTag(name.name)
	return absent, homeless
}

// nameOf finds the name of a tag, and tells what stands behind it.
func (g *Glance) nameOf(tag string) (id valueID, told string) {
	if n := len(g.name.text); n > 0 && len(tag) > n && tag[n] == ':' && tag[:n] == g.name.text {
		return g.name.id, tag[n+1:]
	}
	key, told, _ := strings.Cut(tag, ":")
	where := nameScopeOf(g.origin, FieldPeerTag)
	id, ok := g.registry.values.find(where, hashOf(where, key), key)
	if ok {
		g.name = met{g.registry.values.at(id).text, id}
	}
	return id, told
}

func (g *Glance) loseTag(name int32) {
	g.tags[g.lostTags] = name
	g.lostTags++
}

// row finds the aggregate of the words. It looks at the last one first: the keys of a
// flood are all one once they have lost their labels.
func (g *Glance) row(collapsed Collapsed, full uint32) (Admission, bool) {
	if !bytes.Equal(bytesOf(g.words), bytesOf(g.last)) {
		id, partition, ok := g.registry.rows.find(g.words)
		if !ok {
			if full&(1<<FieldWholeKey) == 0 {
				return Admission{}, false
			}
			return g.overflow(collapsed), true
		}
		g.last = append(g.last[:0], g.words...)
		g.lastFound = Admission{ID: id, Hash: partition}
	}
	g.lose(collapsed)
	a := g.lastFound
	a.Collapsed = collapsed
	return a, true
}

// overflow is the admission of a key that finds no row, and has lost what it has lost.
func (g *Glance) overflow(lost Collapsed) Admission {
	g.lose(lost)
	return Admission{ID: g.standing.overflows, Hash: g.standing.hash, Collapsed: 1 << FieldWholeKey}
}

// lose counts what a key has lost, for the registry's blame: keys in a row have mostly
// lost the same. A tag is lost under its name.
func (g *Glance) lose(lost Collapsed) {
	lost &^= 1 << FieldPeerTag
	if lost != g.lost {
		g.sumLost()
		g.lost = lost
	}
	g.lostTimes++
	for _, name := range g.tags[:g.lostTags] {
		g.loseName(name)
	}
}

func (g *Glance) loseName(name int32) {
	for i := range g.lostNames {
		if g.lostNames[i].name == name {
			g.lostNames[i].keys++
			return
		}
	}
	g.lostNames = append(g.lostNames, lostName{name: name, keys: 1})
}

func (g *Glance) sumLost() {
	for f := range FieldWholeKey {
		if g.lost.Has(f) {
			g.lostSum[f] += g.lostTimes
			g.lostAny = true
		}
	}
	g.lostTimes = 0
}

// Settle makes known what was lost, before the cycle is left.
func (g *Glance) Settle() {
	if g.lostTimes == 0 {
		return
	}
	g.sumLost()
	if !g.lostAny && len(g.lostNames) == 0 {
		return
	}
	r := g.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, keys := range g.lostSum {
		r.lost[f] += keys
	}
	for _, lost := range g.lostNames {
		if lost.name == nameless {
			r.lost[FieldPeerTag] += lost.keys
		} else {
			r.names[lost.name].lost += lost.keys
		}
	}
	g.forget()
}

func (g *Glance) forget() {
	g.lost, g.lostTimes, g.lostAny, g.lostSum = 0, 0, false, [FieldWholeKey]uint64{}
	g.lostNames = g.lostNames[:0]
}
