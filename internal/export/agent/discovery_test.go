package agent

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

func TestInfo_ReadUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{}
		agent.info = func() (agentInfo, error) {
			if len(agent.asked) < 3 {
				return agentInfo{}, errors.New("no agent yet")
			}
			return agentInfo{features: Features{Stats: true, PeerTags: []string{"db.name"}}, state: "s"}, nil
		}
		f, _ := startScripted(t, agent, nil)
		synctest.Wait()
		before, changed := f.WatchFeatures()
		if !reflect.DeepEqual(before, DefaultFeatures()) || len(before.PeerTags) != 44 ||
			len(before.SpanKinds) != 4 {
			t.Errorf("features before the agent was asked: %+v", before)
		}
		began := time.Now()
		<-changed
		if waited := time.Since(began); waited != 2*discoveryPause {
			t.Errorf("known after %v, want the third read", waited)
		}
		if got := f.Features(); len(got.PeerTags) != 1 || !got.Stats {
			t.Errorf("features %+v", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(agent.asked) != 3 {
			t.Errorf("asked %d times, want 3", len(agent.asked))
		}
	})
}

func TestInfo_ReadAgainAfterStateChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{}
		f, _ := startScripted(t, agent, nil)
		synctest.Wait()
		for i, step := range []struct {
			state string
			asked int
		}{
			{"first", 1},
			{"first", 1},
			{"", 1},
			{"second", 2},
			{"second", 2}, // not the hash of /info, as with a proxy
			{"third", 3},
			{"first", 3},
		} {
			agent.answers(always(post.Answer{Header: http.Header{"Datadog-Agent-State": {step.state}}}))
			f.Accept(testcycle.Spans(1))
			synctest.Wait()
			if len(agent.asked) != step.asked {
				t.Errorf("step %d: asked %d times, want %d", i, len(agent.asked), step.asked)
			}
		}
	})
}

func TestDowngrade_AndRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{answer: always(failed(export.OutcomeNotWanted, false, errors.New("404")))}
		f, log := startScripted(t, agent, nil)
		synctest.Wait()
		_, changed := f.WatchFeatures()
		f.Accept(testcycle.Spans(1))
		<-changed
		synctest.Wait()
		if f.Features().Stats || len(agent.asked) != 1 {
			t.Errorf("features %+v, asked %d times", f.Features(), len(agent.asked))
		}
		// Later payloads are dropped without an attempt.
		sealed := testcycle.Spans(2)
		f.Accept(sealed)
		if err, _ := resolution(sealed.Delivery); err == nil ||
			!strings.Contains(err.Error(), "does not accept statistics") || agent.tried() != 1 {
			t.Errorf("delivery %v after %d tries", err, agent.tried())
		}
		if s := balanced(t, f, 3); s.Unsent[export.NotWanted] != 3 {
			t.Errorf("stats %+v", s)
		}
		_, changed = f.WatchFeatures()
		began := time.Now()
		agent.answers(nil)
		<-changed
		if waited := time.Since(began); waited != discoveryPause || !f.Features().Stats {
			t.Errorf("recovered after %v: %+v", waited, f.Features())
		}
		f.Accept(testcycle.Spans(4))
		synctest.Wait()
		if s := balanced(t, f, 7); s.Flushed != 4 {
			t.Errorf("stats %+v", s)
		}
		if strings.Count(log.String(), "does not accept statistics") != 1 ||
			strings.Count(log.String(), "accepts statistics again") != 1 {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestInfo_WithoutEndpointIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &scripted{info: func() (agentInfo, error) { return agentInfo{}, nil }}
		f, _ := startScripted(t, agent, nil)
		time.Sleep(5*discoveryPause + time.Second)
		synctest.Wait()
		if f.Features().Stats || len(agent.asked) != 6 {
			t.Errorf("features %+v, asked %d times", f.Features(), len(agent.asked))
		}
	})
}

func TestInfo_AgentsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []int{0, 1 << 20} {
			f, _ := startScripted(t, &scripted{info: func() (agentInfo, error) {
				return agentInfo{features: Features{Stats: true, MaxRequestBytes: limit}}, nil
			}}, nil)
			synctest.Wait()
			x := f.Describe()
			if accepts, bytes := x.AcceptsStatistics(), x.PayloadLimit(); !accepts || bytes != limit {
				t.Errorf("agent with a limit of %d: accepts statistics %v, of %d bytes at most", limit, accepts, bytes)
			}
		}
	})
}

func TestParseInfo(t *testing.T) {
	got, err := parseInfo([]byte(`{"endpoints": ["/v0.4/traces", "/v0.6/stats"], "peer_tags": ["a", "b"],
		"span_kinds_stats_computed": ["server", "client"], "ignore_resources": ["^GET /health$"],
		"obfuscation_version": 2, "config": {"max_request_bytes": 1048576}, "something_new": {"x": [1]}}`))
	want := Features{
		Stats: true, PeerTags: []string{"a", "b"}, SpanKinds: []string{"client", "server"},
		IgnoreResources: []string{"^GET /health$"}, ObfuscationVersion: 2, MaxRequestBytes: 1 << 20,
	}
	if err != nil || !reflect.DeepEqual(got.features, want) {
		t.Errorf("features %+v, %v, want %+v", got.features, err, want)
	}
	for body, kinds := range map[string]int{
		`{}`: 4, `{"span_kinds_stats_computed": null}`: 0,
		`{"peer_tags": null, "span_kinds_stats_computed": []}`: 0,
	} {
		got, err := parseInfo([]byte(body))
		if err != nil || got.features.Stats || len(got.features.SpanKinds) != kinds ||
			len(got.features.PeerTags) != 0 {
			t.Errorf("%s: %+v, %v", body, got.features, err)
		}
	}
	for _, body := range []string{
		``, `[]`, `{"endpoints": 7}`, `{"span_kinds_stats_computed": 3}`,
		`<html>`,
	} {
		if _, err := parseInfo([]byte(body)); err == nil {
			t.Errorf("%q was accepted as an agent's info", body)
		}
	}
}
