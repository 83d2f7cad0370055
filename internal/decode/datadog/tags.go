package datadog

import (
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// maxTagText is the maximum length of a tag value. The agent truncates values over 25,000 bytes, and
// parsing a long list of hosts takes many times its length in memory.
const maxTagText = 16 << 10

// readTags reads n tags, whose values have the given type, and adds those that have a label to span s.
// The last tags of the table must be those of s.
func (d *Decoder) readTags(s *spantable.Span, n int, kind spantable.Value) {
	t := d.table
	first, pos := len(t.Tags), d.At()
	t.Tags = slices.Grow(t.Tags, max(0, min(n, t.Limits.Tags-first))+1)
	for n > 0 && !d.Failed() {
		switch {
		case !d.format.hasInlineStrings():
			n, pos = d.readCommonIndexedTags(kind, n, pos)
		case kind != spantable.IsBytes:
			n, pos = d.readCommonInlineTags(kind, n, pos)
		}
		if n > 0 {
			d.Seek(pos)
			d.readAnyTag(kind)
			n, pos = n-1, d.At()
		}
		if len(t.Tags) > t.Limits.Tags {
			t.Fail(spantable.ErrTooMuch)
			d.Fail()
		}
	}
	d.Seek(pos)
	s.Last = uint32(len(t.Tags))
	if !d.Failed() {
		d.applyTags(s, t.Tags[first:])
	}
}

// applyTags adds the length of texts in new tags of a span to the total of the table, which is limited.
// In formats before v1, it also sets the fields of the span and its trace that are encoded as tags.
func (d *Decoder) applyTags(s *spantable.Span, tags []spantable.Tag) {
	for i := range tags {
		tag := &tags[i]
		if tag.HasText() {
			length := tag.Text().Len
			d.table.Charge(length)
			if length > maxTagText {
				d.Fail()
			}
		}
		if d.format == FormatV1 || tag.Label >= TraceLabels {
			continue
		}
		switch {
		case tag.Value == spantable.IsNumber:
			d.trace.setPriority(tag)
		case tag.Value != spantable.IsText:
		case tag.Label == LabelKind:
			s.Kind = kindFromName(bytesOf(d.body, tag.Text()))
		default:
			d.trace.setText(tag)
		}
	}
	d.checkLimits()
}

// kindFromName returns the span kind with the given name. Like the agent, it treats unknown and
// uppercase names as internal.
func kindFromName(name []byte) spantable.Kind {
	switch string(name) {
	case "server":
		return spantable.KindServer
	case "client":
		return spantable.KindClient
	case "producer":
		return spantable.KindProducer
	case "consumer":
		return spantable.KindConsumer
	}
	return spantable.KindInternal
}

// maxCommonTag is the maximum length of a tag that readCommonInlineTags can read. If at least as many
// bytes are left, no other length has to be checked.
const maxCommonTag = 1 + 31 + 2 + 255

// readCommonInlineTags reads up to n tags, starting at pos. It stops at the first tag that is not in the
// most common encoding, and returns the number of unread tags and the position of the next one. It
// stores every tag, but increments the count only if the tag has a label, so that it needs no branch
// on the label, which the CPU could not predict.
func (d *Decoder) readCommonInlineTags(kind spantable.Value, n, pos int) (unread, next int) {
	body, names := d.body, d.names
	tags, stored := d.table.Tags[:cap(d.table.Tags)], len(d.table.Tags)
	for ; n > 0 && stored < len(tags) && pos <= len(body)-maxCommonTag; n-- {
		encoded := (*[maxCommonTag]byte)(body[pos:])
		nameLen := int(encoded[0] - msgpack.FixStr)
		if nameLen > 31 {
			break
		}
		label, isSure := names.FindFingerprint(spantable.FingerprintAt(body, pos+1, nameLen))
		if !isSure {
			label = names.Find(encoded[1 : 1+nameLen])
		}
		bits, end, lead := uint64(0), 0, encoded[1+nameLen]
		switch {
		case kind == spantable.IsNumber:
			bits, end = msgpack.CommonNumber(body, pos+1+nameLen)
		case lead-msgpack.FixStr < 32:
			value := spantable.Text{At: uint32(pos + 2 + nameLen), Len: uint32(lead - msgpack.FixStr)}
			bits, end = spantable.TextBits(value), int(value.At+value.Len)
		case lead == msgpack.Str8:
			value := spantable.Text{At: uint32(pos + 3 + nameLen), Len: uint32(encoded[2+nameLen])}
			bits, end = spantable.TextBits(value), int(value.At+value.Len)
		}
		if end == 0 {
			break
		}
		tags[stored] = spantable.Tag{Label: label, Value: kind, Bits: bits}
		stored += label.OneIfUsed()
		pos = end
	}
	d.table.Tags = tags[:stored]
	return n, pos
}

// readCommonIndexedTags reads up to n tags, starting at pos, in a format that refers to strings by
// index. It stops at the first tag that is not in the most common encoding, and returns the number of
// unread tags and the position of the next one.
func (d *Decoder) readCommonIndexedTags(kind spantable.Value, n, pos int) (unread, next int) {
	body, labels, texts := d.body, d.strings.labels, d.strings.texts
	tags, stored := d.table.Tags[:cap(d.table.Tags)], len(d.table.Tags)
	for ; n > 0 && stored < len(tags); n-- {
		name, next := msgpack.CommonUint(body, pos)
		if next == 0 || name >= uint64(len(labels)) {
			break
		}
		tagKind, bits := kind, uint64(0)
		if kind == typedValue {
			tagKind, next = readCommonType(body, next)
		}
		if tagKind == spantable.IsText {
			var index uint64
			index, next = msgpack.CommonUint(body, next)
			if index >= uint64(len(texts)) {
				break
			}
			bits = spantable.TextBits(texts[index])
		} else if tagKind == spantable.IsNumber {
			bits, next = msgpack.CommonNumber(body, next)
		} else {
			break
		}
		if next == 0 {
			break
		}
		tags[stored] = spantable.Tag{Label: labels[name], Value: tagKind, Bits: bits}
		stored += labels[name].OneIfUsed()
		pos = next
	}
	d.table.Tags = tags[:stored]
	return n, pos
}

// readAnyTag reads a tag in any encoding, whose value has the given type. It adds the tag to the table
// if it has a label.
func (d *Decoder) readAnyTag(kind spantable.Value) {
	label := d.readLabel()
	t := spantable.Tag{Value: kind}
	switch kind {
	case spantable.IsText:
		t.Bits = spantable.TextBits(d.readAnyText())
	case spantable.IsNumber:
		t.Bits = d.readFloatBits()
	case spantable.IsBytes:
		t.Bits = spantable.TextBits(spantable.Text(d.Bin()))
	default:
		t = d.readTypedValue(0)
	}
	t.Label = label
	if label != spantable.Other {
		d.table.Tags = append(d.table.Tags, t)
	}
}

// processTags are the tags of spans that describe their process, and the origin of their trace.
type processTags struct{ env, version, host, commit, origin spantable.Text }

// override replaces each field of p by the same field of other, unless that is empty.
func (p *processTags) override(other *processTags) {
	replaceNonEmpty(&p.env, other.env)
	replaceNonEmpty(&p.version, other.version)
	replaceNonEmpty(&p.host, other.host)
	replaceNonEmpty(&p.commit, other.commit)
	replaceNonEmpty(&p.origin, other.origin)
}

func replaceNonEmpty(dst *spantable.Text, src spantable.Text) {
	if src.Len != 0 {
		*dst = src
	}
}

// traceTags are the tags of spans that describe their trace. Formats before v1 have no other fields for
// that.
type traceTags struct {
	processTags
	idLow        uint64 // lower half of the trace ID
	priority     int32
	hasPriority  bool
	rootPriority int32
	hasRoot      bool // a root span with a priority has been read
}

// setText stores the text of a tag if the tag describes the trace or its process. It replaces the text
// of an earlier tag with the same label, even by an empty text.
func (t *traceTags) setText(tag *spantable.Tag) {
	switch tag.Label {
	case LabelEnv:
		t.env = tag.Text()
	case LabelVersion:
		t.version = tag.Text()
	case LabelHostname:
		t.host = tag.Text()
	case LabelCommit:
		t.commit = tag.Text()
	case LabelOrigin:
		t.origin = tag.Text()
	}
}

// setPriority stores the sampling priority if the tag contains it.
func (t *traceTags) setPriority(tag *spantable.Tag) {
	if tag.Label == LabelPriority {
		t.priority, t.hasPriority = int32(math.Float64frombits(tag.Bits)), true
	}
}

// applyRootPriority gives the sampling priority of a root span precedence over that of later spans.
// The decoder calls it after each span of the trace, with the parent ID of the span.
func (t *traceTags) applyRootPriority(parentID uint64) {
	isRoot := parentID == 0
	switch {
	case isRoot && t.hasPriority:
		t.rootPriority = t.priority
		t.hasRoot = true
	case t.hasRoot:
		t.priority = t.rootPriority
	}
}
