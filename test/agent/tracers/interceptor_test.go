//go:build languages

package tracers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestJavaInterceptor measures which facts about spans dd-java-agent exposes to a TraceInterceptor, and
// the effect of the interceptor's result. It checks the conclusions in docs/design/dd-java-agent.md and
// prints its tables; `make java-interceptor` runs it alone.

// fact is a fact by which spans are counted.
type fact struct {
	name, how string
	sent      func(sentSpan) string // value from which the agent counts
	seen      func(seen) string     // value that the interface exposes
	whole     bool                  // exposed for every span that has it
}

func tag(name string) func(seen) string { return func(s seen) string { return s.Tags[name] } }

func meta(name string) func(sentSpan) string { return func(s sentSpan) string { return s.Meta[name] } }

// metric returns the value of a numeric tag as an integer.
func metric(name string) func(sentSpan) string {
	return func(s sentSpan) string {
		if value, is := s.Metrics[name]; is {
			return fmt.Sprint(int64(value))
		}
		return ""
	}
}

// ifTrue formats a boolean fact.
func ifTrue(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

var facts = []fact{
	{"service, operation, resource, type", "`getServiceName` …", func(s sentSpan) string {
		return fmt.Sprint(s.Service, s.Name, s.Resource, s.Type)
	}, func(s seen) string { return fmt.Sprint(s.Service, s.Operation, s.Resource, s.Type) }, true},
	{"start, duration (ns)", "`getStartTime`, `getDurationNano`", func(s sentSpan) string {
		return fmt.Sprint(s.Start, s.Duration)
	}, func(s seen) string { return fmt.Sprint(s.Start, s.Duration) }, true},
	{
		"error", "`isError`", func(s sentSpan) string { return ifTrue(s.Error != 0) },
		func(s seen) string { return ifTrue(s.Error) }, true,
	},
	{"kind", "`span.kind`", meta("span.kind"), tag("span.kind"), true},
	{"HTTP status", "`http.status_code`", meta("http.status_code"), tag("http.status_code"), true},
	{"HTTP method", "`http.method`", meta("http.method"), tag("http.method"), true},
	{
		"gRPC status", "`rpc.grpc.status_code`", meta("rpc.grpc.status_code"), tag("rpc.grpc.status_code"),
		true,
	},
	{"top-level", "`_dd.top_level`", metric("_dd.top_level"), tag("_dd.top_level"), false},
	{
		"top-level, guessed", "is the local root, or has another service", metric("_dd.top_level"),
		func(s seen) string {
			if s.LocalRoot || s.Service != s.RootService {
				return "1"
			}
			return ""
		}, false,
	},
	{"measured", "`_dd.measured`", metric("_dd.measured"), tag("_dd.measured"), false},
	{
		"root of its trace", "none", func(s sentSpan) string { return ifTrue(s.ParentID == 0) },
		func(seen) string { return "" }, false,
	},
	{
		"root, guessed", "is the local root", func(s sentSpan) string { return ifTrue(s.ParentID == 0) },
		func(s seen) string { return ifTrue(s.LocalRoot) }, false,
	},
	{"peer tag", "`peer.service`", meta("peer.service"), tag("peer.service"), false},
	{"base service", "`_dd.base_service`", meta("_dd.base_service"), tag("_dd.base_service"), false},
	{"source of the service's name", "`_dd.svc_src`", meta("_dd.svc_src"), tag("_dd.svc_src"), false},
	{"origin, of synthetic tests", "`_dd.origin`", meta("_dd.origin"), tag("_dd.origin"), false},
	{
		"sampling priority", "`getSamplingPriority`",
		func(s sentSpan) string { return fmt.Sprint(s.priority) },
		func(s seen) string {
			if s.Priority == nil {
				return ""
			}
			return fmt.Sprint(*s.Priority)
		}, false,
	},
}

// measured counts how often a fact is exposed with the right value, how often a span has it, and how
// often it is exposed for a span without it.
type measured struct{ equal, have, wrong int }

func (f fact) measure(r run) (m measured) {
	for _, s := range r.seen {
		left, is := r.sent.spans[s.Row]
		if !is {
			continue
		}
		want, got := f.sent(left), f.seen(s)
		switch {
		case want == "" && got != "":
			m.wrong++
		case want != "":
			m.have++
			if want == got {
				m.equal++
			}
		}
	}
	return m
}

func (m measured) String() string {
	said := of(m.equal, m.have)
	if m.wrong > 0 {
		said += fmt.Sprintf(", and of %d that don't have it", m.wrong)
	}
	return said
}

func TestJavaInterceptor(t *testing.T) {
	shown(t, interceptorRun(t, "", false))
	fmt.Println("| what is done to every second trace | the tracer's statistics | of its spans, sent | of " +
		"the others | all spans that count, in its statistics | spans that its headers say are dropped | " +
		"its mark |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, a := range answers {
		for _, computes := range []bool{false, true} {
			a.check(t, interceptorRun(t, a.does, computes), computes)
		}
	}
}

// shown measures each fact.
func shown(t *testing.T, r run) {
	fmt.Println("| what a span is counted by | through the interface | shown as it left the tracer, of the " +
		"spans that have it |")
	fmt.Println("| --- | --- | --- |")
	for _, f := range facts {
		m := f.measure(r)
		fmt.Printf("| %s | %s | %s |\n", f.name, f.how, m)
		if m.have == 0 || (m.equal == m.have && m.wrong == 0) != f.whole {
			t.Errorf("%s: %s", f.name, m)
		}
	}
	parts, threads := map[int]bool{}, map[string]bool{}
	for _, s := range r.seen {
		if !s.Whole {
			parts[s.Call] = true
		}
		threads[digits.ReplaceAllString(s.Thread, "N")] = true
	}
	fmt.Printf("| the whole trace | the collection | %s calls without its local root |\n",
		of(len(parts), r.calls()))
	fmt.Printf("| whose thread it is | `Thread.currentThread` | %s |\n\n",
		strings.Join(slices.Sorted(maps.Keys(threads)), ", "))
	if len(r.sent.spans) != len(r.seen) || len(parts) == 0 {
		t.Errorf("%d spans shown, %d left the tracer, %d parts", len(r.seen), len(r.sent.spans), len(parts))
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// answer is the interceptor's action on every second trace.
type answer struct{ does, name string }

var answers = []answer{
	{"", "nothing"},
	{"empty", "an empty collection is returned"},
	{"drop", "its spans are tagged `manual.drop`"},
}

// check determines the effect of the action: whether traces dropped by an interceptor can be counted as
// dropped, like those that the tracer drops.
func (a answer) check(t *testing.T, r run, computes bool) {
	spans, left := [2]int{}, [2]int{} // of unaffected and of affected traces
	for _, s := range r.seen {
		done := (s.Call + 1) % 2
		spans[done]++
		if _, is := r.sent.spans[s.Row]; is {
			left[done]++
		}
	}
	fmt.Printf("| %s | %s | %s | %s | %d | %d | %s |\n", a.name,
		map[bool]string{true: "on", false: "off"}[computes],
		of(left[1], spans[1]), of(left[0], spans[0]), r.sent.statistics, r.sent.dropped,
		strings.Join(slices.Sorted(maps.Keys(r.sent.marks)), ", "))
	missing := spans[0] + spans[1] - left[0] - left[1]
	switch {
	case computes != (r.sent.statistics > 0), computes != (r.sent.marks["true"] > 0):
		t.Errorf("%s: statistics %v, marks %v", a.name, computes, r.sent.marks)
	case a.does == "empty" && (left[1] != 0 || missing <= r.sent.dropped):
		t.Errorf("%s: %d spans sent, %d missing, of which headers say %d", a.name, left[1], missing,
			r.sent.dropped)
	}
}
