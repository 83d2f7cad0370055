package oteltraces

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// nested is a value with as many messages around it.
func nested(depth int) []byte {
	value := submessage(nil, 1, []byte("x"))
	for ; depth > 0; depth -= 2 {
		value = submessage(nil, 5, submessage(nil, 1, value))
	}
	return value
}

// TestWhatIsNotRead: each of these in a request that is read without it.
func TestWhatIsNotRead(t *testing.T) {
	c := NewCounter()
	read := func(s madeSpan, more ...byte) error {
		return c.Count(append(request(madeResource{sdkResource("s"), [][]madeSpan{{s}}}), more...), standard())
	}
	for name, more := range map[string][]byte{
		"a tag of two bytes": {0x80}, "a field 0": {0x02, 0}, "a field beyond all": {0xfa, 0xff, 0xff, 0xff, 0x1f, 0}, "a way of writing that there is not": {0x0f},
		"a group": {0x0b, 0x0c}, "the end of a group": {0x0c}, "a number without end": {0x08, 0x80}, "a number of eleven bytes": append([]byte{8}, bytes.Repeat([]byte{0x80}, 10)...),
		"a message that is cut": {0x0a, 5, 0}, "a length beyond all": append([]byte{0x0a}, protowire.AppendVarint(nil, 1<<63)...),
		"eight bytes that are seven": {0x09, 0, 0, 0, 0, 0, 0, 0}, "four bytes that are three": {0x0d, 0, 0, 0}, "a resource that is cut": {0x0a, 2, 0x0a, 1},
		"a resource in two parts":  submessage(nil, 1, bytes.Repeat(submessage(nil, 1, submessage(nil, 1, nil)), 2)),
		"attributes of a resource": submessage(nil, 1, submessage(nil, 1, submessage(nil, 1, []byte{0x0a, 5}))),
		"an entity":                submessage(nil, 1, submessage(nil, 1, submessage(nil, 3, []byte{0x0a, 5}))),
		"a list of spans":          submessage(nil, 1, submessage(nil, 2, []byte{0x12, 5})),
		"a scope":                  submessage(nil, 1, submessage(nil, 2, submessage(nil, 1, []byte{0x0a, 5}))),
		"a scope's attribute":      submessage(nil, 1, submessage(nil, 2, submessage(nil, 1, submessage(nil, 3, []byte{0x0a, 5})))),
	} {
		if err := read(madeSpan{}, more...); !errors.Is(err, ErrUnread) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, more := range map[string][]byte{
		"a trace's id of 15 bytes": submessage(nil, 1, make([]byte, 15)), "a span's of 7": submessage(nil, 2, make([]byte, 7)), "a parent's of 9": submessage(nil, 4, make([]byte, 9)),
		"a value that is shorter than it says": submessage(nil, 9, []byte{0x0a, 1, 'x', 0x12, 3, 0x0a, 3, 'a', 'b', 'c'}),
		"a list in pairs that is too deep":     submessage(nil, 9, submessage(nil, 2, submessage(nil, 6, submessage(nil, 1, submessage(nil, 2, nested(MaxDepth-2)))))),
		"a field":                              {0x0a, 5}, "an attribute": submessage(nil, 9, []byte{0x0a, 5}), "a value": submessage(nil, 9, submessage(nil, 2, []byte{0x0a, 5})),
		"a status": submessage(nil, 15, []byte{0x18}), "an event": submessage(nil, 11, []byte{0x0a, 5}), "a link": submessage(nil, 13, []byte{0x0a, 5}),
		"an event's attribute": submessage(nil, 11, submessage(nil, 3, []byte{0x0a, 5})), "a link's": submessage(nil, 13, submessage(nil, 4, []byte{0x0a, 5})),
		"a list in a value":            submessage(nil, 9, submessage(nil, 2, submessage(nil, 5, submessage(nil, 1, []byte{0x0a, 5})))),
		"pairs in a value":             submessage(nil, 9, submessage(nil, 2, submessage(nil, 6, submessage(nil, 1, []byte{0x0a, 5})))),
		"what is too deep":             submessage(nil, 9, submessage(nil, 2, nested(MaxDepth+2))),
		"what is too deep in an event": submessage(nil, 11, submessage(nil, 3, submessage(nil, 2, nested(MaxDepth)))),
	} {
		if err := read(madeSpan{more: more}); !errors.Is(err, ErrUnread) {
			t.Errorf("%s in a span: %v", name, err)
		}
	}
	for name, more := range map[string][]byte{
		"nothing": nil, "a field that nobody knows": submessage(nil, 1000, []byte{0xff}), "a name that is a number": {0x28, 5},
		"ids that are not there": submessage(submessage(submessage(nil, 1, nil), 2, nil), 4, nil), "what is deep": submessage(nil, 9, submessage(nil, 2, nested(MaxDepth))),
		"an attribute of nothing": submessage(nil, 9, nil), "a long number": {0x30, 0x82, 0x80, 0}, "text that is no UTF-8": submessage(nil, 5, []byte{0xff}),
	} {
		if err := read(madeSpan{more: more}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAttributesOfAnyFormAreRead as those of the common one: a value before its name, a long
// name or text, names and values twice.
func TestAttributesOfAnyFormAreRead(t *testing.T) {
	key, value := func(s string) []byte { return submessage(nil, 1, []byte(s)) }, func(b []byte) []byte { return submessage(nil, 2, b) }
	text := func(s string) []byte { return submessage(nil, 1, []byte(s)) }
	long := strings.Repeat("x", 150)
	for name, test := range map[string]struct {
		attribute []byte
		want      string
	}{
		"as it is":          {append(key("peer.service"), value(text("a"))...), "a"},
		"the value first":   {append(value(text("a")), key("peer.service")...), "a"},
		"a long value":      {append(key("peer.service"), value(text(long))...), long},
		"names twice":       {bytes.Join([][]byte{key("x"), value(text("a")), key("peer.service")}, nil), "a"},
		"values twice":      {bytes.Join([][]byte{key("peer.service"), value(text("a")), value(text("b"))}, nil), "b"},
		"a value and none":  {bytes.Join([][]byte{key("peer.service"), value(text("a")), value(nil)}, nil), "a"},
		"two in one":        {append(key("peer.service"), value(append(text("a"), text("b")...))...), "b"},
		"a number, a text":  {append(key("peer.service"), value(append([]byte{0x18, 5}, text("b")...))...), "b"},
		"a text, a number":  {append(key("peer.service"), value(append(text("b"), 0x18, 0x85, 0))...), "5"},
		"a list":            {append(key("peer.service"), value(append(text("b"), 0x2a, 0))...), ""},
		"an index":          {append(key("peer.service"), value(append(text("b"), 0x40, 0))...), ""},
		"a yes of 2":        {append(key("peer.service"), value([]byte{0x10, 2})...), "true"},
		"with more":         {bytes.Join([][]byte{key("peer.service"), value(text("a")), {0x18, 1}}, nil), "a"},
		"a name and no end": {append(key("peer.service"), value(append(text("a"), 0x98, 6, 1))...), "a"},
	} {
		for _, around := range [][]byte{nil, submessage(nil, 9, append(key("db.namespace"), value(text("n"))...))} {
			more := bytes.Join([][]byte{around, submessage(nil, 9, test.attribute), around}, nil)
			tags := only(t, madeSpan{more: more}, standard()).key.PeerTags
			if around != nil {
				if len(tags) == 0 || tags[0] != "db.namespace:n" {
					t.Errorf("%s: %q", name, tags)
					continue
				}
				tags = tags[1:]
			}
			if got := strings.Join(tags, ","); got != "peer.service:"+test.want && (test.want != "" || got != "") {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// TestNumbersAreWrittenAsInJSON, which is how OpenTelemetry writes them as text.
func TestNumbersAreWrittenAsInJSON(t *testing.T) {
	for _, n := range []float64{0, 1, -1.5, 1e20, 1e21, -1e21, 1e-6, 9.9e-7, 1e-7, 1e-10, 1.5e300, 5e-324, 1 << 53, 0.1} {
		want, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendNumber(nil, n)); got != string(want) {
			t.Errorf("%v is written as %s, want %s", n, got, want)
		}
	}
	if got := string(appendNumber(appendNumber(nil, math.NaN()), math.Inf(-1))); got != "NaN-Inf" {
		t.Errorf("%s", got)
	}
}

// TestAResourceMayStandBehindItsSpans.
func TestAResourceMayStandBehindItsSpans(t *testing.T) {
	spans := submessage(nil, 2, submessage(nil, 2, madeSpan{name: "x"}.encode()))
	said := submessage(nil, 1, submessage(nil, 1, attribute{"service.name", "shop"}.encode()))
	for _, content := range [][]byte{append(slices.Clone(said), spans...), append(slices.Clone(spans), said...)} {
		if got := countedOf(t, NewCounter(), submessage(nil, 1, content), standard()); len(got) != 1 || got[0].origin.Service != "shop" {
			t.Errorf("%+v", got)
		}
	}
}

// TestNamesAreFound, each of its table, and no other that is like it.
func TestNamesAreFound(t *testing.T) {
	names := []string{"", "a", "ab", "abc", "abcd", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgh-1-abcdefgh", "abcdefgh-2-abcdefgh", "aab"}
	names = append(names, attributeNames[1:]...)
	table := newNameTable(names)
	for i, name := range names[1:] {
		if at := table.find([]byte(name)); int(at) != i+1 {
			t.Errorf("%q is found at %d, not at %d", name, at, i+1)
		}
		for _, other := range []string{name + "x", "x" + name, name[1:], name[:len(name)/2] + "~" + name[len(name)/2:], strings.ToUpper(name)} {
			if at := table.find([]byte(other)); (at != 0) != slices.Contains(names[1:], other) {
				t.Errorf("%q is found at %d", other, at)
			}
		}
	}
	if table.find(nil) != 0 {
		t.Error("no name is one")
	}
}

// TestAWarmCounterAllocatesNothing: neither for spans, nor for what goes on of them.
func TestAWarmCounterAllocatesNothing(t *testing.T) {
	body, policy, c := webRequest(100), standard(), NewCounter()
	k, left := &Keeping{Share: 0.3, Errors: true}, []byte(nil)
	round := func() {
		if err := c.Count(body, policy); err != nil {
			t.Fatal(err)
		}
		for range c.Batches {
		}
		left, _, _ = leftOf(&c.walked, left[:0], k)
		if c = c.Next(); c == nil {
			t.Fatal("gone")
		}
	}
	for range 3 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations a body of 400 spans", n)
	}
}

// inUse is the memory of the heap and of the stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// greedy are bodies of that length which are made of what costs most of ours.
func greedy(length int) map[string][]byte {
	fill := func(one []byte) []byte { return bytes.Repeat(one, length/len(one)) }
	in := func(spans []byte) []byte { return submessage(nil, 1, submessage(nil, 2, spans)) }
	tag := submessage(nil, 9, attribute{"db.name", ""}.encode())
	named := submessage(nil, 2, madeSpan{name: strings.Repeat("x", 600), trace: 1, state: "ot=rv:ffffffffffffff"}.encode())
	return map[string][]byte{
		"spans":     in(fill(submessage(nil, 2, nil))),
		"tags":      in(submessage(nil, 2, fill(tag))),
		"resources": fill(submessage(nil, 1, nil)),
		"scopes":    submessage(nil, 1, fill(submessage(nil, 2, nil))),
		"names":     in(fill(named)),
		"service": append(submessage(nil, 1, bytes.Join([][]byte{
			submessage(nil, 1, submessage(nil, 1, attribute{"service.name", strings.Repeat("s", length/4)}.encode())),
			submessage(nil, 2, bytes.Repeat(submessage(nil, 2, nil), MaxSpans(length/4))),
		}, nil)), submessage(nil, 1, nil)...),
	}
}

// TestCountersKeepTheirPromise: whatever a body is made of, counting it, and saying what goes
// on, makes a counter hold no more than its part of the budget.
func TestCountersKeepTheirPromise(t *testing.T) {
	policy := standard()
	for _, length := range []int{64 << 10, 1 << 20, 16 << 20} {
		for name, body := range greedy(length) {
			c := NewCounter()
			before := inUse()
			err := c.Count(body, policy)
			left, _, _ := leftOf(&c.walked, make([]byte, 0, KeptBytes(len(body))), &Keeping{Share: 0.5})
			isWithin := len(left) <= KeptBytes(len(body))
			left = nil
			held := inUse() - before
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10, CounterBytes(len(body))>>10, err)
			if held > CounterBytes(len(body)) || !isWithin {
				t.Errorf("%d bytes of %s made it hold %d", len(body), name, held)
			}
			if err != nil && !errors.Is(err, ErrTooMuch) {
				t.Error(err)
			}
			runtime.KeepAlive(c)
			runtime.KeepAlive(body)
		}
	}
}

// TestALimitIsOfTheBodyAlone: a body may hold as many spans as its limit says, and not one
// more, whatever the counter has met.
func TestALimitIsOfTheBodyAlone(t *testing.T) {
	c, policy := NewCounter(), standard()
	spansOf := func(n int, span []byte) []byte {
		return submessage(nil, 1, submessage(nil, 2, bytes.Repeat(submessage(nil, 2, span), n)))
	}
	within := 0
	for _, spans := range rand.New(rand.NewPCG(7, 8)).Perm(100) {
		spans += 4220
		body := spansOf(spans, nil)
		err := c.Count(body, policy)
		isWithin := spans <= MaxSpans(len(body))
		if (err == nil) != isWithin || !isWithin && !errors.Is(err, ErrTooMuch) {
			t.Errorf("%d spans of %d bytes, at most %d: %v", spans, len(body), MaxSpans(len(body)), err)
		}
		if isWithin {
			within++
		}
	}
	if within == 0 || within == 100 {
		t.Errorf("%d of 100 bodies are within their limit", within)
	}
	bodies, tag := greedy(1<<20), attribute{"db.name", ""}.encode()
	bodies["tags of spans"] = spansOf(6000, bytes.Repeat(submessage(nil, 9, tag), 3))
	bodies["tags of a resource"] = submessage(nil, 1, submessage(nil, 1, bytes.Repeat(submessage(nil, 1, attribute{"host.name", ""}.encode()), 20000)))
	for _, name := range []string{"tags", "tags of spans", "tags of a resource", "resources", "scopes", "service"} {
		if err := c.Count(bodies[name], policy); !errors.Is(err, ErrTooMuch) {
			t.Errorf("more %s than there may be were counted: %v", name, err)
		}
	}
}
