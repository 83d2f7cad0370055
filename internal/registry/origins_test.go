package registry_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// pod is an origin that an attribute tells from the others of its service.
func pod(service, name string) span.Origin {
	attributes := span.AppendAttribute(nil, "k8s.pod.name", name)
	return span.Origin{Service: service, Host: name, Attributes: string(attributes)}
}

// TestOrigins_ShortLivedPodsEvictNone: with many pods that exist in one interval only, lasting pods
// and services have their own origins in every interval. Lasting ones that begin later have them
// after one interval. The service of every pod is known.
func TestOrigins_ShortLivedPodsEvictNone(t *testing.T) {
	const most, staying, rounds, begin = 64, 15, 12, 4
	config := testConfig()
	config.MaxOrigins = most
	intervals := registry.NewIntervals(&config)
	rnd := rand.New(rand.NewPCG(8, 31))
	for round := range rounds {
		var all, honest []span.Origin
		for i := range staying {
			honest = append(honest, pod("shop", fmt.Sprint("shop-", i)),
				span.Origin{Service: fmt.Sprint("service ", i)})
		}
		if round >= begin {
			honest = append(honest, pod("late", "late-1"), pod("late", "late-2"),
				span.Origin{Service: "late service"})
		}
		for range 300 {
			all = append(all, pod("job", fmt.Sprintf("job-%x", rnd.Uint64())))
		}
		if all = append(all, honest...); round < begin { // later the worst comes first
			rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		r := intervals.Registry()
		shared := map[span.Origin]bool{}
		ids := map[registry.OriginID]bool{}
		for _, o := range all {
			id, isShared := r.AdmitOriginOrShared(o, 0)
			shared[o], ids[id] = isShared, true
			if names, _ := r.Contents(); names[id].Service != o.Service {
				t.Fatalf("round %d: %+v is counted as %+v", round, o, names[id])
			}
		}
		for _, o := range honest {
			isNew := round < 2 || round == begin
			if shared[o] && (!isNew || o.Attributes == "") {
				t.Errorf("round %d: %s %s has no separate origin", round, o.Service, o.Host)
			}
		}
		if len(ids) > most {
			t.Errorf("round %d: %d origins, at most %d", round, len(ids), most)
		}
		intervals.Begin()
	}
}

// TestOrigins_LastingPodsKeepTheirs checks that lasting pods keep their origins even if pods that exist for two
// intervals come first, and that a new service gets an origin.
func TestOrigins_LastingPodsKeepTheirs(t *testing.T) {
	config := testConfig()
	config.MaxOrigins = 64
	intervals := registry.NewIntervals(&config)
	for round := range 10 {
		r := intervals.Registry()
		for i := range 200 {
			if round > 2 {
				r.AdmitOriginOrShared(pod("job", fmt.Sprint("job-", 100*round+i)), 0)
			}
		}
		for i := range 20 {
			if _, isShared := r.AdmitOriginOrShared(pod("shop", fmt.Sprint("shop-", i)), 0); isShared {
				t.Errorf("round %d: pod %d has lost its place", round, i)
			}
		}
		if _, isShared := r.AdmitOriginOrShared(span.Origin{Service: fmt.Sprint("service ", round)}, 0); isShared {
			t.Errorf("round %d: there is no place for a service", round)
		}
		if names, _ := r.Contents(); len(names) > config.MaxOrigins {
			t.Errorf("round %d: there are %d origins", round, len(names))
		}
		intervals.Begin()
	}
}

// TestOrigins_ProcessLeavesRoomForServices: a process with any number of pods leaves slots for services.
func TestOrigins_ProcessLeavesRoomForServices(t *testing.T) {
	config := testConfig()
	config.MaxOrigins = 32
	intervals := registry.NewIntervals(&config)
	for round := range 4 {
		r, separate := intervals.Registry(), 0
		for i := range 100 {
			if _, isShared := r.AdmitOriginOrShared(pod("job", fmt.Sprint(i)), 7); !isShared {
				separate++
			}
		}
		if separate != 12 { // three quarters of the half that a process may have
			t.Errorf("round %d: %d pods have separate origins", round, separate)
		}
		if _, isShared := r.AdmitOriginOrShared(span.Origin{Service: "shop"}, 7); isShared {
			t.Errorf("round %d: a service of the same process has none", round)
		}
		intervals.Begin()
	}
}
