package datadog

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// v07 decodes /v0.7/traces: a map that describes the tracer and contains a list of chunks. A chunk is
// a map with a list of v0.4 spans.
type v07 struct{ *Decoder }

// v07TextKeys are the keys of the payload's string fields.
var v07TextKeys = [...]string{
	"container_id", "language_name", "language_version", "tracer_version", "runtime_id", "env", "hostname",
	"app_version",
}

func (d v07) readPayload() {
	s := &d.sender
	var runtimeID spantable.Text // not used
	texts := [len(v07TextKeys)]*spantable.Text{
		&s.Container, &s.Lang, &s.LangVersion, &s.TracerVersion, &runtimeID, &s.Env, &s.Host, &s.Version,
	}
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		key := spantable.View(bytesOf(d.body, d.readKey()))
		switch i := slices.Index(v07TextKeys[:], key); {
		case i >= 0:
			*texts[i] = spantable.Text(d.Str())
		case key == "tags":
			d.readPayloadTags()
		case key == "chunks":
			d.readChunks()
		default:
			d.Skip()
		}
	}
	// Fields of the payload take precedence over tags of its spans, except for the commit.
	d.payloadTags.overrideWith(&processTags{env: s.Env, version: s.Version, host: s.Host})
	if d.payloadTags.commit.Len == 0 {
		d.payloadTags.commit = s.Commit
	}
	d.endPayload()
}

func (d v07) readPayloadTags() {
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		key, value := d.Str(), spantable.Text(d.Str())
		if d.Failed() {
			return
		}
		switch d.names.Find(key.Bytes(d.body)) {
		case LabelCommit:
			d.sender.Commit = value
		case LabelProcessTags:
			d.sender.ProcessTags, d.sender.HasProcessTags = value, true
		}
	}
}

func (d v07) readChunks() {
	if d.list.TracesEnd != 0 {
		d.Fail() // a second list
	}
	for n := d.readTraceCount(); n > 0 && !d.Failed(); n-- {
		if !d.SkipNil() {
			d.readChunk()
		}
	}
	d.list.TracesEnd = d.Pos()
}

// readChunk reads a chunk: spans of one trace, with their sampling priority and origin. It adds the spans
// to the table as one group, unless there are none.
func (d v07) readChunk() {
	group := d.beginTrace()
	for fields := d.Map(); fields > 0 && !d.Failed(); fields-- {
		switch string(bytesOf(d.body, d.readKey())) {
		case "priority":
			group.Priority = d.readPriority()
			group.HasPriority = true
		case "origin":
			group.Origin = spantable.Text(d.Str())
		case "tags":
			d.skipStringMap()
		case "dropped_trace":
			d.Bool()
		case "spans":
			for spans := d.Array(); spans > 0 && !d.Failed(); spans-- {
				d.readSpan()
			}
		default:
			d.Skip()
		}
	}
	// readSpan has stored the process tags of the chunk. They apply to the payload; those of the last chunk take
	// precedence.
	d.payloadTags.overrideWith(&d.traceTags.processTags)
	hasSpans := len(d.table.Spans) > int(group.SpanStart)
	if hasSpans {
		d.endTrace(group)
	}
}

// skipStringMap skips a map in which all keys and values must be strings.
func (d v07) skipStringMap() {
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		d.Str() // key
		d.Str() // value
	}
}

// readSpan reads a span of a chunk, or skips nil. For tags that describe the process, such as env, the
// first span of the chunk that has the tag takes precedence.
func (d v07) readSpan() {
	if d.SkipNil() {
		return
	}
	ofEarlierSpans := d.traceTags.processTags
	d.readSpanMap() // replaces the process tags that this span has
	d.traceTags.processTags.overrideWith(&ofEarlierSpans)
}
