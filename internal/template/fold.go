package template

import "hash/maphash"

// Fold is a value on its way to a name. What it returns is valid until it is used again.
type Fold struct {
	value value
	sight Sight
	name  []byte
}

// Name is what a template makes of a text, if one explains it and the name has no more
// bytes than that. Sight tells afterwards what there is to learn of the text.
func (f *Fold) Name(t *Templates, scope Scope, text string, most int) (name []byte, ok bool) {
	name, ok = f.find(t, scope, text, most)
	f.value.text = "" // or it would keep the message that the text is a part of
	return name, ok
}

func (f *Fold) find(t *Templates, scope Scope, text string, most int) (name []byte, ok bool) {
	f.sight.count = 0
	if !f.value.parse(text) {
		return nil, false
	}
	f.look(scope)
	s, is := t.known.Load().find(f.sight.key)
	if !is {
		return nil, false
	}
	f.name, ok = f.value.appendFolded(f.name[:0], levels(s.varies.Load()))
	if !ok || len(f.name) > most {
		return nil, false
	}
	if now := t.interval.Load(); s.used.Load() != now {
		s.used.Store(now)
	}
	if s.isNews.Load() {
		t.announce(s, f.name)
	}
	return f.name, true
}

// Sight is what there is to learn of the text that Name was asked for. It reports false
// where there is nothing.
func (f *Fold) Sight() (s Sight, ok bool) { return f.sight, f.sight.count > 0 }

// look notes the sight of the value.
func (f *Fold) look(scope Scope) {
	v := &f.value
	f.sight.key = mix(v.skeleton, uint64(scope.Origin)<<8|uint64(scope.Label))
	f.sight.scope, f.sight.count = scope, uint8(v.count)
	for i := range v.fills[:v.count] {
		fill := &v.fills[i]
		f.sight.marks[i] = mark{uint8(maphash.String(seed, v.text[fill.from:fill.to])), fill.worth}
	}
}
