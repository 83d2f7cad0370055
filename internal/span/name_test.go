package span

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// The expected names were computed with the Datadog agent's own code, which was also compared with three million random names.
func TestNormalize_NamesAsInAgent(t *testing.T) {
	for _, test := range []struct{ name, service, operation string }{
		{"", "unnamed-go-service", "unnamed_operation"},
		{"shop", "shop", "shop"},
		{"Shop Front", "shop_front", "Shop_Front"},
		{"s+1h", "s_1h", "s_1h"},
		{"http.request", "http.request", "http.request"},
		{"http..request", "http..request", "http..request"},
		{"a._b", "a._b", "a._b"},
		{"a_.b", "a_.b", "a.b"},
		{"a__b", "a_b", "a_b"},
		{"a+_b_", "a_b", "a_b"},
		{"_lead", "_lead", "lead"},
		{"9lives", "9lives", "lives"},
		{"9", "9", "unnamed_operation"},
		{"+++", "unnamed-go-service", "unnamed_operation"},
		{"ÉCLAIR", "éclair", "CLAIR"},
		{"İstanbul", "İstanbul", "stanbul"},
		{"支付", "支付", "unnamed_operation"},
		{"a🍣b", "a_b", "a_b"},
		{"a🍣", "a", "a"},
		{"grpc:///x-y", "grpc:///x-y", "grpc_x_y"},
		{strings.Repeat("x", 150), strings.Repeat("x", 100), strings.Repeat("x", 100)},
	} {
		k := Key{Service: test.name, Operation: test.name}
		k.Normalize("go")
		if k.Service != test.service || k.Operation != test.operation {
			t.Errorf("%q: service %q, operation %q; want %q, %q", test.name, k.Service, k.Operation,
				test.service, test.operation)
		}
	}
	k := Key{}
	k.Normalize("")
	if k.Service != "unnamed-service" || k.Resource != "unnamed_operation" {
		t.Errorf("nothing at all became %+v", k)
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		in    string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc"},
		{"aé", 2, "a"},
		{"aé", 3, "aé"},
		{"a\xff", 9, "a\uFFFD"},
		{"a\xff", 3, "a"},
		{"\xff\xfe\xfd", 9, "\uFFFD"},
		{strings.Repeat("é", 500_000), 5, "éé"},
	} {
		if got := Text(test.in, test.limit); got != test.want {
			t.Errorf("%.20q to %d: %q, want %q", test.in, test.limit, got, test.want)
		}
	}
}

// For any key, the normalized key is valid UTF-8 and within all limits, Normalize reports whether it
// changed the key, and a second call changes nothing.
func TestNormalize_Properties(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	text := func() string {
		b := make([]byte, rnd.IntN(1+rnd.IntN(300)))
		for i := range b {
			b[i] = "abcXYZ019_.:-/ \xff\xc3\xa9\xe4\xb8\xad"[rnd.IntN(21)]
		}
		return string(b)
	}
	for range 3_000 {
		k := Key{
			Service: text(), Operation: text(), Resource: text(), Type: text(), Kind: text(),
			HTTPMethod: text(), HTTPEndpoint: text(), GRPCStatus: text(), ServiceSource: text(),
			TraceRoot: TraceRoot(rnd.IntN(5)),
		}
		for range rnd.IntN(70) {
			k.PeerTags = append(k.PeerTags, text())
		}
		for range rnd.IntN(6) {
			k.AdditionalTags = append(k.AdditionalTags, text())
		}
		before := string(k.AppendCanonical(nil))
		tags := len(k.PeerTags)
		changed := k.Normalize("go")
		after := string(k.AppendCanonical(nil))
		if !changed && before != after && tags < 2 && len(k.AdditionalTags) < 2 {
			t.Fatalf("%q became %q and was not reported as changed", before, after)
		}
		if k.Normalize("go") || string(k.AppendCanonical(nil)) != after {
			t.Fatalf("%q changed again, to %q", after, k.AppendCanonical(nil))
		}
		for _, s := range append([]string{k.Service, k.Operation, k.Resource, k.Type, k.Kind},
			k.PeerTags...) {
			if !utf8.ValidString(s) || len(s) > MaxResource {
				t.Fatalf("%q is not bounded text", s)
			}
		}
		if len(k.PeerTags) > MaxPeerTags || len(k.AdditionalTags) > MaxAdditionalTags ||
			k.TraceRoot > TraceRootFalse {
			t.Fatalf("%+v is over its bounds", k)
		}
	}
}

// Two different keys never have the same encoding.
func TestCanonical_DistinguishesKeys(t *testing.T) {
	keys := []Key{
		{},
		{Service: "a"},
		{Operation: "a"},
		{Resource: "a"},
		{Type: "a"},
		{Kind: "a"},
		{HTTPMethod: "a"},
		{HTTPEndpoint: "a"},
		{GRPCStatus: "a"},
		{ServiceSource: "a"},
		{TraceRoot: TraceRootTrue},
		{TraceRoot: TraceRootFalse},
		{Synthetics: true},
		{HTTPStatus: 200},
		{HTTPStatus: 1},
		{PeerTags: []string{"a"}},
		{AdditionalTags: []string{"a"}},
		{PeerTags: []string{"a", "b"}},
		{PeerTags: []string{"ab"}},
		{PeerTags: []string{"a"}, AdditionalTags: []string{"b"}},
		{Service: "ab"},
		{Service: "a", Operation: "b"},
		{PeerTags: []string{""}},
	}
	seen := map[string]int{}
	for i := range keys {
		canonical := string(keys[i].AppendCanonical(nil))
		if j, twice := seen[canonical]; twice {
			t.Errorf("%+v and %+v are the same", keys[i], keys[j])
		}
		seen[canonical] = i
	}
}

// The test checks names and texts in which a single byte, at any position, has any value.
func TestNormalize_EightBytesAtATime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(20, 11))
	const good = "abcxyz019.-/:_AZ"
	for range 300_000 {
		text := make([]byte, rnd.IntN(110))
		alphabet := good[:1+rnd.IntN(len(good))]
		for i := range text {
			text[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		for range min(len(text), rnd.IntN(3)) {
			text[rnd.IntN(len(text))] = byte(rnd.Uint32())
		}
		name := string(text)
		if got, want := IsServiceName(name), isServiceByBytes(name); got != want {
			t.Fatalf("%q is the name of a service: %t", name, got)
		}
		if got, want := isOperationName(name), isOperationByBytes(name); got != want {
			t.Fatalf("%q is the name of an operation: %t", name, got)
		}
	}
}

func isServiceByBytes(name string) bool {
	other := func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-/:", r) }
	return name != "" && len(name) <= MaxService && strings.IndexFunc(name, other) < 0
}

func isOperationByBytes(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for i := range len(name) {
		switch {
		case strings.IndexByte(letters, name[i]) >= 0, i > 0 && strings.IndexByte("0123456789", name[i]) >= 0:
		case i == 0, name[i] != '.' && name[i] != '_', name[i-1] == '_':
			return false
		}
	}
	return name != "" && len(name) <= MaxOperation && name[len(name)-1] != '_'
}
