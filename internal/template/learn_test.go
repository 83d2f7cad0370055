package template

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// see shows the learner a value and returns its name.
func see(t *Templates, f *Fold, scope Scope, text string) string {
	name, ok := f.Name(t, scope, text, maxText)
	if ok {
		text = string(name)
	}
	if sight, ok := f.Sight(); ok {
		t.Learn([]Sight{sight})
	}
	return text
}

// TestHowMuchEvidenceATemplateNeeds: from which distinct value on the next one is folded.
func TestHowMuchEvidenceATemplateNeeds(t *testing.T) {
	uuid := func(i int) string { return fmt.Sprintf("550e8400-e29b-41d4-a716-%012x", i*0x10001) }
	for _, c := range []struct {
		what        string
		value       func(i int) string
		least, most int // distinct values; bits of a bitmap may be shared
	}{
		{"UUIDs", func(i int) string { return "GET /a/" + uuid(i) }, 8, 12},
		{"long numbers", func(i int) string { return fmt.Sprintf("GET /a/%d", 1_000_000+i) }, 8, 12},
		{"numbers of five digits", func(i int) string { return fmt.Sprintf("GET /a/%d", 10_000+i) }, 16, 22},
		{"small numbers", func(i int) string { return fmt.Sprintf("GET /a/%d", 1+i) }, 64, 130},
		{"years", func(i int) string { return fmt.Sprintf("GET /a/%d/b", 1900+i) }, 64, 130},
		{"words in a query", func(i int) string { return "GET /a?q=" + strings.Repeat(string(rune('a'+i%26)), 1+i/26) }, 64, 130},
		{"literals", func(i int) string { return fmt.Sprintf("SELECT a FROM b WHERE c = %d", i) }, 8, 12},
	} {
		templates, f := New(), Fold{}
		needed := 0
		for needed < 1000 && see(templates, &f, anyScope, c.value(needed)) == c.value(needed) {
			needed++
		}
		if needed < c.least || needed > c.most {
			t.Errorf("%s: a template was learnt of %d values, want %d to %d", c.what, needed, c.least, c.most)
		}
	}
}

// TestMethodsWithVersionsKeepTheirNames: letters and digits alternate in them, and they are words.
func TestMethodsWithVersionsKeepTheirNames(t *testing.T) {
	templates, f := New(), Fold{}
	for _, verb := range []string{"Get", "Set", "Put", "Add", "List", "Find", "Drop", "Send", "Create", "Update", "Delete"} {
		for _, noun := range []string{"User", "Item", "Order", "Group"} {
			for _, method := range []string{
				"/shop.Users/" + verb + noun + "V2", "UserController." + strings.ToLower(verb) + "V2" + noun, "job:" + verb + "S3" + noun,
				"UsersApi_" + verb + noun + "ByIdV2", "/soap/" + verb + "B2B" + noun, "POST /rpc/" + verb + "Base64" + noun,
			} {
				if name := see(templates, &f, anyScope, method); name != method {
					t.Fatalf("%s became %s", method, name)
				}
			}
		}
	}
}

// TestWhatIsNotUnderstoodTeachesNothing, nor does what was forgotten.
func TestWhatIsNotUnderstoodTeachesNothing(t *testing.T) {
	templates, f := New(), Fold{}
	for text, teaches := range map[string]bool{"GET /users/1234567": true, "GET /users": false, "GET /x/{id}": false} {
		f.Name(templates, anyScope, "GET /a/1234567", maxText)
		f.Name(templates, anyScope, text, maxText)
		if _, ok := f.Sight(); ok != teaches {
			t.Errorf("%s teaches something: %t", text, ok)
		}
		f.Forget()
		if _, ok := f.Sight(); ok || f.value.text != "" {
			t.Errorf("%s was not forgotten", text)
		}
	}
}

// TestWhatRepeatsDoesNotVary: many sights of few values are no evidence.
func TestWhatRepeatsDoesNotVary(t *testing.T) {
	templates, f := New(), Fold{}
	for i := range 10_000 {
		for _, few := range []string{
			fmt.Sprintf("GET /errors/%d", 400+i%60), fmt.Sprintf("GET /ports/%d", 8000+i%15), fmt.Sprintf("GET /files/%d", 3_000_000+i%7),
		} {
			if name := see(templates, &f, anyScope, few); name != few {
				t.Fatalf("%s became %s at its sight %d", few, name, i/60)
			}
		}
	}
}

// TestABlankThatDoesNotVaryKeepsItsText: plans are few and users are many, so a template
// holds the plan, and waits until that is sure.
func TestABlankThatDoesNotVaryKeepsItsText(t *testing.T) {
	templates, f := New(), Fold{}
	names := map[string]int{}
	for i := range 200 {
		value := fmt.Sprintf("GET /plans/%d/users/%d", 1+i%3, 1_000_000+i)
		if name := see(templates, &f, anyScope, value); name != value {
			names[name]++
		}
	}
	if len(names) != 3 || names["GET /plans/1/users/{id}"] < 50 {
		t.Errorf("the names are %v", names)
	}
}

// TestNoNameIsGivenBeforeAllBlanksAreDecided: users are enough long before orders are, and
// a user's template with each order in it would be as many names as before.
func TestNoNameIsGivenBeforeAllBlanksAreDecided(t *testing.T) {
	templates, f := New(), Fold{}
	for i := range 100 {
		value := fmt.Sprintf("GET /users/%d/orders/%d", 1_000_000+i, 10_000+i)
		if name := see(templates, &f, anyScope, value); name != value && name != "GET /users/{id}/orders/{id}" {
			t.Fatalf("%s became %s", value, name)
		}
	}
	if templates.Known(anyScope.Label) != 1 {
		t.Error("nothing was learnt")
	}
}

// TestWeakFillsOfALearntBlankAreNamesOfTheirOwn: /errors/404 beside /errors/{id}.
func TestWeakFillsOfALearntBlankAreNamesOfTheirOwn(t *testing.T) {
	templates, f := New(), Fold{}
	for i := range 40 {
		see(templates, &f, anyScope, fmt.Sprintf("GET /errors/%d", 1_000_000+i))
	}
	for value, want := range map[string]string{
		"GET /errors/9999999": "GET /errors/{id}", "GET /errors/404": "GET /errors/404", "GET /errors/2024": "GET /errors/2024", "GET /errors/12345": "GET /errors/12345",
	} {
		if name := see(templates, &f, anyScope, value); name != want {
			t.Errorf("%s became %s", value, name)
		}
	}
	for i := range 60 { // among so many better ones, fewer weak ones are enough
		see(templates, &f, anyScope, fmt.Sprintf("GET /users/%d", 1_000_000+i))
		see(templates, &f, anyScope, fmt.Sprintf("GET /users/%d", 10_000+i))
		see(templates, &f, anyScope, fmt.Sprintf("GET /users/%d", 100+i))
	}
	if name := see(templates, &f, anyScope, "GET /users/7"); name != "GET /users/{id}" {
		t.Errorf("an early user became %s", name)
	}
}

// TestATemplateLastsAsLongAsItExplains: two intervals without a value, and it is forgotten;
// evidence adds up over two.
func TestATemplateLastsAsLongAsItExplains(t *testing.T) {
	templates, f := New(), Fold{}
	value := func(i int) string { return fmt.Sprintf("GET /a/%d", 1_000_000+i) }
	for i := range 20 {
		see(templates, &f, anyScope, value(i))
	}
	for i := range 5 {
		templates.Begin()
		templates.Begin()
		if name := see(templates, &f, anyScope, value(100+i)); name != "GET /a/{id}" {
			t.Fatalf("after an interval without, it became %s", name)
		}
	}
	for range unusedIntervals + 1 {
		templates.Begin()
	}
	if known := templates.Known(anyScope.Label); known != 0 {
		t.Errorf("%d templates are known that explain nothing", known)
	}
	for i := range 30 { // four in each window
		if i%2 == 0 {
			templates.Begin()
		}
		if name := see(templates, &f, anyScope, value(200+i)); name != value(200+i) {
			t.Fatalf("it became %s by %d values in %d intervals", name, i, i/2)
		}
	}
}

// TestLearningIsBounded: one origin has its part of the templates, all together have no
// more than there is room for, and no more origins learn than may.
func TestLearningIsBounded(t *testing.T) {
	templates, f := New(), Fold{}
	const origins = 3
	for origin := range uint32(origins) {
		for route := range templatesEach + 100 {
			for i := range 30 { // some fill the same bit of the evidence
				see(templates, &f, Scope{Origin: origin, Label: 2}, fmt.Sprintf("/r%d/%d", route, 1_000_000+i))
			}
		}
	}
	k := templates.known.Load()
	for origin := range uint32(origins) {
		if n := k.ofOrigin(origin); n > templatesEach {
			t.Errorf("an origin has %d templates", n)
		}
	}
	if n := templates.Known(2); n != maxTemplates {
		t.Errorf("%d templates are known", n)
	}
	for origin := range uint32(2 * maxLearners) {
		see(templates, &f, Scope{Origin: 100 + origin}, "/a/1234567")
	}
	if n := len(templates.learners); n != maxLearners {
		t.Errorf("%d origins learn", n)
	}
	names, more := templates.News()
	if len(names) != maxNews || more == 0 {
		t.Errorf("the news are %d names and %d more", len(names), more)
	}
	if names, more = templates.News(); len(names) != 0 || more != 0 {
		t.Errorf("the news were told twice: %v and %d", names, more)
	}
}

// TestAFloodOfSkeletonsPushesOutNoneThatGrows: routes that a flood comes once of do not
// keep one from being learnt that comes often. Its second sight comes before its place is
// taken in one of some 60 times.
func TestAFloodOfSkeletonsPushesOutNoneThatGrows(t *testing.T) {
	templates, f, rnd := New(), Fold{}, rand.New(rand.NewPCG(1, 20))
	for i := range 2000 {
		for range 500 {
			see(templates, &f, anyScope, fmt.Sprintf("/%s/%d", strings.Map(func(d rune) rune { return d - '0' + 'a' }, strconv.FormatUint(rnd.Uint64(), 10)), rnd.Uint64()))
		}
		if name := see(templates, &f, anyScope, fmt.Sprintf("/honest/%d", 1_000_000+i)); name == "/honest/{id}" {
			return
		}
	}
	t.Error("the honest template was not learnt")
}

// TestTemplatesUnderRace: learning, folding, beginning and asking at once. Every name is
// the text itself or its template's.
func TestTemplatesUnderRace(t *testing.T) {
	templates := New()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			f, rnd := Fold{}, rand.New(rand.NewPCG(uint64(g), 20))
			for i := range 20_000 {
				route, id := rnd.IntN(300), 1_000_000+rnd.IntN(1_000_000)
				text, want := fmt.Sprintf("/r%d/%d", route, id), fmt.Sprintf("/r%d/{id}", route)
				if name := see(templates, &f, Scope{Origin: uint32(route % 3)}, text); name != text && name != want {
					t.Errorf("%s became %s", text, name)
				}
				if g == 0 && i%1000 == 0 {
					templates.Begin()
					templates.News()
					templates.Known(0)
				}
			}
		})
	}
	all.Wait()
	if templates.Known(0) == 0 {
		t.Error("nothing was learnt")
	}
}
