package datadog

import (
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// maxTagText is the longest tag that is read. The agent cuts those over 25,000 bytes, and a list
// of hosts takes many times its length to be read.
const maxTagText = 16 << 10

// readTags reads n tags of a kind and keeps those that some rule asks for.
func (d *Decoder) readTags(s *spantable.Span, n int, as spantable.Value) {
	t := d.table
	first, at := len(t.Tags), d.At()
	t.Tags = slices.Grow(t.Tags, max(0, min(n, t.Limits.Tags-first))+1)
	for n > 0 && !d.Failed() {
		switch {
		case !d.format.isByName():
			n, at = d.numberedTags(as, n, at)
		case as != spantable.IsBytes:
			n, at = d.namedTags(as, n, at)
		}
		if n > 0 {
			d.Seek(at)
			d.anyTag(as)
			n, at = n-1, d.At()
		}
		if len(t.Tags) > t.Limits.Tags {
			t.Fail(spantable.ErrTooMuch)
			d.Fail()
		}
	}
	d.Seek(at)
	if s.Last = uint32(len(t.Tags)); d.Failed() {
		return
	}
	read := t.Tags[first:]
	for i := range read {
		tag := &read[i]
		if tag.HasText() {
			if t.Charge(tag.Text().Len); tag.Text().Len > maxTagText {
				d.Fail()
			}
		}
		if d.format != FormatV1 && tag.Label < TraceLabels {
			d.noteOfTrace(s, tag)
		}
	}
	d.check()
}

// noteOfTrace notes a tag that says something of its trace or its process, or the span's kind.
func (d *Decoder) noteOfTrace(s *spantable.Span, t *spantable.Tag) {
	switch {
	case t.Value == spantable.IsNumber:
		d.trace.notePriority(t)
	case t.Value != spantable.IsText:
	case t.Label == LabelKind:
		s.Kind = kindNamed(bytesOf(d.body, t.Text()))
	default:
		d.trace.note(t)
	}
}

// kindNamed is the kind of that name. The agent takes no others, and none in capitals.
func kindNamed(name []byte) spantable.Kind {
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

// window is what has to lie ahead of a tag that namedTags reads: the longest name and text that
// it takes, so that nothing but their lengths has to be looked at.
const window = 1 + 31 + 2 + 255

// namedTags reads tags of the most common forms, up to the first of another form, and returns
// how many are left and where they begin. Which ones are wanted is nothing that a processor can
// foretell: so all are noted, and then kept or not.
func (d *Decoder) namedTags(as spantable.Value, n, at int) (left, next int) {
	body, names := d.body, d.names
	tags, kept := d.table.Tags[:cap(d.table.Tags)], len(d.table.Tags)
	for ; n > 0 && kept < len(tags) && at <= len(body)-window; n-- {
		w := (*[window]byte)(body[at:])
		size := int(w[0] - msgpack.FixStr)
		if size > 31 {
			break
		}
		label, isSure := names.FindFingerprint(spantable.FingerprintAt(body, at+1, size))
		if !isSure {
			label = names.Find(w[1 : 1+size])
		}
		bits, end, lead := uint64(0), 0, w[1+size]
		switch {
		case as == spantable.IsNumber:
			bits, end = msgpack.CommonNumber(body, at+1+size)
		case lead-msgpack.FixStr < 32:
			value := spantable.Text{At: uint32(at + 2 + size), Len: uint32(lead - msgpack.FixStr)}
			bits, end = spantable.TextBits(value), int(value.At+value.Len)
		case lead == msgpack.Str8:
			value := spantable.Text{At: uint32(at + 3 + size), Len: uint32(w[2+size])}
			bits, end = spantable.TextBits(value), int(value.At+value.Len)
		}
		if end == 0 {
			break
		}
		tags[kept] = spantable.Tag{Label: label, Value: as, Bits: bits}
		kept += label.OneIfUsed()
		at = end
	}
	d.table.Tags = tags[:kept]
	return n, at
}

// numberedTags is namedTags for the formats that number strings.
func (d *Decoder) numberedTags(as spantable.Value, n, at int) (left, next int) {
	body, labels, texts := d.body, d.strings.labels, d.strings.texts
	tags, kept := d.table.Tags[:cap(d.table.Tags)], len(d.table.Tags)
	for ; n > 0 && kept < len(tags); n-- {
		name, next := msgpack.CommonUint(body, at)
		if next == 0 || name >= uint64(len(labels)) {
			break
		}
		kind, bits := as, uint64(0)
		if as == isStated {
			kind, next = commonKind(body, next)
		}
		if kind == spantable.IsText {
			if bits, next = msgpack.CommonUint(body, next); bits >= uint64(len(texts)) {
				break
			}
			bits = spantable.TextBits(texts[bits])
		} else if kind == spantable.IsNumber {
			bits, next = msgpack.CommonNumber(body, next)
		} else {
			break
		}
		if next == 0 {
			break
		}
		tags[kept] = spantable.Tag{Label: labels[name], Value: kind, Bits: bits}
		kept += labels[name].OneIfUsed()
		at = next
	}
	d.table.Tags = tags[:kept]
	return n, at
}

// anyTag reads a tag of any form.
func (d *Decoder) anyTag(as spantable.Value) {
	label, t := d.anyLabel(), spantable.Tag{Value: as}
	switch as {
	case spantable.IsText:
		t.Bits = spantable.TextBits(d.anyText())
	case spantable.IsNumber:
		t.Bits = d.numberBits()
	case spantable.IsBytes:
		t.Bits = spantable.TextBits(spantable.Text(d.Bin()))
	default:
		t = d.attribute(0)
	}
	if t.Label = label; label != spantable.Other {
		d.table.Tags = append(d.table.Tags, t)
	}
}

// texts are what the spans of a trace say of its process, and where the trace came from.
type texts struct{ env, version, host, commit, origin spantable.Text }

// override replaces each text by another that is not empty.
func (t *texts) override(by *texts) {
	replace(&t.env, by.env)
	replace(&t.version, by.version)
	replace(&t.host, by.host)
	replace(&t.commit, by.commit)
	replace(&t.origin, by.origin)
}

func replace(to *spantable.Text, by spantable.Text) {
	if by.Len != 0 {
		*to = by
	}
}

// ofTrace is what a trace of the older formats says of itself in its spans.
type ofTrace struct {
	texts
	id           uint64 // its lower half
	priority     int32
	hasPriority  bool
	rootPriority int32
	seenRoot     bool
}

// note notes a tag that is its trace's more than its span's: the last one of a trace counts, also
// an empty one.
func (o *ofTrace) note(t *spantable.Tag) {
	switch t.Label {
	case LabelEnv:
		o.env = t.Text()
	case LabelVersion:
		o.version = t.Text()
	case LabelHostname:
		o.host = t.Text()
	case LabelCommit:
		o.commit = t.Text()
	case LabelOrigin:
		o.origin = t.Text()
	}
}

// notePriority notes the priority, which is written as a number.
func (o *ofTrace) notePriority(t *spantable.Tag) {
	if t.Label == LabelPriority {
		o.priority, o.hasPriority = int32(math.Float64frombits(t.Bits)), true
	}
}

// reconcile has the root's priority stand against those of later spans.
func (o *ofTrace) reconcile(parent uint64) {
	if parent == 0 && o.hasPriority {
		o.rootPriority, o.seenRoot = o.priority, true
	} else if o.seenRoot {
		o.priority = o.rootPriority
	}
}
