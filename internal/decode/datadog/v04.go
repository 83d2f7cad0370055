package datadog

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
