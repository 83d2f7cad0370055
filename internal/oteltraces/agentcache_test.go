package oteltraces

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestASpanIsWrittenAsIfItWereTheFirst: a translator that remembers spans writes of each body
// what one writes that has met none.
func TestASpanIsWrittenAsIfItWereTheFirst(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	names := append([]string{}, agentNames[1:]...)
	c := translator(t, wantedTags...)
	for range 300 {
		var resources []madeResource
		for range 1 + rnd.IntN(3) {
			var spans []madeSpan
			for range rnd.IntN(40) {
				s := randomSpan(rnd, names[:2+rnd.IntN(len(names)-2)])
				s.state = []string{"", "", "ot=th:8", "ot=th:c"}[rnd.IntN(4)]
				spans = append(spans, s)
			}
			said := sdkResource([]string{"a", "b"}[rnd.IntN(2)])[:1+rnd.IntN(8)]
			if rnd.IntN(20) == 0 {
				said = append(said, attribute{"process.command_line", strings.Repeat("x", mostSaid)})
			}
			resources = append(resources, madeResource{said, [][]madeSpan{spans}})
		}
		body, fresh := request(resources...), translator(t, wantedTags...)
		if err := fresh.Translate(body, false); err != nil {
			t.Fatal(err)
		}
		if err := c.Translate(body, false); err != nil || !bytes.Equal(c.Written(), fresh.Written()) {
			t.Fatalf("%v: written is\n%q, by another\n%q", err, c.Written(), fresh.Written())
		}
		c.Release()
	}
}

// scoped is a request with one span, whose scope has an attribute.
func scoped(a attribute, s madeSpan) []byte {
	scope := submessage(nil, 1, submessage(nil, 3, a.encode()))
	return submessage(nil, 1, submessage(nil, 2, submessage(scope, 2, s.encode())))
}

// TestSpansThatAreAlikeAreWrittenApart: two spans that differ in one of all the things that a
// span is written from are written as each is alone.
func TestSpansThatAreAlikeAreWrittenApart(t *testing.T) {
	base := madeSpan{id: 1, name: "ab", kind: kindClient}
	with := func(change func(*madeSpan)) []byte {
		s := base
		change(&s)
		return request(madeResource{nil, [][]madeSpan{{s}}})
	}
	tagged := func(all ...attribute) []byte { return with(func(s *madeSpan) { s.attributes = all }) }
	of := func(service string) []byte {
		return request(madeResource{[]attribute{{"service.name", service}}, [][]madeSpan{{base}}})
	}
	long := strings.Repeat("x", 600)
	for what, pair := range map[string][2][]byte{
		"the name":                  {with(func(*madeSpan) {}), with(func(s *madeSpan) { s.name = "ac" })},
		"the kind":                  {with(func(*madeSpan) {}), with(func(s *madeSpan) { s.kind = kindServer })},
		"the tracestate":            {with(func(*madeSpan) {}), with(func(s *madeSpan) { s.state = "ot=th:8" })},
		"where the name ends":       {with(func(s *madeSpan) { s.state = "" }), with(func(s *madeSpan) { s.name, s.state = "a", "b" })},
		"the text of a tag":         {tagged(attribute{"peer.service", "a"}), tagged(attribute{"peer.service", "b"})},
		"the tag of a text":         {tagged(attribute{"peer.service", "a"}), tagged(attribute{"env", "a"})},
		"what a tag was written as": {tagged(attribute{"http.status_code", 200}), tagged(attribute{"http.status_code", "200"})},
		"the number of tags":        {tagged(attribute{"env", "a"}), tagged(attribute{"env", "a"}, attribute{"peer.service", "b"})},
		"the resource":              {of("a"), of("b")},
		"the scope":                 {scoped(attribute{"peer.service", "a"}, base), scoped(attribute{"peer.service", "b"}, base)},
		"whose tag it is": {
			tagged(attribute{"service.name", "a"}), scoped(attribute{"service.name", "a"}, base),
		},
		"what is longer than is remembered": {
			tagged(attribute{"graphql.operation.name", long}, attribute{"peer.service", "a"}), tagged(attribute{"graphql.operation.name", long}, attribute{"peer.service", "b"}),
		},
		"what is too long": {tagged(attribute{"peer.service", long + "a"}), tagged(attribute{"peer.service", long + "b"})},
	} {
		c := translator(t, wantedTags...)
		var alone []string
		for _, body := range pair {
			fresh := translator(t, wantedTags...)
			if err := fresh.Translate(body, false); err != nil {
				t.Fatal(err)
			}
			alone = append(alone, string(fresh.Written()))
			if err := c.Translate(body, false); err != nil || string(c.Written()) != alone[len(alone)-1] {
				t.Errorf("%s: %v: written is\n%q, alone\n%q", what, err, c.Written(), alone[len(alone)-1])
			}
		}
		if alone[0] == alone[1] {
			t.Errorf("%s: both are written %q", what, alone[0])
		}
	}
}

// TestTheHostIsTheIngests: what a resource says of it, in the order in which the ingest asks.
func TestTheHostIsTheIngests(t *testing.T) {
	for want, said := range map[string][]attribute{
		"":          {},
		"literal":   {{"host", "literal"}, {"datadog.host.name", "custom"}, {"host.name", "h"}},
		"5":         {{"host", 5}, {"host.name", "h"}},
		"custom":    {{"datadog.host.name", "custom"}, {"cloud.provider", "aws"}, {"host.id", "i-1"}, {"host.name", "h"}},
		"i-1":       {{"cloud.provider", "aws"}, {"host.id", "i-1"}, {"host.name", "h"}, {"k8s.node.name", "n"}},
		"vm.p":      {{"cloud.provider", "gcp"}, {"host.name", "vm.c.p.internal"}, {"cloud.account.id", "p"}, {"host.id", "4"}},
		"vm.x.p":    {{"cloud.provider", "gcp"}, {"host.name", "vm.x"}, {"cloud.account.id", "p"}},
		"id":        {{"cloud.provider", "azure"}, {"host.id", "id"}, {"host.name", "h"}},
		"n-cluster": {{"k8s.node.name", "n"}, {"k8s.cluster.name", "cluster"}, {"host.name", "pod"}},
		"n":         {{"k8s.node.name", "n"}, {"host.id", "id"}, {"host.name", "pod"}},
		"id2":       {{"host.id", "id2"}, {"host.name", "h"}},
		"h":         {{"host.name", "h"}, {"service.name", "s"}},
	} {
		checkHost(t, want, said...)
	}
	for _, said := range [][]attribute{
		{{"host.name", "localhost"}},
		{{"aws.ecs.launchtype", "fargate"}, {"host.name", "h"}},
		{{"cloud.provider", "aws"}, {"host.name", "h"}},
		{{"cloud.provider", "gcp"}, {"host.name", "h"}},
		{{"cloud.platform", "gcp_cloud_run"}, {"host.name", "h"}},
	} {
		checkHost(t, "", said...)
	}
}

func checkHost(t *testing.T, want string, said ...attribute) {
	t.Helper()
	for _, p := range payloadsOf(t, translator(t), madeResource{said, [][]madeSpan{{{id: 1}}}}) {
		if p.Host != want {
			t.Errorf("%v: the host is %q, want %q", said, p.Host, want)
		}
	}
}

// TestTranslatorsKeepTheirPromise: whatever a body is made of, translating it makes a
// translator hold no more than its part of the budget.
func TestTranslatorsKeepTheirPromise(t *testing.T) {
	for _, length := range []int{64 << 10, 1 << 20, 16 << 20} {
		for name, body := range greedy(length) {
			c := translator(t, wantedTags...)
			before := inUse()
			err := c.Translate(body, false)
			held := inUse() - before
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10, TranslatorBytes(len(body))>>10, err)
			if held > TranslatorBytes(len(body)) || len(c.Written()) > TranslatedBytes(len(body)) {
				t.Errorf("%d bytes of %s made it hold %d and write %d", len(body), name, held, len(c.Written()))
			}
			if c.Translate(body, false); cap(c.written) > 2*TranslatedBytes(len(body)) {
				t.Error(fmt.Sprint(cap(c.written), " bytes are kept"))
			}
		}
	}
}
