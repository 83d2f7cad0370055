package datadog

import (
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// v04 is the format of /v0.4/traces and /v0.3/traces: an array of traces, each an array of
// spans, each a map by names.
type v04 struct{ named }

func (d v04) read() {
	for n := d.beginList(); n > 0 && !d.Failed(); n-- {
		d.readTrace()
	}
	d.list.End = d.At()
	d.sayTexts()
}

func (d v04) readTrace() {
	g := d.beginTrace()
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		if !d.IsNil() {
			d.span()
		}
	}
	d.said.override(&d.trace.texts)
	d.endTrace(g)
}

// named reads what the formats have in common that write fields by their names: v0.4 and v0.7.
type named struct{ *Decoder }

// span reads a span that is a map by names.
func (d named) span() *spantable.Span {
	s := d.beginSpan(spantable.KindInternal)
	f := fieldOther
	n, at := d.Map(), d.At()
	for body := d.body; n > 0 && !d.Failed(); n-- {
		expected := &d.following[f%fieldRoom]
		f = *expected
		name := &writtenNames[f%fieldRoom]
		if at >= 8 && at <= len(body)-16 && spantable.FingerprintAt(body, at, name.Len()) == *name {
			at += name.Len()
		} else {
			d.Seek(at)
			f = field(fieldTable.Find(bytesOf(body, d.name())))
			*expected, at = f, d.At()
		}
		at = d.readField(s, f, at)
	}
	d.Seek(at)
	d.trace.reconcile(s.Parent)
	return s
}

// name reads the name of a field: a string or bytes.
func (d named) name() spantable.Text {
	if d.Lead() == msgpack.Nil {
		d.Fail()
	}
	return d.looseText()
}
