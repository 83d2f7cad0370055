package otel

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"
)

// chained is the number of requests: enough that a tenth of one percent of them is not zero.
const chained = 3000

// names are the names of the services in a chain. Each one except the last calls the next.
var names = [3]string{"first", "second", "third"}

// caller is a service of a chain in one language.
type caller struct {
	language
	digits int // number of significant digits in the thresholds of its SDK
}

// chain is three services with their samplers. Each has its own daemon, which forwards a share of the
// traces.
type chain struct {
	callers    [3]caller
	samplers   [3]sampler
	keep       float64
	isUpstream bool // the caller of the first service has already made a sampling decision
}

// TestSamplers tests services with the Go SDK.
func TestSamplers(t *testing.T) {
	one := caller{language: language{command: []string{buildChain(t)}}, digits: 4}
	all := [3]caller{one, one, one}
	for _, rates := range [][3]float64{
		{0.01, 0.01, 0.01},
		{0.1, 0.1, 0.1},
		{1, 1, 1},
		{1, 0.1, 0.01},
		{0.01, 0.1, 1},
	} {
		for _, keep := range []float64{0.5, 0.1} {
			chainOf(all, false, rates, keep).test(t)
			if rates[0] == rates[2] {
				chainOf(all, true, rates, keep).test(t)
			}
		}
	}
	for _, keep := range []float64{1, 0.5, 0.05} {
		for _, isParent := range []bool{true, false} {
			c := chainOf(all, isParent, [3]float64{0.1, 0.5, 0.1}, keep)
			c.isUpstream = true
			c.test(t)
		}
	}
}

// buildChain builds the Go service.
func buildChain(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "chain")
	if out, err := exec.Command("go", "build", "-o", program, "./apps/chain").CombinedOutput(); err != nil {
		t.Fatalf("build the service: %v: %s", err, out)
	}
	return program
}

func chainOf(callers [3]caller, isParent bool, rates [3]float64, keep float64) chain {
	c := chain{callers: callers, keep: keep}
	for i, rate := range rates {
		c.samplers[i] = sampler{isParent: isParent, rate: rate, digits: callers[i].digits}
	}
	return c
}

// one identifies a span: a service has at most one span of a kind per trace.
type one struct {
	service, id string
	isServer    bool
}

func (c chain) test(t *testing.T) {
	t.Helper()
	t.Run(fmt.Sprintf("%v keep %v upstream %v", c.samplers, c.keep, c.isUpstream), func(t *testing.T) {
		asked := make([]said, chained)
		for n := range asked {
			asked[n] = root(n)
			if c.isUpstream {
				asked[n] = decided(n)
			}
		}
		behind := startReceiver(t)
		pods := c.start(t, behind)
		ask(t, pods[0].url+"/orders/0", asked)
		for _, p := range pods {
			p.stop(t)
		}
		came := c.model(asked)
		want := map[one]said{}
		for s, of := range came {
			if left, goesOn := of.sampled(thresholdOf(c.keep, 4)); goesOn {
				want[s] = left
			}
		}
		behind.mu.Lock()
		defer behind.mu.Unlock()
		got := arrived(t, behind.taken)
		compareSpans(t, got, want)
		c.compareTraces(t, got, asked)
		for i, p := range pods {
			counted := p.compareWeights(t, came)
			compareEstimate(t, p.service, counted, got, came, thresholdOf(c.keep, 4))
			if !c.isUpstream {
				compareTruth(t, p.service, counted, c.samplers[i], i < len(pods)-1)
			}
		}
	})
}

// start starts a chain, the last service first.
func (c chain) start(t *testing.T, behind *receiver) (pods [3]*pod) {
	t.Helper()
	var next []string
	for i := len(pods) - 1; i >= 0; i-- {
		flags := []string{"--otlp-forward", behind.url, "--otlp-keep", fmt.Sprint(c.keep)}
		env := append(next, "SAMPLER="+c.samplers[i].String())
		pods[i] = c.callers[i].start(t, start(t, flags...), names[i], "http/protobuf", env...)
		next = []string{"NEXT_URL=" + pods[i].url + "/orders/0"}
	}
	return pods
}

// decided returns the trace context of the n-th request as sent by an upstream service that makes
// sampling decisions. For half of the requests that service samples a tenth and sends the threshold,
// with explicit randomness or that of the trace ID. For the other half it sends only the sampled flag.
func decided(n int) said {
	sum := sha256.Sum256([]byte("upstream" + strconv.Itoa(n)))
	s := said{id: [16]byte(sum[:16]), isSampled: true, threshold: none, randomness: none}
	if n%2 == 0 {
		s.randomness, _ = strconv.ParseInt(fmt.Sprintf("%x", sum[16:23]), 16, 64)
	}
	if n%4 < 2 {
		s.threshold = thresholdOf(0.1, 4)
		s.isSampled = s.random() >= s.threshold
	}
	if !s.isSampled {
		s.threshold = none
	}
	return s
}

// ask sends the requests, a few concurrently.
func ask(t *testing.T, url string, asked []said) {
	t.Helper()
	const users = 8
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: users}}
	defer client.CloseIdleConnections()
	var asking sync.WaitGroup
	for user := range users {
		asking.Go(func() {
			for n := user; n < len(asked); n += users {
				request, err := http.NewRequest(http.MethodGet, url, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if s := asked[n]; !s.isRoot {
					flags := map[bool]string{true: "01", false: "00"}[s.isSampled]
					request.Header.Set("Traceparent", fmt.Sprintf("00-%x-%016x-%s", s.id, n+1, flags))
					if entry := s.entry(); entry != "" {
						request.Header.Set("Tracestate", "vendor=x,ot="+entry)
					}
				}
				answer, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("request %d: %s", n, answer.Status)
				}
			}
		})
	}
	asking.Wait()
}

// model returns the spans that the SDKs export according to the specification.
func (c chain) model(asked []said) map[one]said {
	came := map[one]said{}
	for _, s := range asked {
		for i, sampler := range c.samplers {
			for _, isServer := range []bool{true, false} {
				if isLast := i == len(c.samplers)-1; isLast && !isServer {
					continue
				}
				if s = sampler.child(s); s.isSampled {
					came[one{names[i], fmt.Sprintf("%x", s.id), isServer}] = s
				}
			}
		}
	}
	return came
}

// arrived returns the forwarded spans with their OpenTelemetry tracestate entry.
func arrived(t *testing.T, taken []*traces.ResourceSpans) map[one]string {
	t.Helper()
	got := map[one]string{}
	for _, resource := range taken {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				of := one{service, fmt.Sprintf("%x", s.TraceId), s.Kind == traces.Span_SPAN_KIND_SERVER}
				if _, isTwice := got[of]; isTwice {
					t.Errorf("%v went on twice", of)
				}
				got[of] = entryOf(s.TraceState)
			}
		}
	}
	return got
}

// entryOf returns the OpenTelemetry tracestate entry, with its pairs in the order of the model.
func entryOf(state string) string {
	for _, member := range strings.Split(state, ",") {
		if entry, is := strings.CutPrefix(member, "ot="); is {
			pairs := strings.Split(entry, ";")
			slices.Sort(pairs)
			slices.Reverse(pairs)
			return strings.Join(pairs, ";")
		}
	}
	return ""
}

// compareSpans compares the forwarded spans with the model, span by span, including the threshold.
func compareSpans(t *testing.T, got map[one]string, want map[one]said) {
	t.Helper()
	wrong := 0
	for s, left := range want {
		if entry, goesOn := got[s]; !goesOn || entry != left.entry() {
			if wrong++; wrong <= 5 {
				t.Errorf("%+v: went on %v with %q, want %q", s, goesOn, entry, left.entry())
			}
		}
	}
	for s, entry := range got {
		if _, goesOn := want[s]; !goesOn {
			if wrong++; wrong <= 5 {
				t.Errorf("%+v went on with %q", s, entry)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d spans are wrong; %d went on, want %d", wrong, len(got), len(want))
	}
}

// compareTraces checks that a trace is forwarded completely or not at all if all samplers have the same
// threshold or follow the first one, and in any case if its randomness passes every threshold.
func (c chain) compareTraces(t *testing.T, got map[one]string, asked []said) {
	t.Helper()
	const whole = 5 // spans
	spans := map[string]int{}
	for s := range got {
		spans[s.id]++
	}
	strictest, isSame := thresholdOf(c.keep, 4), true
	for _, s := range c.samplers {
		strictest = max(strictest, thresholdOf(s.rate, s.digits))
		isSame = isSame && (s.isParent || s.rate == c.samplers[0].rate)
	}
	kept := 0
	for _, s := range asked {
		n := spans[fmt.Sprintf("%x", s.id)]
		if n > 0 {
			kept++
		}
		isKept := s.random() >= strictest && (s.isRoot || s.isSampled)
		if isKept && n != whole || isSame && n > 0 && n != whole {
			t.Errorf("of trace %x %d spans went on, want %d", s.id, n, whole)
		}
	}
	t.Logf("of %d of %d traces something went on", kept, len(asked))
}

// compareWeights checks that each span is counted with its adjusted count. It returns the agent's
// total. The agent receives whole numbers, so each group can be off by a rounding error.
func (p *pod) compareWeights(t *testing.T, came map[one]said) (counted float64) {
	t.Helper()
	spans, want := 0, 0.0
	for s, of := range came {
		if s.service == p.service {
			spans++
			want += weightOf(of.threshold)
		}
	}
	for _, g := range p.daemon.groups {
		counted += float64(g.Hits)
	}
	if int(p.accounting.Received) != spans || p.accounting.DroppedTotal() != 0 || spans == 0 {
		t.Errorf("%s: %d spans came, want %d; accounting %+v", p.service, p.accounting.Received, spans, p.accounting)
	}
	if math.Abs(counted-want) > float64(len(p.daemon.groups)) {
		t.Errorf("%s: the agent has %v in %d groups, want %v", p.service, counted, len(p.daemon.groups), want)
	}
	t.Logf("%s: %d spans came, counted for %v", p.service, spans, counted)
	return counted
}

// deviations is the number of standard deviations by which an estimate can be off. The IDs are the same
// in each run, so the result does not vary.
const deviations = 5

// compareEstimate checks that the adjusted counts of a service's forwarded spans add up to the counted
// spans, within the error of sampling whole traces.
func compareEstimate(t *testing.T, service string, counted float64, got map[one]string, came map[one]said,
	threshold int64,
) {
	t.Helper()
	estimate, variance := 0.0, 0.0
	for s, entry := range got {
		if s.service == service {
			estimate += weightIn(entry)
		}
	}
	ofTrace := map[string]float64{}
	for s, of := range came {
		if s.service != service {
			continue
		}
		ofTrace[s.id]++
		n, after := ofTrace[s.id], weightOf(max(threshold, of.threshold))
		share := weightOf(of.threshold) / after
		variance += (n*n - (n-1)*(n-1)) * after * after * share * (1 - share)
	}
	if off := math.Abs(estimate - counted); off > deviations*math.Sqrt(variance)+2 {
		t.Errorf("%s: what went on stands for %v, %v was counted; its error is %v", service, estimate,
			counted,
			math.Sqrt(variance))
	}
	t.Logf("%s: what went on stands for %.0f of %v, of which the error is %.0f", service, estimate, counted,
		math.Sqrt(variance))
}

// weightIn returns the adjusted count for an OpenTelemetry tracestate entry, whose first pair is the
// threshold.
func weightIn(entry string) float64 {
	digits, is := strings.CutPrefix(strings.Split(entry, ";")[0], "th:")
	if !is {
		return 1
	}
	threshold, err := strconv.ParseInt(digits+strings.Repeat("0", 14-len(digits)), 16, 64)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return weightOf(threshold)
}

// compareTruth checks that the counted spans match the number of requests, within the error of the
// SDK's sampler.
func compareTruth(t *testing.T, service string, counted float64, s sampler, hasNext bool) {
	t.Helper()
	spans := 1.0
	if hasNext {
		spans = 2
	}
	truth, deviation := spans*chained, spans*math.Sqrt(chained*(weightOf(thresholdOf(s.rate, s.digits))-1))
	if math.Abs(counted-truth) > deviations*deviation+2 {
		t.Errorf("%s: %v was counted of %v; the error is %v", service, counted, truth, deviation)
	}
}
