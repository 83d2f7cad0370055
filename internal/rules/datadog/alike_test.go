package datadog_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// alike is a span of a v1.0 body, with the fields that other tests do not vary.
type alike struct {
	service, name string
	kind          int
	parent        int
	origin        string // origin of its trace
	attributes    []any  // name, type and value of each; for a text only the text
}

const (
	server = 2
	client = 3
)

// bodyOfAlike returns a body with one trace per span.
func bodyOfAlike(t *testing.T, spans ...alike) []byte {
	t.Helper()
	s := streamedV1{"": 0}
	var chunks []any
	for i := range spans {
		span := &spans[i]
		origin, service, name, resource := s.of(span.origin), s.of(span.service), s.of(span.name), s.of("GET /")
		attributes := []any{s.of("_dd.measured"), 3, 1.0}
		for _, v := range span.attributes {
			if text, ok := v.(string); ok {
				v = s.of(text)
			}
			attributes = append(attributes, v)
		}
		chunks = append(chunks, ordered{1, 1, 2, origin, 4, []any{ordered{
			1, service, 2, name, 3, resource, 4, uint64(7), 5, span.parent, 6, uint64(1e18), 7, uint64(1),
			8, false, 9, attributes, 16, span.kind,
		}}})
	}
	return encode(t, ordered{11, chunks})
}

// keysOf returns the keys of a body's spans, in order.
func keysOf(t *testing.T, c *datadog.Counter, body []byte, lang string,
	policy *datadog.Policy,
) (keys [][]byte) {
	t.Helper()
	if err := c.Count(decode.FormatV1, body, lang, true, policy); err != nil {
		t.Fatal(err)
	}
	for _, one := range countedBy(t, c) {
		keys = append(keys, []byte(one.key))
	}
	return keys
}

// TestKey_SimilarSpans counts pairs of spans that differ slightly in one part of the
// key. The second span must have the key that it has without the first.
func TestKey_SimilarSpans(t *testing.T) {
	policy := policyOf(t)
	long := strings.Repeat("10.0.0.1,", rules.MaxFingerprint/9+9) // normalized to one word in the key
	database := uint64(policy.Names().Find([]byte("db.name")))
	// a database name of one byte
	head := string(binary.LittleEndian.AppendUint64(nil, 1<<16|uint64(spantable.TypeText)<<8|database))
	for what, pair := range map[string][2]alike{
		"where one text ends and the next begins": {{service: "ab", name: "c"}, {service: "a", name: "bc"}},
		"whether it is a root":                    {{parent: 0}, {parent: 9}},
		"the kind":                                {{kind: server}, {kind: client}},
		"whether its trace is synthetic":          {{origin: ""}, {origin: "synthetics-browser"}},
		"the label of a tag": {
			{kind: client, attributes: []any{"db.name", 1, "a"}},
			{kind: client, attributes: []any{"db.type", 1, "a"}},
		},
		"the number of a tag": {
			{kind: client, attributes: []any{"db.name", 4, 1}},
			{kind: client, attributes: []any{"db.name", 4, 2}},
		},
		"what a tag was written as": {
			{kind: client, attributes: []any{"db.name", 4, 1}},
			{kind: client, attributes: []any{"db.name", 2, true}},
		},
		"the length of a tag": {
			{kind: client, attributes: []any{"db.instance", 1, "x", "db.name", 1, "y"}},
			{kind: client, attributes: []any{"db.instance", 1, "x" + head + "y"}},
		},
		"a text that is too long to be remembered": {
			{kind: client, attributes: []any{"db.name", 1, long + "y"}},
			{kind: client, attributes: []any{"db.name", 1, long + "z"}},
		},
	} {
		var want [][]byte
		for i := range pair {
			if pair[i].service == "" {
				pair[i].service, pair[i].name = "shop", "op"
			}
			want = append(want, keysOf(t, datadog.NewCounter(), bodyOfAlike(t, pair[i]), "go", policy)...)
		}
		if len(want) != 2 || bytes.Equal(want[0], want[1]) {
			t.Fatalf("%s: the spans have the keys %q", what, want)
		}
		if got := keysOf(t, datadog.NewCounter(), bodyOfAlike(t, pair[0], pair[1]), "go",
			policy); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s: after one another the spans have the keys\n%q, alone\n%q", what, got, want)
		}
	}
}

// TestKey_DependsOnLanguageAndPolicy: a span without a service has different keys for two languages,
// and so has a tag for two agents that assign it the same number.
func TestKey_DependsOnLanguageAndPolicy(t *testing.T) {
	policyWith := func(peer string) *datadog.Policy {
		policy, ok := datadog.NewPolicy([]string{peer}, nil, nil, datadog.Labels{})
		if !ok {
			t.Fatal("refused")
		}
		return policy
	}
	type source struct {
		span   alike
		lang   string
		policy *datadog.Policy
	}
	same := policyWith("db.name")
	for what, pair := range map[string][2]source{
		"language": {{alike{name: "op"}, "go", same}, {alike{name: "op"}, "python", same}},
		"policy": {
			{
				alike{service: "shop", name: "op", kind: client, attributes: []any{"db.name", 1, "a"}},
				"go",
				same,
			},
			{
				alike{service: "shop", name: "op", kind: client, attributes: []any{"out.host", 1, "a"}},
				"go",
				policyWith("out.host"),
			},
		},
	} {
		c := datadog.NewCounter()
		var got [][]byte
		for _, s := range pair {
			body := bodyOfAlike(t, s.span)
			got = append(got, keysOf(t, c, body, s.lang, s.policy)...)
			if alone := keysOf(t, datadog.NewCounter(), body, s.lang, s.policy); !bytes.Equal(alone[0],
				got[len(got)-1]) {
				t.Errorf("%s: the key is %q, and %q after another %s", what, alone[0], got[len(got)-1], what)
			}
		}
		if bytes.Equal(got[0], got[1]) {
			t.Errorf("%s: both spans have the key %q", what, got[0])
		}
	}
}
