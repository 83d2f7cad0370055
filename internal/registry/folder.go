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
	came      []template.Sight        // of its labels that got no number
	sights    []template.Sight        // of all keys that are not reported
	keys      [span.LabelCount]uint64 // that were folded, of those
	hasKeys   bool
}

// mostSights bounds what is kept of one batch: of a flood, a part shows as much.
const mostSights = 32

// begin begins a key.
func (f *folder) begin() { f.labels, f.came = 0, f.came[:0] }

// isAsked says whether the folder is asked for the names of a label's values.
func (f *folder) isAsked(l span.Label) bool {
	return f.templates != nil && slices.Contains(folded[:], l)
}

// name is the name that a template gives a value of a label that isAsked is for, if one
// explains it. It is valid until the next is asked for.
func (f *folder) name(origin uint64, l span.Label, text string) (name string, ok bool) {
	// It may be longer than a text that was cut to the limit, or than what a page shows.
	most := min(l.MaxBytes(), max(len(text), 100))
	bytes, ok := f.fold.Name(f.templates, template.Scope{Origin: uint32(origin), Label: uint8(l)}, text, most)
	return unsafe.String(unsafe.SliceData(bytes), len(bytes)), ok
}

// sees keeps what there is to learn of the value that a name was asked for last, and that
// got no number.
func (f *folder) sees(l span.Label) {
	f.labels &^= setOf(l)
	if sight, ok := f.fold.Sight(); ok {
		f.came = append(f.came, sight)
	}
}

// note counts the key.
func (f *folder) note() {
	if room := mostSights - len(f.sights); room > 0 {
		f.sights = append(f.sights, f.came[:min(room, len(f.came))]...)
	}
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
	if f.hasKeys {
		for _, l := range folded {
			f.templates.CountFolded(uint8(l), f.keys[l])
		}
	}
	f.clear()
}

func (f *folder) clear() {
	f.sights = f.sights[:0]
	if f.hasKeys {
		f.keys, f.hasKeys = [span.LabelCount]uint64{}, false
	}
}
