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

// readTags reads the given number of tags with values of one type, and appends those whose names are in
// d.names to the tags of the span s. s must be the last span with tags, because the tags of each span are
// contiguous in the table.
func (d *Decoder) readTags(s *spantable.Span, count int, kind spantable.ValueType) {
	t := d.table
	firstNew := len(t.Tags)
	d.reserveTags(count)
	unread := count
	for unread > 0 && !d.Failed() {
		unread = d.readCommonTags(kind, unread) // stops before a tag in a less common encoding
		if unread > 0 {
			d.readAnyTag(kind)
			unread--
		}
		d.checkTagLimit()
	}
	s.TagEnd = uint32(len(t.Tags)) // beginSpan has set s.TagStart
	if !d.Failed() {
		d.applyTags(s, t.Tags[firstNew:])
	}
}

// checkTagLimit stops the decoder with ErrTooMuch if the table has too many tags.
func (d *Decoder) checkTagLimit() {
	if len(d.table.Tags) > d.table.Limits.Tags {
		d.table.Fail(spantable.ErrTooMuch)
		d.Fail()
	}
}

// reserveTags allocates memory for count more tags in the table. It stops one tag after the limit of the
// table, so that the decoder can notice that there are too many.
func (d *Decoder) reserveTags(count int) {
	t := d.table
	untilLimit := t.Limits.Tags - len(t.Tags)
	reserved := max(0, min(count, untilLimit)) + 1
	t.Tags = slices.Grow(t.Tags, reserved)
}

// readCommonTags is a fast path that reads up to n tags. It stops at the first tag that is not in the
// most common encoding, and returns how many of the n tags it has not read.
func (d *Decoder) readCommonTags(kind spantable.ValueType, n int) (unread int) {
	pos := d.Pos()
	switch {
	case !d.format.hasInlineStrings():
		unread, pos = d.readCommonIndexedTags(kind, n, pos)
	case kind == spantable.TypeBytes: // binary tags have no fast path
		return n
	default:
		unread, pos = d.readCommonInlineTags(kind, n, pos)
	}
	d.Seek(pos)
	return unread
}

// applyTags counts the lengths of tag values towards the limit of the table. In formats before v1, it also
// stores the values of tags that describe the trace or the kind of the span s.
func (d *Decoder) applyTags(s *spantable.Span, tags []spantable.Tag) {
	for i := range tags {
		tag := &tags[i]
		if tag.HasText() {
			d.countText(tag.Text().Len)
		}
		if isTraceLabel(tag.Label) && d.format != FormatV1 {
			d.applyTraceTag(s, tag)
		}
	}
	d.checkLimits()
}

// countText counts the length of a tag value towards the limit of the table. It rejects the payload if
// the value is longer than maxTagText.
func (d *Decoder) countText(length uint32) {
	d.table.AddReadBytes(length)
	if length > maxTagText {
		d.Fail()
	}
}

// applyTraceTag stores the value of a tag that describes the span s or its trace, such as the span kind or
// the sampling priority. It ignores all other tags, and values of a wrong type.
func (d *Decoder) applyTraceTag(s *spantable.Span, tag *spantable.Tag) {
	isText := tag.Type == spantable.TypeText
	switch {
	case tag.Label == LabelPriority && tag.Type == spantable.TypeNumber:
		d.traceTags.setPriority(tag)
	case tag.Label == LabelKind && isText:
		s.Kind = kindFromName(bytesOf(d.body, tag.Text()))
	case isText:
		d.traceTags.setTextTag(tag)
	}
}

// kindFromName returns the span kind with the given name, such as "server". Like the Datadog agent, it
// returns KindInternal for all other names, including names in upper case.
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

// readCommonInlineTags is a fast path that reads up to n tags, starting at pos. It stops at the first
// tag that is not in the most common encoding, and returns the number of tags that are left and the
// position of the next one. It stores every tag after the end of d.table.Tags, and extends the list
// only if the tag has a label. That avoids a branch on the label, which the CPU could not predict.
func (d *Decoder) readCommonInlineTags(kind spantable.ValueType, n, pos int) (unread, next int) {
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
		case kind == spantable.TypeNumber:
			bits, end = msgpack.CommonNumber(body, pos+1+nameLen)
		case lead-msgpack.FixStr < 32:
			value := spantable.Text{Start: uint32(pos + 2 + nameLen), Len: uint32(lead - msgpack.FixStr)}
			bits, end = spantable.TextBits(value), int(value.Start+value.Len)
		case lead == msgpack.Str8:
			value := spantable.Text{Start: uint32(pos + 3 + nameLen), Len: uint32(encoded[2+nameLen])}
			bits, end = spantable.TextBits(value), int(value.Start+value.Len)
		}
		if end == 0 {
			break
		}
		tags[stored] = spantable.Tag{Label: label, Type: kind, Bits: bits}
		stored += label.OneIfUsed()
		pos = end
	}
	d.table.Tags = tags[:stored]
	return n, pos
}

// readCommonIndexedTags is a fast path that reads up to n tags, starting at pos, in a format that
// refers to strings by index. It stops at the first tag that is not in the most common encoding, and
// returns the number of tags that are left and the position of the next one.
func (d *Decoder) readCommonIndexedTags(kind spantable.ValueType, n, pos int) (unread, next int) {
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
		if tagKind == spantable.TypeText {
			var index uint64
			index, next = msgpack.CommonUint(body, next)
			if index >= uint64(len(texts)) {
				break
			}
			bits = spantable.TextBits(texts[index])
		} else if tagKind == spantable.TypeNumber {
			bits, next = msgpack.CommonNumber(body, next)
		} else {
			break
		}
		if next == 0 {
			break
		}
		tags[stored] = spantable.Tag{Label: labels[name], Type: tagKind, Bits: bits}
		stored += labels[name].OneIfUsed()
		pos = next
	}
	d.table.Tags = tags[:stored]
	return n, pos
}

// readAnyTag reads the name and the value of a tag, and appends the tag to the table if its name is in
// d.names. kind is the type of the value, or typedValue if the type precedes the value in the payload.
func (d *Decoder) readAnyTag(kind spantable.ValueType) {
	label := d.readLabel()
	tag := spantable.Tag{Type: kind}
	switch kind {
	case spantable.TypeText:
		tag.Bits = spantable.TextBits(d.readAnyText())
	case spantable.TypeNumber:
		tag.Bits = d.readFloatBits()
	case spantable.TypeBytes:
		tag.Bits = spantable.TextBits(spantable.Text(d.Bin()))
	case typedValue:
		const depth = 0 // the value is not in a list
		tag = d.readTypedValue(depth)
	}
	isStored := label != spantable.Other
	if isStored {
		tag.Label = label
		d.table.Tags = append(d.table.Tags, tag)
	}
}

// processTags are the tags of spans that describe their process, and the origin of their trace.
type processTags struct{ env, version, host, commit, origin spantable.Text }

// overrideWith replaces each field of p by the same field of other, unless that is empty.
func (p *processTags) overrideWith(other *processTags) {
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

// traceTags contains the tags of spans that describe their trace. Formats before v1 have no other
// fields for these properties.
type traceTags struct {
	processTags
	traceIDLow      uint64 // lower half of the trace ID
	priority        int32
	hasPriority     bool
	rootPriority    int32
	hasRootPriority bool // a root span with a priority has been read
}

// setTextTag copies the value of an environment, version, host name, Git commit or origin tag to t. It
// replaces an earlier value, even by an empty one. It ignores other tags.
func (t *traceTags) setTextTag(tag *spantable.Tag) {
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

// setPriority stores the sampling priority, which the tag contains as a number.
func (t *traceTags) setPriority(tag *spantable.Tag) {
	t.priority = int32(math.Float64frombits(tag.Bits))
	t.hasPriority = true
}

// keepRootPriority makes the sampling priority of the root span apply to the whole trace. It must be called
// after each span, because a span that is read later overwrites t.priority. parentID is the ID of the parent
// of the last span, or 0 if the last span is the root span.
func (t *traceTags) keepRootPriority(parentID uint64) {
	isRoot := parentID == 0
	switch {
	case isRoot && t.hasPriority:
		t.rootPriority = t.priority
		t.hasRootPriority = true
	case t.hasRootPriority:
		t.priority = t.rootPriority
	}
}
