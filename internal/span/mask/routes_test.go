package mask_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// app contains the routes of one application, as a file of testdata/routes lists them: one per line, with
// parameters like {name:kind}, where kind is a key of makers, or {name} for the enumerated values of a line
// "few name value ...".
type app struct {
	name   string
	routes []route
	few    map[string][]string
}

// route is a pattern, split at its parameters: fixed text, parameter, fixed text ...
type route struct {
	pattern string
	fixed   []string
	kinds   []string // by parameter: a kind, or the name of a list in app.few
}

// hit is one value that an application sent, with the expected results.
type hit struct {
	value string
	// the route with its enumerated values that are words, as a router or a reader distinguishes it
	route         string
	expect        string // regular expression for the correct mask, without ^ and $
	hasIdentifier bool
}

var parameter = regexp.MustCompile(`\{(\w+)(?::([\w-]+))?\}`)

func readApps(t *testing.T) (apps []*app) {
	t.Helper()
	paths, err := filepath.Glob("testdata/routes/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no routes were found: %v", err)
	}
	for _, path := range paths {
		a := &app{name: strings.TrimSuffix(filepath.Base(path), ".txt"), few: map[string][]string{}}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			line := lines.Text()
			switch words := strings.Fields(line); {
			case strings.HasPrefix(line, "#"), line == "":
			case words[0] == "few":
				a.few[words[1]] = words[2:]
			default:
				a.add(t, line)
			}
		}
		file.Close() //nolint:errcheck // it was only read
		apps = append(apps, a)
	}
	return apps
}

func (a *app) add(t *testing.T, pattern string) {
	r, from := route{pattern: pattern}, 0
	for _, at := range parameter.FindAllStringSubmatchIndex(pattern, -1) {
		name, kind := pattern[at[2]:at[3]], ""
		if at[4] >= 0 {
			kind = pattern[at[4]:at[5]]
		}
		if kind == "" && a.few[name] != nil {
			kind = name
		} else if makers[strings.SplitN(kind, "-", 2)[0]] == nil {
			t.Fatalf("%s: %s has a parameter of no kind: %s", a.name, pattern, name)
		}
		r.fixed, r.kinds = append(r.fixed, pattern[from:at[0]]), append(r.kinds, kind)
		from = at[1]
	}
	r.fixed = append(r.fixed, pattern[from:])
	a.routes = append(a.routes, r)
}

// traffic generates requests to an application. Routes are distributed by Zipf's law, in an order that depends on the
// seed. One in ten identifiers is one of a few popular ones.
type traffic struct {
	*app
	rnd     *rand.Rand
	shares  []float64
	popular map[string][]string // by kind
}

func newTraffic(a *app, seed uint64) *traffic {
	t := &traffic{
		app: a, rnd: rand.New(rand.NewPCG(seed, 20)), shares: make([]float64, len(a.routes)),
		popular: map[string][]string{},
	}
	total := 0.0
	for rank, i := range t.rnd.Perm(len(a.routes)) {
		t.shares[i] = 1 / float64(rank+1)
		total += t.shares[i]
	}
	for i := range t.shares {
		t.shares[i] /= total
	}
	return t
}

func (t *traffic) next() hit {
	i, at := 0, t.rnd.Float64()
	for ; i < len(t.shares)-1 && at >= t.shares[i]; i++ {
		at -= t.shares[i]
	}
	r := &t.routes[i]
	h := hit{
		value: r.fixed[0], expect: expected(r.fixed[0]),
		route: withDigit.ReplaceAllString(r.fixed[0], "#"),
	}
	for p, kind := range r.kinds {
		few, text := t.few[kind], ""
		if few == nil {
			text = t.identifier(kind)
		} else {
			text = few[t.rnd.IntN(len(few))]
		}
		if few != nil && !strings.Contains(h.value, "?") {
			h.route += withDigit.ReplaceAllString(text, "#")
			h.expect += expected(text)
		} else {
			h.hasIdentifier = true
			h.route += "#"
			h.expect = strings.TrimRight(h.expect, letters) + `[A-Za-z]*\{[a-z]+\}`
		}
		h.value += text + r.fixed[p+1]
		h.expect += expected(r.fixed[p+1])
		h.route += withDigit.ReplaceAllString(r.fixed[p+1], "#")
	}
	if t.name == "sql" {
		h.expect = regexp.QuoteMeta(statement(h.value))
	}
	return h
}

// withDigit matches a piece of a route that contains a digit.
var withDigit = regexp.MustCompile(`[^/ ?&=.:-]*[0-9][^/ ?&=.:-]*`)

// expected returns a regular expression for the correct mask of a part of a route: pieces with a digit may be masked.
func expected(fixed string) (expect string) {
	from := 0
	for _, at := range withDigit.FindAllStringIndex(fixed, -1) {
		piece := regexp.QuoteMeta(fixed[at[0]:at[1]])
		expect += regexp.QuoteMeta(fixed[from:at[0]]) + `(?:` + piece + `|[A-Za-z_]*\{[a-z]+\})`
		from = at[1]
	}
	return expect + regexp.QuoteMeta(fixed[from:])
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (t *traffic) identifier(kind string) string {
	popular := t.popular[kind]
	if len(popular) == 5 && t.rnd.IntN(10) == 0 {
		return popular[t.rnd.IntN(5)]
	}
	name, size, _ := strings.Cut(kind, "-")
	length, _ := strconv.Atoi(size)
	text := makers[name](t.rnd, length)
	if len(popular) < 5 {
		t.popular[kind] = append(popular, text)
	}
	return text
}

// statement removes the literals from a statement with regular expressions.
func statement(text string) string {
	for _, replace := range []struct{ this, by string }{
		{`/\*.*?\*/`, "/*?*/"},
		{`'(?:[^'\\]|''|\\.)*'`, "?"},
		{`\b0x[0-9a-f]+\b`, "?"},
		{`\b[0-9]+(?:\.[0-9]+)?\b`, "?"},
		{`\(\?(?:, \?)+\)`, "(?)"},
		{`\(\?\)(?:, \(\?\))+`, "(?)"},
	} {
		text = regexp.MustCompile(replace.this).ReplaceAllString(text, replace.by)
	}
	return text
}

// makers contains, for each kind, a function that returns an identifier of the given length.
var makers = map[string]func(rnd *rand.Rand, length int) string{
	"num":   func(r *rand.Rand, _ int) string { return strconv.Itoa(100_000 + r.IntN(900_000_000)) },
	"num5":  func(r *rand.Rand, _ int) string { return strconv.Itoa(1 + r.IntN(99_999)) },
	"num6":  func(r *rand.Rand, _ int) string { return strconv.Itoa(100_000 + r.IntN(900_000)) },
	"num8":  func(r *rand.Rand, _ int) string { return strconv.Itoa(20_240_000 + r.IntN(9_000_000)) },
	"num9":  func(r *rand.Rand, _ int) string { return strconv.Itoa(100_000_000 + r.IntN(900_000_000)) },
	"num12": func(r *rand.Rand, _ int) string { return "49151" + strconv.Itoa(1_000_000+r.IntN(9_000_000)) },
	"num10": func(r *rand.Rand, _ int) string { return strconv.Itoa(1_700_000_000 + r.IntN(9_000_000)) },
	"mid":   func(r *rand.Rand, _ int) string { return strconv.Itoa(1 + r.IntN(20_000)) },
	"small": func(r *rand.Rand, _ int) string { return strconv.Itoa(1 + r.IntN(12)) },
	"big": func(r *rand.Rand, _ int) string {
		return strconv.FormatInt(100_000_000_000_000_000+r.Int64N(9e17), 10)
	},
	"uuid": func(r *rand.Rand, _ int) string {
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", r.Uint32(), r.IntN(1<<16), r.IntN(1<<12),
			0x8000|r.IntN(1<<14), r.Uint64()>>16)
	},
	"hex7": of("0123456789abcdef", 7), "hex8": of("0123456789abcdef", 8), "hex10": of("456789bcdf", 10),
	"hex12": of("0123456789abcdef", 12),
	"hex16": of("0123456789abcdef", 16),
	"hex24": of("0123456789abcdef", 24),
	"hex32": of("0123456789abcdef", 32),
	"hex40": of("0123456789abcdef", 40),
	"hex64": of("0123456789abcdef", 64),
	"ulid":  of("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26), "ksuid": of(alphanumeric, 27),
	"b62":  of(alphanumeric, 0),
	"b64":  of(alphanumeric+"-_", 0),
	"b36":  of("0123456789abcdefghijklmnopqrstuvwxyz", 0),
	"b36u": of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0), "k5": of("bcdfghjklmnpqrstvwxz2456789", 5),
	"date": func(r *rand.Rand, _ int) string {
		return fmt.Sprintf("2024-%02d-%02d", 1+r.IntN(12), 1+r.IntN(28))
	},
	"email": func(r *rand.Rand, _ int) string {
		return word(r) + strconv.Itoa(r.IntN(1000)) + "@" + word(r) + ".com"
	},
	"ip": func(r *rand.Rand, _ int) string {
		return fmt.Sprintf("10.%d.%d.%d", r.IntN(256), r.IntN(256), r.IntN(256))
	},
	"ip6": func(r *rand.Rand, _ int) string {
		return fmt.Sprintf("2001:db8::%x:%x", 1+r.IntN(1<<16-1), 1+r.IntN(1<<16-1))
	},
	"jwt": func(r *rand.Rand, _ int) string {
		token := of(alphanumeric+"-_", 0)
		return "eyJ" + token(r, 30) + "." + token(r, 60) + "." + token(r, 43)
	},
	"slug": func(r *rand.Rand, _ int) string { return word(r) + "-" + word(r) + "-" + word(r) },
	"str": func(r *rand.Rand, _ int) string {
		return "'" + word(r) + []string{"", "''s", " ", `\'`}[r.IntN(4)] + word(r) +
			strconv.Itoa(r.IntN(1000)) + "'"
	},
	"list": func(r *rand.Rand, _ int) string {
		list := strconv.Itoa(r.IntN(1e6))
		for range r.IntN(20) {
			list += ", " + strconv.Itoa(r.IntN(1e6))
		}
		return list
	},
	"rows": func(r *rand.Rand, _ int) string {
		row := func() string {
			return fmt.Sprintf("(%d, '2024-05-%02d', '%s')", r.IntN(1e6), 1+r.IntN(28), word(r))
		}
		rows := row()
		for range r.IntN(5) {
			rows += ", " + row()
		}
		return rows
	},
	"hexlit": func(r *rand.Rand, _ int) string { return fmt.Sprintf("0x%016x", r.Uint64()) },
	"float":  func(r *rand.Rand, _ int) string { return fmt.Sprintf("%d.%02d", r.IntN(1000), r.IntN(100)) },
}

const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// of returns a function that generates texts from an alphabet. Their length is the given one or, if that is 0, the
// default of the kind.
func of(alphabet string, always int) func(*rand.Rand, int) string {
	return func(r *rand.Rand, length int) string {
		if always > 0 {
			length = always
		}
		text := make([]byte, length)
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(text)
	}
}

func word(r *rand.Rand) string {
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	text := ""
	for range 2 + r.IntN(2) {
		text += string(consonants[r.IntN(len(consonants))]) + string(vowels[r.IntN(len(vowels))])
	}
	return text
}
