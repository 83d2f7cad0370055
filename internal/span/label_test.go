package span

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// places lists the code that must be edited for a new label, apart from its entry in the labels table.
const places = `
	internal/span     Key.Text or Key.Tags
	internal/wire     countElements, AppendKey and keyReader.readLabels with keyLabels; docs/protocol.md
	internal/decode/payload  Group.key
	internal/rules     datadog and otel: from which tags of a span it is taken
	client            labels.set and labels.are, keyBound`

// A text or list field of Key that is missing from the labels table would have no budget and no maximum
// length.
func TestLabels_EveryFieldOfKey(t *testing.T) {
	facts := []string{"TraceRoot", "HTTPStatus", "Synthetics", "Measure"}
	described := map[uintptr]Label{}
	var k Key
	for l := range EndOfLists {
		var field unsafe.Pointer
		if l < FirstList {
			field = unsafe.Pointer(k.Text(l))
		} else {
			field = unsafe.Pointer(k.Tags(l))
		}
		offset := uintptr(field) - uintptr(unsafe.Pointer(&k))
		if other, twice := described[offset]; twice {
			t.Errorf("%s and %s are the same field", l, other)
		}
		described[offset] = l
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Key]()) {
		if slices.Contains(facts, field.Name) {
			continue
		}
		l, ok := described[field.Offset]
		if !ok {
			t.Errorf("Key.%s is not in the table of labels. Give it an entry there, and edit:%s", field.Name,
				places)
			continue
		}
		if isList := field.Type == reflect.TypeFor[[]string](); isList != (l >= FirstList) ||
			!isList && field.Type.Kind() != reflect.String {
			t.Errorf("Key.%s is a %s, which the label %s can't be", field.Name, field.Type, l)
		}
	}
}

// A field that is missing from an entry of the table would mean a limit of 0.
func TestLabels_EntriesAreComplete(t *testing.T) {
	names := map[string]bool{WholeKey.String(): true}
	if found, ok := ParseLabel("http_status"); !ok || found != LabelHTTPStatus || found.Budget() == 0 {
		t.Error("the status has no budget")
	}
	for l := range EndOfLists {
		spec := &labels[l]
		if spec.name == "" || spec.agentName == "" || names[spec.name] || spec.maxBytes == 0 ||
			spec.budget == 0 || (spec.maxTags > 0) != (l >= FirstList) {
			t.Errorf("label %d is described as %+v", l, *spec)
		}
		names[spec.name] = true
		if found, ok := ParseLabel(spec.name); !ok || found != l {
			t.Errorf("%s is parsed as %d", spec.name, found)
		}
		if names[l.AgentName()] {
			t.Errorf("the agent has two labels %s", l.AgentName())
		}
		names[l.AgentName()] = true
	}
}

// The test sets one label of two equal keys after the other, and expects them to differ.
func TestLabels_EachDistinguishesKeys(t *testing.T) {
	seen := map[string]Label{}
	for l := range EndOfLists {
		var k Key
		if l < FirstList {
			*k.Text(l) = "x"
		} else {
			*k.Tags(l) = []string{"x"}
		}
		canonical := string(k.AppendCanonical(nil))
		if other, twice := seen[canonical]; twice {
			t.Errorf("%s and %s are the same in the canonical encoding", l, other)
		}
		seen[canonical] = l
	}
}
