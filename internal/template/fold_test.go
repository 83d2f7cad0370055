package template

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var anyScope = Scope{Origin: 1, Label: 2}

// teach makes a template known that explains a text at all of its blanks.
func teach(t *Templates, text string) {
	var f Fold
	if f.Name(t, anyScope, text, maxText); f.key == 0 {
		return
	}
	varies := levels(0)
	for i := range maxFills {
		varies = varies.with(i, weak)
	}
	if k := t.known.Load(); k.isFull() {
		t.known.Store(k.without(0))
	}
	if _, is := t.known.Load().find(f.key); !is {
		t.known.Load().put(f.key, anyScope, varies, 0)
	}
}

// TestWhatMayVary: the name of each text where all that may vary does, or the text itself.
func TestWhatMayVary(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"GET /users/17", "GET /users/{id}"},
		{"/users/17/orders/550e8400-e29b-41d4-a716-446655440000", "/users/{id}/orders/{uuid}"},
		{"GET /users/17?page=2&q=shoes&empty=#top", "GET /users/{id}?page={value}&q={value}&empty=#top"},
		{"GET /o/550E8400-E29B-41D4-A716-446655440000", "GET /o/{uuid}"},
		{"GET /c/3f2a9c1b", "GET /c/{hex}"},
		{"GET /c/d41d8cd98f00b204e9800998ecf8427e.json", "GET /c/{hex}.json"},
		{"GET /c/507f1f77bcf86cd799439011/small.jpg", "GET /c/{hex}/small.jpg"},
		{"GET /u/01ARZ3NDEKTSV4RRFFQ69G5FAV", "GET /u/{token}"},
		{"GET /u/0ujtsYcgvSTl8PAuAdqWYSMnLOv", "GET /u/{token}"},
		{"GET /w/dQw4w9WgXcQ", "GET /w/{token}"},
		{"GET /o/ord_8fK2aQ9Z", "GET /o/ord_{token}"},
		{"GET /o/cus_NffrFeUfNVXHib", "GET /o/cus_{token}"},
		{"GET /o/cs_test_a1B2c3D4e5F6", "GET /o/cs_test_{token}"},
		{"GET /p/SKU-12345", "GET /p/SKU-{id}"},
		{"GET /p/R123456789", "GET /p/R{id}"},
		{"GET /mail/alice@example.com", "GET /mail/{email}"},
		{"GET /mail/alice%40example.com", "GET /mail/{email}"},
		{"GET /hosts/10.0.3.17", "GET /hosts/{ip}"},
		{"GET /hosts/10.0.3.17:8080/x", "GET /hosts/{ip}/x"},
		{"GET /hosts/2001:db8::1", "GET /hosts/{ipv6}"},
		{"GET /days/2024-05-17", "GET /days/{date}"},
		{"GET /days/2024-05-17T10:00:00Z", "GET /days/{date}"},
		{"GET /pods/web-6d4cf56db6-x2k4z/log", "GET /pods/web-{hex}-{token}/log"},
		{"GET /blobs/sha256:" + strings.Repeat("0a", 32), "GET /blobs/sha256:{hex}"},
		{"GET /v1/a/123:cancel", "GET /v1/a/{id}:cancel"},
		{"user:17:session:3f2a9c1b", "user:{id}:session:{hex}"},
		{"orders.17.created", "orders.{id}.created"},
		{"SELECT * FROM t WHERE a = 'it''s' AND b IN (1, 2,3) -- all", "SELECT * FROM t WHERE a = ? AND b IN (?) --?"},
		{"select a from t1 where x=-1.5e-3 and y=0x1f and z=$1 and q=$x$a$x$", "select a from t1 where x=-? and y=? and z=$1 and q=?"},
		{"INSERT INTO t (a) VALUES (1, 'b'), (2, 'c\\'')", "INSERT INTO t (a) VALUES (?)"},
		{"/* 17 */ UPDATE t SET a = \"b 1\"", "/*?*/ UPDATE t SET a = \"b 1\""},
		{"DELETE FROM t WHERE a = 'open", "DELETE FROM t WHERE a = ?"},
	} {
		templates, f := New(), Fold{}
		teach(templates, c.text)
		name, ok := f.Name(templates, anyScope, c.text, maxText)
		if !ok || string(name) != c.want {
			t.Errorf("%q became %q, %v; want %q", c.text, name, ok, c.want)
		}
		if again, ok := f.Name(templates, anyScope, c.want, maxText); ok && string(again) != c.want {
			t.Errorf("%q became %q", c.want, again)
		}
	}
}

// TestWhatMayNotVary: words with digits in them, versions, names of static files.
func TestWhatMayNotVary(t *testing.T) {
	var v value
	for _, text := range []string{
		"", "x", "GET /", "GET /v1/users", "GET /v2beta1/x", "GET /oauth2/token", "GET /s3/k8s/utf8/2fa/i18n", "GET /en-us/x",
		"GET /not.html/x.y.z", "GET /docs/1.2.3/x", "GET /docs/v1.2.3/x", "GET /assets/main.3f2a9c1b.js", "GET /assets/logo-3f2a9c1b.png",
		"GET /users/{userId}", "GET /users/{id}/orders/12345678", "GET /users/:id", "UserController.show", "shop.v1.Orders/Get", "PING", "tracer_blocked_value",
		"GET /fa%C3%A7ade%202", "GET /blog/my-first-post", "SELECT a FROM t WHERE b = $1 AND c = :c AND d = @p1", "GET /top10/web3/h264", "Db::Add", "GET /Ad::Feed/x",
		"GET" + strings.Repeat("/a", 40) + "/12345678", strings.Repeat("/12345678", 9), "/" + strings.Repeat("1", maxText),
	} {
		if v.parse(text) {
			t.Errorf("of %q the fills %v may vary", text, v.fills[:v.count])
		}
	}
}

// TestValuesOfOneSkeletonDifferInFillsOnly: what stands around fills is never replaced, so
// two values become one only where it is equal.
func TestValuesOfOneSkeletonDifferInFillsOnly(t *testing.T) {
	texts := []string{
		"GET /a/1234567", "GET /a/1234567/", "GET /b/1234567", "HEAD /a/1234567", "GET /a/1234567.json", "GET /a/1234567.xml",
		"GET /a/3f2a9c1b", "GET /a/x_1234567", "GET /a/y_1234567", "GET /a/1234567?x=1", "GET /a/1234567?y=1", "a.1234567",
	}
	seen := map[uint64]string{}
	for _, text := range texts {
		var v value
		if !v.parse(text) {
			t.Errorf("%q is not understood", text)
		}
		if other, twice := seen[v.skeleton]; twice {
			t.Errorf("%q and %q have one skeleton", text, other)
		}
		seen[v.skeleton] = text
	}
}

func TestANameHasItsLimit(t *testing.T) {
	templates, f := New(), Fold{}
	teach(templates, "/a/1")
	if name, ok := f.Name(templates, anyScope, "/a/1", len("/a/{id}")); !ok {
		t.Errorf("it became %q", name)
	}
	if name, ok := f.Name(templates, anyScope, "/a/1", len("/a/{id}")-1); ok {
		t.Errorf("it became %q", name)
	}
	if name, ok := f.Name(templates, Scope{Origin: 2, Label: 2}, "/a/1", maxText); ok {
		t.Errorf("another origin's became %q", name)
	}
	if name, ok := f.Name(templates, Scope{Origin: 1, Label: 3}, "/a/1", maxText); ok {
		t.Errorf("another label's became %q", name)
	}
}

// TestATemplateMayNameWhatIsOfItsScope, and nothing where there is none.
func TestATemplateMayNameWhatIsOfItsScope(t *testing.T) {
	templates, scopes := New(), []Scope(nil)
	for i := range 20 {
		scope := Scope{Origin: uint32(i) * 0x9e3779b9, Label: uint8(i % 2)}
		if scopes = append(scopes, scope); i == 0 && templates.MayName(scope) {
			t.Error("none may name something")
		}
		templates.known.Store(templates.known.Load().without(0))
		templates.known.Load().put(uint64(i+1), scope, levels(0).with(0, weak), 0)
		for _, scope := range scopes {
			if !templates.MayName(scope) {
				t.Errorf("of %d, none may name what is of %v", i, scope)
			}
		}
	}
}

func TestFoldingAllocatesNothing(t *testing.T) {
	templates, f := New(), Fold{}
	texts := []string{
		"GET /users/17/orders/550e8400-e29b-41d4-a716-446655440000?page=2", "SELECT * FROM t WHERE a = 'b' AND c IN (1, 2, 3)",
		"GET /hosts/10.0.3.17/2001:db8::1/a:b:c:d", "user:17", "no fills at all", "\xff",
	}
	for _, text := range texts {
		teach(templates, text)
		f.Name(templates, anyScope, text, maxText)
		f.Name(templates, anyScope, text, maxText) // news are told once
	}
	for _, text := range texts {
		if n := testing.AllocsPerRun(100, func() { f.Name(templates, anyScope, text, maxText) }); n != 0 {
			t.Errorf("%q costs %v allocations", text, n)
		}
	}
}

// FuzzFold: whatever the text, its name is valid, within the limit, and explained by the
// same template as itself, if it is explained.
func FuzzFold(f *testing.F) {
	for _, text := range []string{
		"GET /users/17?a=b", "/a/550e8400-e29b-41d4-a716-446655440000.png", "{id}", "/{id}/{uuid}?x={value}", "SELECT 1, 'a' FROM t WHERE x IN (1,(2", "select from $$ ? ?1",
		"update/* -- */ t set x = '\\", "a:b:c::1", "cus_{id}_{hex}", "1.2.3.4:80", strings.Repeat("(1,", 1600), strings.Repeat("$a", 2000), strings.Repeat("/*", 2000),
		"with a as " + strings.Repeat("$a$ ", 1000), strings.Repeat("1-", 2400), strings.Repeat("@a.bc ", 16), "with As 0$$",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		templates, fold := New(), Fold{}
		teach(templates, text)
		named, ok := fold.Name(templates, anyScope, text, maxText)
		if !ok {
			return
		}
		name := string(named)
		if !utf8.ValidString(name) || len(name) > maxText {
			t.Fatalf("%q became %q", text, name)
		}
		if again, ok := fold.Name(templates, anyScope, name, maxText); ok && string(again) != name {
			t.Fatalf("%q became %q, and that %q", text, name, again)
		}
		teach(templates, name)
		if again, ok := fold.Name(templates, anyScope, name, maxText); ok && string(again) != name {
			t.Fatalf("%q became %q, and with its own template %q", text, name, again)
		}
	})
}

// TestAWordWithinALiteralMakesNoStatement: the name would be none, and be taken apart in
// another way than what it was made of.
func TestAWordWithinALiteralMakesNoStatement(t *testing.T) {
	var v value
	if v.parse("SELECT a, ' from ' AS b") {
		t.Errorf("%+v was understood", v)
	}
}
