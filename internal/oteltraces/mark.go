package oteltraces

import "google.golang.org/protobuf/encoding/protowire"

// A resource says by an attribute whether statistics of its spans were made before. It goes
// before the header of the request, and arrives where that does not: a Collector hands on
// what a message says, and the agent's own server of gRPC reads no header.

// statsComputed is the attribute's name.
const statsComputed = "_dd.stats_computed"

// markAttribute is the attribute as a field of a resource, that it says true.
var markAttribute = func() []byte {
	value := protowire.AppendString([]byte{byte(valueText)}, "true")
	pair := protowire.AppendString([]byte{byte(keyValueKey)}, statsComputed)
	pair = protowire.AppendBytes(append(pair, byte(keyValueValue)), value)
	return protowire.AppendBytes([]byte{byte(resourceAttributes)}, pair)
}()

// mark is what becomes of a resource's message where its spans are counted.
type mark uint8

const (
	unmarked mark = iota // it stays as it is
	appended             // the attribute is written behind the others
	replaced             // the same, in the place of one that says something else
)

// markOf is what has to become of a resource for it to say true.
func (p *payload) markOf(r *resource) mark {
	found := appended
	p.eachAttribute(r, func(from, to int, isMark bool) {
		if isMark && found == appended && string(p.body[from:to]) == string(markAttribute) {
			found = unmarked
		} else if isMark {
			found = replaced
		}
	})
	return found
}

// eachAttribute visits the fields of a resource, and says of each whether it is the attribute.
// The walk has found all of them to be written as they must be.
func (p *payload) eachAttribute(r *resource, visit func(from, to int, isMark bool)) {
	b := p.body[:r.said.at+r.said.len]
	for at := int(r.said.at); at < len(b); {
		f, next := readField(b, at)
		visit(at, next, f.tag == resourceAttributes && string(nameIn(b[:next], f.at)) == statsComputed)
		at = next
	}
}

// nameIn is the name of the attribute that lies from a place to the end of b.
func nameIn(b []byte, at int) (name []byte) {
	for at < len(b) {
		f, next := readField(b, at)
		if f.tag == keyValueKey {
			name = b[f.at:next]
		}
		at = next
	}
	return name
}

// markedSize is how long the message of a resource is that says so.
func (p *payload) markedSize(r *resource) int {
	size := int(r.said.len) + len(markAttribute)
	if r.mark == replaced {
		p.eachAttribute(r, func(from, to int, isMark bool) {
			if isMark {
				size -= to - from
			}
		})
	}
	return size
}

// markGrowth is by how many bytes a resource becomes longer.
func (p *payload) markGrowth(r *resource) int {
	if r.mark == unmarked {
		return 0
	}
	old := 0
	if r.saidField != 0 {
		old = int(r.said.at+r.said.len) - r.saidField
	}
	return 1 + protowire.SizeBytes(p.markedSize(r)) - old
}

// appendMarked writes the field of a resource's message that says so.
func (p *payload) appendMarked(dst []byte, r *resource) []byte {
	dst = protowire.AppendVarint(append(dst, byte(resourceSpansResource)), uint64(p.markedSize(r)))
	if r.mark == replaced {
		p.eachAttribute(r, func(from, to int, isMark bool) {
			if !isMark {
				dst = append(dst, p.body[from:to]...)
			}
		})
	} else {
		dst = append(dst, r.said.of(p.body)...)
	}
	return append(dst, markAttribute...)
}

// appendAround writes what lies around the scopes of a resource, from one place to another,
// with the resource's message as it is to be.
func (p *payload) appendAround(dst []byte, r *resource, from, to int) []byte {
	if r.mark == unmarked || r.saidField < from || r.saidField >= to {
		return append(dst, p.body[from:to]...)
	}
	dst = append(dst, p.body[from:r.saidField]...)
	dst = p.appendMarked(dst, r)
	return append(dst, p.body[r.said.at+r.said.len:to]...)
}
