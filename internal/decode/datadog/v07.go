package datadog

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// v07 is the format of /v0.7/traces: a map by names with the tracer's facts and a list of
// chunks, each a map with a list of spans as in v0.4.
type v07 struct{ named }

// textNames are what a payload calls its texts.
var textNames = [...]string{
	"container_id", "language_name", "language_version", "tracer_version", "runtime_id", "env", "hostname",
	"app_version",
}

func (d v07) read() {
	s := &d.sender
	var runtime spantable.Text
	fields := [...]*spantable.Text{
		&s.Container, &s.Lang, &s.LangVersion, &s.TracerVersion, &runtime, &s.Env, &s.Host, &s.Version,
	}
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		name := spantable.View(bytesOf(d.body, d.name()))
		switch at := slices.Index(textNames[:], name); {
		case at >= 0:
			*fields[at] = spantable.Text(d.Str())
		case name == "tags":
			d.readMap(true)
		case name == "chunks":
			d.readChunks()
		default:
			d.Skip()
		}
	}
	// What the payload says itself goes before what its spans say, but for the commit.
	own := texts{env: s.Env, version: s.Version, host: s.Host}
	d.said.override(&own)
	if d.said.commit.Len == 0 {
		d.said.commit = s.Commit
	}
	d.sayTexts()
}

// readMap reads the tags of the payload, or of a chunk, where they mean nothing to us.
func (d v07) readMap(isOfPayload bool) {
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		key, value := d.Str(), spantable.Text(d.Str())
		if !isOfPayload || d.Failed() {
			continue
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
	if d.list.End != 0 {
		d.Fail() // a second list
	}
	for n := d.beginList(); n > 0 && !d.Failed(); n-- {
		if !d.IsNil() {
			d.readChunk()
		}
	}
	d.list.End = d.At()
}

func (d v07) readChunk() {
	g := d.beginTrace()
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		switch string(bytesOf(d.body, d.name())) {
		case "priority":
			g.Priority, g.HasPriority = d.priority(), true
		case "origin":
			g.Origin = spantable.Text(d.Str())
		case "tags":
			d.readMap(false)
		case "dropped_trace":
			d.Bool()
		case "spans":
			for n := d.Array(); n > 0 && !d.Failed(); n-- {
				d.readSpan()
			}
		default:
			d.Skip()
		}
	}
	d.said.override(&d.trace.texts)
	if len(d.table.Spans) > int(g.First) {
		d.endTrace(g)
	}
}

// readSpan reads a span as in v0.4. What it says of its trace counts where it is the first of
// the chunk and not, as there, the last. Of the priority the last one counts in both.
func (d v07) readSpan() {
	if d.IsNil() {
		return
	}
	earlier := d.trace.texts
	d.trace.texts = texts{}
	d.span()
	d.trace.override(&earlier)
}
