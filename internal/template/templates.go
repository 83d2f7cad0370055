package template

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	maxTemplates    = 512 // that are known, of all origins
	templatesEach   = 384 // of one origin
	maxLearners     = 4   // origins that learn at one time
	maxNews         = 8   // templates whose names wait for the log
	maxNewsText     = 256 // bytes of such a name
	unusedIntervals = 2   // after which a template is forgotten
)

// labels is more than any Scope.Label.
const labels = 16

// Scope is where templates are told apart: a label of an origin. The origin is a hash of it,
// the same in every interval.
type Scope struct {
	Origin uint32
	Label  uint8
}

// Templates are those of all origins.
type Templates struct {
	known    atomic.Pointer[known]
	interval atomic.Uint64

	folded [labels]atomic.Uint64 // keys, by Scope.Label

	mu       sync.Mutex
	learners map[uint32]*learner // by Scope.Origin
	news     []string
	more     uint64 // that were learnt and are not among the news
}

// learner is what is kept of one origin.
type learner struct {
	skeletons skeletons
	templates int
	fed       uint64 // the last interval with a sight
}

// Bytes is the most that Templates come to hold.
const Bytes = maxLearners*int(unsafe.Sizeof(learner{})) + 2*4*maxTemplates*int(unsafe.Sizeof(slot{})) + maxNews*maxNewsText

// New makes Templates that know none.
func New() *Templates {
	t := &Templates{learners: map[uint32]*learner{}}
	t.known.Store(newKnown(0))
	return t
}

// Begin begins an interval: what was not used for two is forgotten.
func (t *Templates) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.interval.Add(1)
	for origin, l := range t.learners {
		if l.fed+unusedIntervals < now {
			delete(t.learners, origin)
		}
	}
	k := t.known.Load()
	if now <= unusedIntervals || k.count == 0 {
		return
	}
	if kept := k.without(now - unusedIntervals); kept.count < k.count {
		t.known.Store(kept)
		for origin, l := range t.learners {
			l.templates = kept.ofOrigin(origin)
		}
	}
}

// MayName says whether a template may explain a value of a scope. None does, if the answer is
// no.
func (t *Templates) MayName(scope Scope) bool { return t.known.Load().has(scope) }

// Learn adds sights to the evidence, unless somebody else is doing so.
func (t *Templates) Learn(sights []Sight) {
	if len(sights) == 0 || !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	for i := range sights {
		t.learn(&sights[i])
	}
}

func (t *Templates) learn(s *Sight) {
	l := t.learner(s.scope.Origin)
	if l == nil {
		return
	}
	now := t.interval.Load()
	l.fed = now
	varies, ok := l.skeletons.note(s, now)
	if !ok {
		return
	}
	k := t.known.Load()
	if slot, is := k.find(s.key); is {
		slot.varies.Store(uint64(varies.and(levels(slot.varies.Load()))))
		return
	}
	if l.templates >= templatesEach || k.count >= maxTemplates {
		return
	}
	if k.isFull() {
		k = k.without(0)
		t.known.Store(k)
	}
	k.put(s.key, s.scope, varies, now)
	l.templates++
}

// learner returns that of an origin, or nil where too many others learn.
func (t *Templates) learner(origin uint32) *learner {
	l := t.learners[origin]
	if l == nil && len(t.learners) < maxLearners {
		l = &learner{templates: t.known.Load().ofOrigin(origin)}
		t.learners[origin] = l
	}
	return l
}

// CountFolded counts keys that have a name of a template.
func (t *Templates) CountFolded(label uint8, keys uint64) { t.folded[label%labels].Add(keys) }

// Folded is how many keys have been counted so, of a label.
func (t *Templates) Folded(label uint8) uint64 { return t.folded[label%labels].Load() }

// Known is how many templates a label has, of all origins.
func (t *Templates) Known(label uint8) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known.Load().ofLabel(label)
}

// News are the templates that explained their first value since the last call, at most
// maxNews of them, and how many more there were.
func (t *Templates) News() (names []string, more uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	names, more = t.news, t.more
	t.news, t.more = nil, 0
	return names, more
}

// announce notes the first name that a template made, unless the lock is taken: then it is
// noted the next time.
func (t *Templates) announce(s *slot, name []byte) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	switch {
	case !s.isNews.Swap(false):
	case len(t.news) < maxNews:
		t.news = append(t.news, string(name[:min(len(name), maxNewsText)]))
	default:
		t.more++
	}
}
