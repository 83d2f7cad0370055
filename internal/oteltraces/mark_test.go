package oteltraces

import (
	"bytes"
	"testing"
)

// goldenMark is the attribute as every encoder of protobuf writes it.
const goldenMark = "\n\x1c\n\x12_dd.stats_computed\x12\x06\n\x04true"

// marked is what goes on of a body, where that says that it is counted.
func marked(t *testing.T, body []byte, k *Keeping) []byte {
	t.Helper()
	c := NewCounter()
	if err := c.Count(body, standard()); err != nil {
		t.Fatal(err)
	}
	left := c.Measure(k, true)
	if left.IsWhole {
		return body
	}
	before := bytes.Clone(body)
	got := c.AppendLeft(nil)
	if len(got) != left.Size || !bytes.Equal(body, before) {
		t.Fatalf("%d bytes were measured, %d written", left.Size, len(got))
	}
	return got
}

// TestResourcesSayThatTheyAreCounted: each with spans does so once, and nothing else of a body
// changes, wherever the resource stands in it.
func TestResourcesSayThatTheyAreCounted(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	unknown := func(text string) []byte { return submessage(nil, 100, []byte(text)) }
	service := submessage(nil, 1, attribute{"service.name", "shop"}.encode())
	says := func(v any) []byte { return submessage(nil, 1, attribute{statsComputed, v}.encode()) }
	resource := func(content ...[]byte) []byte { return submessage(nil, 1, join(content...)) }
	scope := submessage(nil, 2, submessage(nil, 2, madeSpan{trace: 1 << 55, name: "here"}.encode()))
	ends := submessage(nil, 2, submessage(nil, 2, madeSpan{trace: 1, name: "there"}.encode()))
	raised := submessage(madeSpan{trace: 1 << 55, name: "here"}.encode(), 3, []byte("ot=th:8"))
	kept := submessage(nil, 2, submessage(nil, 2, raised))
	empty := submessage(nil, 2, nil)
	of := func(content ...[]byte) []byte { return submessage(nil, 1, join(content...)) }
	mark := []byte(goldenMark)
	half := &Keeping{Share: 0.5}
	for name, test := range map[string]struct {
		body, want []byte
		k          *Keeping
	}{
		"before its scopes":          {of(resource(service), scope), of(resource(service, mark), scope), nil},
		"behind its scopes":          {of(scope, resource(service), unknown("x")), of(scope, resource(service, mark), unknown("x")), nil},
		"between its scopes":         {of(scope, unknown("x"), resource(service), scope), of(scope, unknown("x"), resource(service, mark), scope), nil},
		"a resource that is empty":   {of(resource(), scope), of(resource(mark), scope), nil},
		"no resource":                {of(unknown("x"), scope), of(resource(mark), unknown("x"), scope), nil},
		"no spans":                   {of(resource(service), empty), of(resource(service), empty), nil},
		"it says so already":         {of(resource(says("true"), service), scope), of(resource(says("true"), service), scope), nil},
		"it says false":              {of(resource(says("false"), service), scope), of(resource(service, mark), scope), nil},
		"it says so in another form": {of(resource(says(true), service), scope), of(resource(service, mark), scope), nil},
		"it says both":               {of(resource(says("true"), service, says(false)), scope), of(resource(service, mark), scope), nil},
		"it says both in turn":       {of(resource(says(false), service, says("true")), scope), of(resource(service, mark), scope), nil},
		"unknown fields":             {of(resource(unknown("x"), service), scope), of(resource(unknown("x"), service, mark), scope), nil},
		"two resources": {
			join(unknown("1"), of(resource(service), scope), unknown("2"), of(resource(), scope), unknown("3")),
			join(unknown("1"), of(resource(service, mark), scope), unknown("2"), of(resource(mark), scope), unknown("3")), nil,
		},
		"some of it goes on": {
			join(of(resource(service), scope, ends), of(resource(service), ends), of(resource(service), empty)),
			join(of(resource(service, mark), kept), of(resource(service), empty)), half,
		},
		"all of it goes on": {of(resource(service), scope), of(resource(service, mark), kept), half},
	} {
		if got := marked(t, test.body, test.k); !bytes.Equal(got, test.want) {
			t.Errorf("%s: goes on\n%q, want\n%q", name, got, test.want)
		}
		if twice := marked(t, marked(t, test.body, nil), nil); !bytes.Equal(twice, marked(t, test.body, nil)) {
			t.Errorf("%s: what says so says so again", name)
		}
	}
}

// TestWhatOthersHaveCountedIsNotMarked: a resource that said so keeps its words, whatever they are.
func TestWhatOthersHaveCountedIsNotMarked(t *testing.T) {
	c := translator(t)
	spans := [][]madeSpan{{{name: "x", id: 1}}}
	theirs, ours := madeResource{[]attribute{{statsComputed, "yes"}}, spans}, madeResource{nil, spans}
	body := request(theirs, ours)
	if err := c.Translate(body, false); err != nil {
		t.Fatal(err)
	}
	if left := c.Measure(nil, true); left.IsWhole {
		t.Fatal("nothing is marked")
	}
	got := c.AppendLeft(nil)
	if alone := request(theirs); !bytes.HasPrefix(got, alone) || bytes.Count(got, []byte(goldenMark)) != 1 {
		t.Errorf("goes on %q", got)
	}
}
