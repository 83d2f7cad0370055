package registry

import (
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/template"
)

// folded are the labels that templates give names.
var folded = [...]span.Label{span.LabelResource, span.LabelHTTPEndpoint}

// folder finds the names that templates give to values without a number of their own, and
// keeps of those that get none what there is to learn, until it is reported. It is a judge's.
type folder struct {
	templates *template.Templates // nil where names are not folded
	fold      template.Fold
	labels    Collapsed               // of the key that is judged, that have the name of a template
	last      [len(folded)]lesson     // of its labels, what asked has kept
	came      []template.Sight        // of its labels that got no number
	sights    []template.Sight        // of all keys that are not reported
	lost      int                     // how many got none
	looks     int                     // at such values, of all keys that are not reported
	looked    int                     // the same before it, in the interval
	keys      [span.LabelCount]uint64 // that were folded, of those
	hasKeys   bool
}

// How many values of a batch are looked at for what they teach is bounded, for of a flood a
// part shows as much, also that it teaches nothing. It is fewer once an interval has shown so
// many that most of what there was to learn has been learnt.
const (
	mostLooks = 32
	manyLooks = 2048 // of a publisher in an interval
	fewLooks  = 4    // of a batch after these
)

// isFull says whether no more values of the batch are looked at.
func (f *folder) isFull() bool {
	return f.looks >= mostLooks || f.looks >= fewLooks && f.looked >= manyLooks
}

// lesson is what there is to learn of a value, if there is anything.
type lesson struct {
	sight   template.Sight
	teaches bool
}

// begin begins a key.
func (f *folder) begin() { f.labels, f.came, f.lost = 0, f.came[:0], 0 }

// isAsked says whether the folder is asked for the names of a label's values.
func (f *folder) isAsked(l span.Label) bool {
	return f.templates != nil && slices.Contains(folded[:], l)
}

// name is the name that a template gives a value of a label that isAsked is for, if one
// explains it. It is valid until the next is asked for.
func (f *folder) name(origin uint64, l span.Label, text string) (name string, ok bool) {
	// It may be longer than a text that was cut to the limit, or than what a page shows.
	most := min(l.MaxBytes(), max(len(text), 100))
	scope := template.Scope{Origin: uint32(origin), Label: uint8(l)}
	if f.isFull() && !f.templates.MayName(scope) {
		f.fold.Forget()
		return "", false
	}
	bytes, ok := f.fold.Name(f.templates, scope, text, most)
	return unsafe.String(unsafe.SliceData(bytes), len(bytes)), ok
}

// needs says whether values of a label that isAsked is for must be known to the folder before it is decided what
// becomes of them: a template may name them, or there is something to learn.
func (f *folder) needs(origin uint64, l span.Label) bool {
	return !f.isFull() || f.templates.MayName(template.Scope{Origin: uint32(origin), Label: uint8(l)})
}

// asked keeps what there is to learn of the value that a name was asked for last, until it is
// decided whether it gets a number.
func (f *folder) asked(l span.Label) {
	last := &f.last[slices.Index(folded[:], l)]
	last.teaches = false
	if !f.isFull() {
		last.sight, last.teaches = f.fold.Sight()
	}
}

// sees has it learnt of a value that asked has kept, for it got no number.
func (f *folder) sees(l span.Label) {
	f.labels &^= setOf(l)
	f.lost++
	if last := &f.last[slices.Index(folded[:], l)]; last.teaches {
		f.came = append(f.came, last.sight)
	}
}

// note counts the key.
func (f *folder) note() {
	if !f.isFull() {
		f.looks += f.lost
	}
	f.sights = append(f.sights, f.came...)
	if f.labels != 0 {
		for _, l := range folded {
			if f.labels.Has(l) {
				f.keys[l]++
				f.hasKeys = true
			}
		}
	}
}

// report tells the templates what came, and counts the keys that were folded.
func (f *folder) report() {
	if f.templates == nil {
		return
	}
	f.templates.Learn(f.sights)
	f.looked += f.looks
	if f.hasKeys {
		for _, l := range folded {
			f.templates.CountFolded(uint8(l), f.keys[l])
		}
	}
	f.clear()
}

// beginInterval begins an interval of the judge's publisher. What came before must have been
// reported.
func (f *folder) beginInterval() {
	f.clear()
	f.looked = 0
}

func (f *folder) clear() {
	f.fold.Forget()
	f.sights, f.looks = f.sights[:0], 0
	if f.hasKeys {
		f.keys, f.hasKeys = [span.LabelCount]uint64{}, false
	}
}
