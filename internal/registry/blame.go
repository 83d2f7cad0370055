package registry

import "sync"

// blame counts, by label, the keys that lost one of its values: over its budget,
// or new when there was no row for a new key. It is what a person wants to know of
// a flood, and an approximate answer will do: a key that comes again from a
// connection's table is not counted again, and beyond maxBlamed tag keys the rest
// stand under their field.
type blame struct {
	mu     sync.Mutex
	labels map[string]uint64
}

// maxBlamed bounds the labels, which tracers name.
const maxBlamed = 256

// take adds what an interval has counted so far, and takes it from there.
func (b *blame) take(r *Registry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, keys := range r.lost {
		b.add(Field(f).String(), Field(f).String(), keys)
	}
	for i := range r.names {
		name := &r.names[i]
		if name.lost == 0 {
			continue // there are thousands of them, and a label is a new text
		}
		field := name.field.String()
		b.add(field+" "+r.values.list[name.id].text, field, name.lost)
		name.lost = 0
	}
	r.lost = [FieldWholeKey]uint64{}
}

func (b *blame) add(label, orElse string, keys uint64) {
	if keys == 0 {
		return
	}
	if _, known := b.labels[label]; !known && len(b.labels) >= maxBlamed {
		label = orElse
	}
	b.labels[label] += keys
}

// Blamed returns the label that most keys have lost a value of since the last
// call, and their number: a field, or a tag's field and its key. None of them
// lost any if the number is 0.
func (i *Intervals) Blamed() (label string, keys uint64) {
	b := &i.blame
	for _, r := range i.registries {
		b.take(r)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l, n := range b.labels {
		if n > keys || n == keys && l < label {
			label, keys = l, n
		}
	}
	clear(b.labels)
	return label, keys
}
