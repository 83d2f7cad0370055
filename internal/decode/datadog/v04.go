package datadog

// v04 decodes /v0.4/traces and /v0.3/traces: an array of traces. A trace is an array of spans, and a
// span is a map with names as keys.
type v04 struct{ *Decoder }

func (d v04) readPayload() {
	for n := d.readTraceCount(); n > 0 && !d.Failed(); n-- {
		d.readTrace()
	}
	d.list.TracesEnd = d.Pos()
	d.endPayload()
}

func (d v04) readTrace() {
	g := d.beginTrace()
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		if !d.SkipNil() {
			d.readSpanMap()
		}
	}
	d.payloadTags.overrideWith(&d.traceTags.processTags)
	d.endTrace(g)
}
