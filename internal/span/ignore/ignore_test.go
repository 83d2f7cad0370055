package ignore_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
)

// list parses rules that must be valid.
func list(t *testing.T, rules ...string) *ignore.List {
	t.Helper()
	l, err := ignore.Parse(rules)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The test checks each rule with a key that has all labels, and with one that has only the required labels.
func TestRule_ComparesItsField(t *testing.T) {
	full := &span.Key{
		Service: "test-shop", Operation: "http.server.request", Resource: "GET /healthz", Type: "web",
		Kind: "server", HTTPStatus: 204, HTTPMethod: "GET", HTTPEndpoint: "/healthz", GRPCStatus: "5",
		ServiceSource: "kafka", PeerTags: []string{"db.namespace:orders", "peer.service:a:b"},
		AdditionalTags: []string{"tenant.id:acme"},
	}
	bare := &span.Key{Service: "shop", Operation: "web", Resource: "web"}
	for rule, isFull := range map[string]bool{
		"service=~^test-":      true,
		"service=test-shop":    true,
		"service=test":         false,
		"service=~^test-shop.": false,
		"operation=~server":    true, "resource=GET /healthz": true, "resource=GET /health": false,
		"type=web": true, "span.kind=server": true, "span_kind=server": true, "span.kind=client": false,
		"http_status=204": true, "http_status=~^2": true, "http_method=GET": true,
		"http_endpoint=/healthz": true, "grpc_status=5": true, "service_source=kafka": true,
		"attribute.http.route=/healthz": true, "attribute.http.request.method=GET": true,
		"attribute.http.response.status_code=204": true, "attribute.rpc.grpc.status_code=5": true,
		"attribute.db.namespace=orders": true, "attribute.db.namespace=order": false,
		"attribute.peer.service=a:b": true, "attribute.tenant.id=~^ac": true, "attribute.tenant=acme": false,
		"attribute.url.path=~.": false, "resource=~^$": false,
	} {
		if got := list(t, rule).MatchesKey(full); got != isFull {
			t.Errorf("%s of a key with all labels: %t", rule, got)
		}
		if list(t, rule).MatchesKey(bare) {
			t.Errorf("%s is about a key without that label", rule)
		}
	}
	if (*ignore.List)(nil).MatchesKey(full) || (*ignore.List)(nil).MatchesAttribute("a", "b") {
		t.Error("no rules ignore something")
	}
}

// A span is ignored if any of the rules matches. A text can contain one rule per line.
func TestRule_OneMatchIsEnough(t *testing.T) {
	l := list(t, "resource=a\n\nresource=b", "attribute.url.path=~^/x", "attribute.url.path=/y",
		"attribute.z=1")
	for resource, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if l.MatchesKey(&span.Key{Resource: resource}) != want {
			t.Errorf("%s: not %t", resource, want)
		}
	}
	if got := strings.Join(l.AttributeNames(), " "); got != "url.path z" {
		t.Errorf("it asks for %s", got)
	}
	for value, want := range map[string]bool{"/x/1": true, "/y": true, "/y/1": false, "": false} {
		if l.MatchesAttribute("url.path", value) != want {
			t.Errorf("url.path %q: not %t", value, want)
		}
	}
}

// The error contains the invalid rule and the expected syntax.
func TestRule_InvalidIsNamed(t *testing.T) {
	for _, rule := range []string{
		"healthz", "resource", "resource=", "resuorce=a", "peer_tag=a", "additional_tag=a", "attribute.=a",
		"=a", "resource=~(", "resource=" + strings.Repeat("x", ignore.MaxBytes),
	} {
		if _, err := ignore.Parse([]string{rule}); err == nil || !strings.Contains(err.Error(), "--ignore") {
			t.Errorf("%.20s: %v", rule, err)
		}
	}
	if _, err := ignore.Parse([]string{strings.Repeat("type=a\n", ignore.MaxRules+1)}); err == nil {
		t.Error("any number of rules is accepted")
	}
	if l, err := ignore.Parse([]string{"", " \n"}); l != nil || err != nil {
		t.Error("no rules are some", err)
	}
}

// Rules see at most MaxValue bytes, also rules with anchors and rules for equality, and never a part of a
// character.
func TestAttribute_IsMatchedUpToMaxValue(t *testing.T) {
	full := strings.Repeat("x", ignore.MaxValue)
	huge := strings.Repeat("x", 8<<20)
	for _, one := range []struct {
		rule, value string
		want        bool
	}{
		{"attribute.a=~needle", "needle" + huge, true},
		{"attribute.a=~needle", huge + "needle", false},
		{"attribute.a=~needle", full[len("needle"):] + "needle", true},
		{"attribute.a=~needle", full[len("needle")-1:] + "needle", false},
		{"attribute.a=~^x+$", huge + "y", true},
		{"attribute.a=" + full[len("attribute.a="):], full[len("attribute.a="):], true},
		{"attribute.a=" + full[len("attribute.a="):], full[len("attribute.a="):] + "x", false},
		{"attribute.a=~^x+é$", full[2:] + "é" + huge, true},
		{"attribute.a=~^x+$", full[1:] + "é", true},
		{"attribute.a=~^x+$", full[3:] + "\U0001F600", true},
	} {
		if got := list(t, one.rule).MatchesAttribute("a", one.value); got != one.want {
			t.Errorf("%.20s of %d bytes: %t", one.rule, len(one.value), got)
		}
	}
}
