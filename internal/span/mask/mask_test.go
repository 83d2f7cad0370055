package mask_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// masked returns the mask of a text, or the text itself if it has none.
func masked(text string) string {
	if name, ok := mask.Append(nil, text); ok {
		return string(name)
	}
	return text
}

func TestMasks(t *testing.T) {
	for text, want := range map[string]string{
		"GET /users/17": "GET /users/{id}",
		"/users/17/orders/550e8400-e29b-41d4-a716-446655440000":                 "/users/{id}/orders/{uuid}",
		"GET /users/17?page=2&q=shoes&empty=#top":                               "GET /users/{id}?page={value}&q={value}&empty=#top",
		"POST /?Action=DescribeVpcs":                                            "POST /?Action={value}",
		"GET /o/550E8400-E29B-41D4-A716-446655440000":                           "GET /o/{uuid}",
		"GET /c/3f2a9c1b":                                                       "GET /c/{hex}",
		"GET /c/d41d8cd98f00b204e9800998ecf8427e.json":                          "GET /c/{hex}.json",
		"GET /c/507f1f77bcf86cd799439011/small.jpg":                             "GET /c/{hex}/small.jpg",
		"GET /u/01ARZ3NDEKTSV4RRFFQ69G5FAV":                                     "GET /u/{token}",
		"GET /u/0ujtsYcgvSTl8PAuAdqWYSMnLOv":                                    "GET /u/{token}",
		"GET /w/dQw4w9WgXcQ":                                                    "GET /w/{token}",
		"GET /o/ord_8fK2aQ9Z":                                                   "GET /o/ord_{token}",
		"GET /o/cus_NffrFeUfNVXHib":                                             "GET /o/cus_{token}",
		"GET /o/cs_test_a1B2c3D4e5F6":                                           "GET /o/cs_test_{token}",
		"GET /p/SKU-12345":                                                      "GET /p/SKU-{id}",
		"GET /p/R123456789":                                                     "GET /p/R{id}",
		"GET /mail/alice@example.com":                                           "GET /mail/{email}",
		"GET /mail/alice%40example.com":                                         "GET /mail/{email}",
		"GET /hosts/10.0.3.17":                                                  "GET /hosts/{ip}",
		"GET /hosts/10.0.3.17:8080/x":                                           "GET /hosts/{ip}/x",
		"GET /hosts/2001:db8::1":                                                "GET /hosts/{ipv6}",
		"GET /days/2024-05-17":                                                  "GET /days/{date}",
		"GET /days/2024-05-17T10:00:00Z":                                        "GET /days/{date}",
		"GET /pods/web-6d4cf56db6-x2k4z/log":                                    "GET /pods/web-{hex}-{token}/log",
		"GET /blobs/sha256:" + strings.Repeat("0a", 32):                         "GET /blobs/sha256:{hex}",
		"GET /v1/a/123:cancel":                                                  "GET /v1/a/{id}:cancel",
		"user:17:session:3f2a9c1b":                                              "user:{id}:session:{hex}",
		"orders.17.created":                                                     "orders.{id}.created",
		"TX 600107":                                                             "TX {id}",
		"/shards/7/stats":                                                       "/shards/{id}/stats",
		strings.Repeat("/12345678", 40):                                         strings.Repeat("/{id}", 40),
		"DELETE /users/1234567 from here":                                       "DELETE /users/{id} from here",
		"/* from here */select/1234567":                                         "/* from here */select/{id}",
		"SELECT * FROM t WHERE a = 'it''s' AND b IN (1, 2,3) -- all":            "SELECT * FROM t WHERE a = ? AND b IN (?) --?",
		"select a from t1 where x=-1.5e-3 and y=0x1f and z=$1 and q=$x$a$x$":    "select a from t1 where x=-? and y=? and z=$1 and q=?",
		"INSERT INTO t (a) VALUES (1, 'b'), (2, 'c\\'')":                        "INSERT INTO t (a) VALUES (?)",
		"/* 17 */ UPDATE t SET a = \"b 1\"":                                     "/*?*/ UPDATE t SET a = \"b 1\"",
		"DELETE FROM t WHERE a = 'open":                                         "DELETE FROM t WHERE a = ?",
		"DELETE /* all */ FROM users WHERE id = 17":                             "DELETE /*?*/ FROM users WHERE id = ?",
		"select a from 2024_orders where b = 1":                                 "select a from 2024_orders where b = ?",
		"select a from db.2024_orders, 4users where b=1":                        "select a from db.2024_orders, 4users where b=?",
		"select a from t where b=1and c=2":                                      "select a from t where b=1and c=?",
		"select a from t where b in (1, 0x1F, 0b101, 2.5e+3)":                   "select a from t where b in (?)",
		"select a from t where b = 1e5 and c > now() - 15ms":                    "select a from t where b = ? and c > now() - ?",
		"select a from dr$idx$i where b = 1 order by c":                         "select a from dr$idx$i where b = ? order by c",
		"select a from b$$c where d = $1$2 and e = '1'":                         "select a from b$$c where d = $1$2 and e = ?",
		"select a from t where b = $$it's$$ and c=$x1$it's$x1$":                 "select a from t where b = ? and c=?",
		`SELECT a FROM t WHERE b LIKE 'x%' ESCAPE '\' AND c = 'y'`:              `SELECT a FROM t WHERE b LIKE ? ESCAPE ? AND c = ?`,
		`SELECT a FROM t WHERE b LIKE 'x%' escape  '\' ORDER BY d`:              `SELECT a FROM t WHERE b LIKE ? escape  ? ORDER BY d`,
		`SELECT a FROM t WHERE b = 'x%' AND c LIKE 'y' ESCAPE '\\' OR d`:        `SELECT a FROM t WHERE b = ? AND c LIKE ? ESCAPE ? OR d`,
		`SELECT a FROM t WHERE b = 'a\'b' AND c = "d'e" AND f = 'g' OR h = '2'`: `SELECT a FROM t WHERE b = ? AND c = "d'e" AND f = ? OR h = ?`,
	} {
		if got := masked(text); got != want {
			t.Errorf("%q became %q; want %q", text, got, want)
		}
		if again := masked(want); again != want {
			t.Errorf("%q became %q", want, again)
		}
	}
}

// Words that contain digits, versions, names of static files, masks, routes without identifiers, and
// statements with ambiguous quotes are not masked.
func TestMasks_NoneForOrdinaryNames(t *testing.T) {
	for _, text := range []string{
		"", "x", "GET /", "GET /v1/users", "GET /v2beta1/x", "GET /oauth2/token", "GET /s3/k8s/utf8/2fa/i18n",
		"GET /en-us/x",
		"GET /not.html/x.y.z", "GET /docs/1.2.3/x", "GET /docs/v1.2.3/x", "GET /assets/main.3f2a9c1b.js",
		"GET /assets/logo-3f2a9c1b.png",
		"GET /users/{userId}", "GET /users/{id}/orders/12345678", "GET /users/:id", "UserController.show",
		"shop.v1.Orders/Get", "PING", "tracer_blocked_value",
		"GET /fa%C3%A7ade%202", "GET /blog/my-first-post",
		"SELECT a FROM t WHERE b = $1 AND c = :c AND d = @p1", "GET /top10/web3/h264", "Db::Add",
		"GET /Ad::Feed/x",
		"listCoreV1NamespacedPod", "/readme", "/lib/log4j2-core.jar",
		"/" + strings.Repeat("1", 5000), "SELECT a, ' from ' AS b", "SELECT 'x' AS a",
		`SELECT a FROM t WHERE b = 'C:\' AND c = 'x' AND d = 'D:\'`,
		`SELECT a FROM t WHERE b = 'it\'s' AND c = 'cut he`,
	} {
		if got := masked(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A mask keeps the text around identifiers, and the kinds of the identifiers.
func TestMasks_KeepSurroundingText(t *testing.T) {
	texts := []string{
		"GET /a/1234567", "GET /a/1234567/", "GET /b/1234567", "HEAD /a/1234567", "GET /a/1234567.json",
		"GET /a/1234567.xml", "GET /a/2024-05-17",
		"GET /a/3f2a9c1b", "GET /a/x_1234567", "GET /a/y_1234567", "GET /a/1234567?x=1", "GET /a/1234567?y=1",
		"a.1234567", "GET /a/550e8400-e29b-41d4-a716-446655440000",
	}
	seen := map[string]string{}
	for _, text := range texts {
		name := masked(text)
		if name == text {
			t.Errorf("%q has no mask", text)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both %q", text, other, name)
		}
		seen[name] = text
	}
}

// A word that contains a number is not a random token.
func TestMasks_NoneForVersionedMethods(t *testing.T) {
	for _, verb := range []string{"get", "list", "create", "GetUser", "Describe", "batch_write"} {
		for _, noun := range []string{
			"S3Bucket", "X509Cert", "Http2Stream", "Ec2Instance", "B2BOrder",
			"Mp4File", "UserV2", "Sha256Sum",
		} {
			for _, text := range []string{
				verb + noun, "users_" + verb + noun, "/api/" + verb + noun,
				"shop.Orders/" + verb + noun,
			} {
				if got := masked(text); got != text {
					t.Errorf("%q became %q", text, got)
				}
			}
		}
	}
}

func TestMasks_AllocatesNothing(t *testing.T) {
	buffer := make([]byte, 0, 1<<10)
	for _, text := range []string{
		"GET /users/17/orders/550e8400-e29b-41d4-a716-446655440000?page=2",
		"SELECT * FROM t WHERE a = 'b' AND c IN (1, 2, 3)",
		"GET /hosts/10.0.3.17/2001:db8::1/a:b:c:d", "user:17", "no identifier at all", "\xff",
	} {
		if n := testing.AllocsPerRun(100, func() { mask.Append(buffer, text) }); n != 0 {
			t.Errorf("%q costs %v allocations", text, n)
		}
	}
}

// Append keeps the content of dst, and appends nothing to it if there is no mask.
func TestAppend_KeepsPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"/a/1": "is /a/{id}", "select 1 from t": "is select ? from t",
		"/a": "is ", `select 1 from '\`: "is ",
	} {
		if got, ok := mask.Append([]byte("is "), text); string(got) != want || ok != (want != "is ") {
			t.Errorf("of %q it is %q, %t", text, got, ok)
		}
	}
}

// The test compares masks of statements with those of a lexer that only knows quotes.
func TestMasks_EndOfQuote(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 20))
	for range 100_000 {
		text := "'"
		for range rnd.IntN(12) {
			text += `'\a`[rnd.IntN(3):][:1]
		}
		end := 1
		for ; end < len(text); end++ {
			if text[end] == '\\' {
				end++
			} else if text[end] == '\'' {
				if end+1 == len(text) || text[end+1] != '\'' {
					break
				}
				end++
			}
		}
		if end >= len(text) || strings.ContainsAny(text[end+1:], `'\`) {
			continue // not closed, or more than one literal
		}
		want := "select a from t where b = ?" + text[end+1:]
		if got := masked("select a from t where b = " + text); got != want {
			t.Fatalf("%s became %s, want %s", text, got, want)
		}
	}
}

// The mask of any text is valid UTF-8 and its own mask. It is no longer than the text with a placeholder
// instead of each byte.
func FuzzMask(f *testing.F) {
	for _, text := range []string{
		"GET /users/17?a=b", "/a/550e8400-e29b-41d4-a716-446655440000.png", "{id}", "/{id}/{uuid}?x={value}",
		"SELECT 1, 'a' FROM t WHERE x IN (1,(2", "select from $$ ? ?1",
		"update/* -- */ t set x = '\\", "a:b:c::1", "cus_{id}_{hex}", "1.2.3.4:80",
		strings.Repeat("(1,", 1600), strings.Repeat("$a", 2000), strings.Repeat("/*", 2000),
		"with a as " + strings.Repeat("$a$ ", 1000), strings.Repeat("1-", 2400), strings.Repeat("@a.bc ", 16),
		"with As 0$$", "with As $a$$a$0A0", "with as 'x'0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := masked(text)
		if !utf8.ValidString(text) {
			return
		}
		if !utf8.ValidString(name) || len(name) > 8*len(text) {
			t.Fatalf("%q became %q", text, name)
		}
		if again := masked(name); again != name {
			t.Fatalf("%q became %q, and that %q", text, name, again)
		}
	})
}

// The test concatenates pieces of statements and routes at random, with and without separators.
func TestMasks_AreIdempotent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(32, 24))
	pieces := strings.Split("with|select|insert|from|as|into|a|A0|0A|0|17|1.5e3|0x1f|'x'|'|\"q\"|`|$|$$|$a$|$1|?|?1|(|)|,|/*|*/|--|\\|\n|/|-|.|:|@b.cd|%40|_|{|}|{id}|=|&|3f2a9c1b77|550e8400-e29b-41d4-a716-446655440000|2024-05-17|1.2.3.4|::1|é", "|")
	for range 200_000 {
		var text strings.Builder
		if rnd.IntN(2) == 0 {
			text.WriteString("with As ")
		}
		for range 1 + rnd.IntN(8) {
			text.WriteString(pieces[rnd.IntN(len(pieces))])
			if rnd.IntN(3) == 0 {
				text.WriteByte(' ')
			}
		}
		name := masked(text.String())
		if again := masked(name); again != name {
			t.Fatalf("%q became %q, and that %q", text.String(), name, again)
		}
	}
}
