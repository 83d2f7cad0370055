package template

import "hash/maphash"

// Fold is a value on its way to a name. What it returns is valid until it is used again. It
// keeps the text, and so the message that this is a part of, until Forget.
type Fold struct {
	value value
	scope Scope
	key   uint64 // of the skeleton in the scope, 0 where the text was not understood
	name  []byte
}

// Name is what a template makes of a text, if one explains it and the name has no more
// bytes than that. Sight tells afterwards what there is to learn of the text.
func (f *Fold) Name(t *Templates, scope Scope, text string, most int) (name []byte, ok bool) {
	f.key = 0
	if !f.value.parse(text) {
		return nil, false
	}
	f.scope, f.key = scope, mix(f.value.skeleton, uint64(scope.Origin)<<8|uint64(scope.Label))
	s, is := t.known.Load().find(f.key)
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
func (f *Fold) Sight() (s Sight, ok bool) {
	if f.key == 0 {
		return Sight{}, false
	}
	v := &f.value
	s = Sight{key: f.key, scope: f.scope, count: uint8(v.count)}
	for i := range v.fills[:v.count] {
		fill := &v.fills[i]
		s.marks[i] = mark{uint8(maphash.String(seed, v.text[fill.from:fill.to])), fill.worth}
	}
	return s, true
}

// Forget lets go of the text.
func (f *Fold) Forget() { f.value.text, f.key = "", 0 }
