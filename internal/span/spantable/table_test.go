package spantable_test

import (
	"errors"
	"math"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

func newTable(body string) *spantable.Table {
	t := &spantable.Table{}
	t.Reset([]byte(body), spantable.LimitsOf(len(body), 8))
	return t
}

// Bytes returns the same text from the body and from Derived.
func TestTable_TextFromBodyOrDerived(t *testing.T) {
	table := newTable("a service")
	table.Derived = append(table.Derived, "made "...)
	start := len(table.Derived)
	table.Derived = append(table.Derived, "of it"...)
	made := table.DerivedSince(start)
	for want, text := range map[string]spantable.Text{
		"service": {Start: 2, Len: 7}, "": {}, "of it": made,
	} {
		tag := spantable.Tag{Type: spantable.TypeText, Bits: spantable.TextBits(text)}
		if got := table.String(tag.Text()); got != want {
			t.Errorf("%q is read as %q", want, got)
		}
		if b := table.Bytes(text); len(b) != cap(b) {
			t.Errorf("an append to %q overwrites the text after it", want)
		}
	}
	if table.Err() != nil {
		t.Error(table.Err())
	}
}

// A table fails when a body exceeds any of its limits.
func TestTable_IsBounded(t *testing.T) {
	limits := spantable.LimitsOf(100, 8)
	for what, exceed := range map[string]func(*spantable.Table, int){
		"spans": func(table *spantable.Table, more int) {
			for range limits.Spans + more {
				table.AddSpan(spantable.KindServer)
			}
		},
		"groups": func(table *spantable.Table, more int) {
			for range limits.Spans + more {
				table.AddGroup(spantable.Group{})
			}
		},
		"made": func(table *spantable.Table, more int) {
			table.Derived = make([]byte, limits.DerivedBytes+more)
			table.DerivedSince(0)
		},
		"looked at": func(table *spantable.Table, more int) {
			for range 32 {
				table.AddReadBytes(1 << 20)
			}
			table.AddReadBytes(uint32(more))
		},
	} {
		table := &spantable.Table{}
		for _, more := range []int{0, 1, 0} { // the last one reuses the memory of the one before
			table.Reset(nil, limits)
			exceed(table, more)
			if err := table.Err(); errors.Is(err, spantable.ErrTooMuch) != (more > 0) {
				t.Errorf("%s, %d too many: %v", what, more, err)
			}
		}
	}
}

// Err returns the first reason until Reset.
func TestErr_FirstReason(t *testing.T) {
	first, table := errors.New("first"), newTable("")
	table.Fail(first)
	table.Fail(spantable.ErrTooMuch)
	if !errors.Is(table.Err(), first) {
		t.Error(table.Err())
	}
	table.Reset(nil, spantable.Limits{})
	if table.Err() != nil {
		t.Error(table.Err())
	}
}

// A group ends with the last span, and its sender is the one that is appended next.
func TestGroup_SpansSinceLast(t *testing.T) {
	table := newTable("")
	for sender := range 2 {
		for range sender + 1 {
			first := uint32(len(table.Spans))
			s := table.AddSpan(spantable.KindClient)
			s.ID = uint64(len(table.Spans))
			table.Tags = append(table.Tags, spantable.Tag{Label: spantable.Label(s.ID)})
			s.TagEnd = uint32(len(table.Tags))
			table.AddGroup(spantable.Group{SpanStart: first})
		}
		table.Senders = append(table.Senders, spantable.Sender{})
	}
	want := []uint32{0, 1, 1}
	for i := range table.Groups {
		g := &table.Groups[i]
		spans := table.SpansOf(g)
		if len(spans) != 1 || spans[0].ID != uint64(i+1) || g.Sender != want[i] {
			t.Errorf("group %d is %+v with %+v", i, g, spans)
		}
		if tags := table.TagsOf(&spans[0]); len(tags) != 1 || int(tags[0].Label) != i+1 {
			t.Errorf("span %d has the tags %+v", i, tags)
		}
	}
}

// Release removes the reference to the body, and frees a very large table.
func TestRelease_HoldsNothing(t *testing.T) {
	table := newTable("a body")
	if table.AddSpan(spantable.KindServer); table.Release() || table.Body != nil || cap(table.Spans) == 0 {
		t.Errorf("the body is %q, with room for %d spans", table.Body, cap(table.Spans))
	}
	for what, fill := range map[string]func(){
		"tags": func() { table.Tags = make([]spantable.Tag, 1<<16+1) },
		"made": func() { table.Derived = make([]byte, 4<<20+1) },
	} {
		table.Reset(nil, spantable.Limits{})
		if fill(); !table.Release() || cap(table.Tags)+cap(table.Derived)+cap(table.Spans) > 0 {
			t.Errorf("%s: memory was kept", what)
		}
	}
}

// Select uses the last of two tags with one label, as in Datadog's formats; AddMissing uses the first one,
// as in OTLP.
func TestTags_OneOfTwoCounts(t *testing.T) {
	table := newTable("")
	for i, l := range []spantable.Label{7, 255, 7, 64, 255} {
		table.Tags = append(table.Tags, spantable.Tag{Label: l, Bits: uint64(i)})
	}
	var s spantable.Selected
	s.AddMissing(table, 0, 1) // the tags of another span
	s.Select(table, 1, 4)
	for l, want := range map[spantable.Label]uint32{255: 1, 7: 2, 64: 3} {
		if tag := s.Tag(table, l); tag == nil || tag.Bits != uint64(want) || s.At(l) != want {
			t.Errorf("label %d is %+v, not the tag %d", l, tag, want)
		}
	}
	s.Set = spantable.LabelSet{}
	s.AddMissing(table, 1, 3)
	s.AddMissing(table, 2, 5)
	for l, want := range map[spantable.Label]uint32{255: 1, 7: 2, 64: 3} {
		if s.At(l) != want || !s.Set.Has(l) {
			t.Errorf("label %d is tag %d, not %d", l, s.At(l), want)
		}
	}
	if s.Tag(table, 8) != nil || s.Set != spantable.LabelsOf(7, 64, 255) {
		t.Errorf("labels are %v", s.Set)
	}
}

// Float converts every numeric value, and rejects texts.
func TestFloat_EachNumericValue(t *testing.T) {
	for _, c := range []struct {
		tag  spantable.Tag
		want float64
		ok   bool
	}{
		{spantable.Tag{Type: spantable.TypeNumber, Bits: math.Float64bits(-1.5)}, -1.5, true},
		{spantable.Tag{Type: spantable.TypeInteger, Bits: math.MaxUint64}, -1, true},
		{spantable.Tag{Type: spantable.TypeBool, Bits: 1}, 1, true},
		{spantable.Tag{Type: spantable.TypeText, Bits: 1}, 0, false},
		{spantable.Tag{Type: spantable.TypeBytes, Bits: 1}, 0, false},
		{spantable.Tag{Type: spantable.TypeNested, Bits: 1}, 0, false},
	} {
		if got, ok := c.tag.Float(); got != c.want || ok != c.ok {
			t.Errorf("%+v is %v, %v", c.tag, got, ok)
		}
		if written := c.tag.Type == spantable.TypeText ||
			c.tag.Type == spantable.TypeBytes; c.tag.HasText() != written {
			t.Errorf("%+v holds a place: %v", c.tag, !written)
		}
	}
}

// KindSet and LabelSet contain the added elements only, and OneIfUsed distinguishes Other from labels.
func TestSets_KindsAndLabels(t *testing.T) {
	set := spantable.KindsOf(spantable.KindClient, spantable.KindUnspecified)
	for k := range spantable.Kinds {
		if set.Has(k) != (k.String() == "client" || k.String() == "unspecified") {
			t.Errorf("%v is in the set: %v", k, set.Has(k))
		}
	}
	if spantable.Other.OneIfUsed() != 0 || spantable.Label(1).OneIfUsed() != 1 ||
		spantable.Label(255).OneIfUsed() != 1 {
		t.Error("a label is wanted unless it is Other")
	}
}
