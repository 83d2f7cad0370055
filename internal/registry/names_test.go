package registry_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// honest are names that come in each interval, as applications have them. They look like
// identifiers, or have some in them.
var honest = map[string][]string{
	"routes":     numbered("GET /legit/route-%d", 0, 800),
	"codes":      numbered("TX %d", 600100, 40),
	"shards":     numbered("/shards/%d/stats", 0, 128),
	"answers":    numbered("answer %d", 200, 312),
	"years":      numbered("GET /archive/%d/", 1970, 60),
	"plans":      numbered("POST /plans/%d?tier=gold", 1, 30),
	"hosts":      numbered("GET http://10.0.0.%d:8080/metrics", 1, 200),
	"hashes":     numbered("GET /assets/app-%08x.js", 3735928000, 300),
	"statements": numbered("SELECT * FROM orders_%d WHERE state = 'open'", 1, 100),
	"queues":     numbered("orders.%d.created", 100000, 50),
	"kubernetes": {
		"listCoreV1NamespacedPod", "readCoreV1NamespacedPodLog", "createCoreV1Namespace",
		"patchAppsV1NamespacedDeployment",
		"watchCoreV1PodListForAllNamespaces", "listBatchV1NamespacedJob", "deleteCoreV1NamespacedSecret",
		"replaceAppsV1NamespacedStatefulSet",
		"getApiextensionsV1APIResources", "readStorageV1StorageClass", "connectCoreV1GetNamespacedPodExec",
		"listRbacAuthorizationV1ClusterRole",
	},
	"methods": {
		"createOAuth2ClientV1", "updateOAuth2ClientV1", "deleteOAuth2ClientV1", "listOAuth2ClientsV1",
		"rotateX509CertV2", "verifyEd25519KeyV1",
		"convertMp4ToWebm", "encodeBase64Url", "hashSha256Stream", "syncS3Bucket2Gcs", "parseIpv4Header",
		"openH264Stream",
	},
	"actions": func() (names []string) {
		for _, verb := range []string{"Describe", "Create", "Delete", "Modify"} {
			for _, noun := range []string{
				"Vpcs", "Subnets", "Instances", "Volumes", "Images", "KeyPairs",
				"Snapshots", "RouteTables", "NatGateways", "SecurityGroups",
			} {
				names = append(names, "POST /?Action="+verb+noun,
					"POST /?Action="+verb+noun+"&Version=2016-11-15")
			}
		}
		return names
	}(),
	"uuids": func() (names []string) { // of few tenants
		for i := range 100 {
			names = append(names, fmt.Sprintf("GET /tenants/550e8400-e29b-41d4-a716-4466554400%02x", i))
		}
		return names
	}(),
}

func numbered(format string, from, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf(format, from+i))
	}
	return names
}

// floods make values that come once.
var floods = map[string]func(*rand.Rand) string{
	"none":    nil,
	"words":   func(r *rand.Rand) string { return "GET /" + letters(r) + "/" + letters(r) },
	"numbers": func(r *rand.Rand) string { return fmt.Sprint("GET /users/", r.Uint64N(1e12)) },
	"uuids": func(r *rand.Rand) string {
		return fmt.Sprintf("GET /orders/%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16),
			r.IntN(1<<12), r.IntN(1<<12), r.Uint64()>>16)
	},
	"alike": func(r *rand.Rand) string { return fmt.Sprint("TX ", 700000+r.Uint64N(1e12)) },
	"mixed": func(r *rand.Rand) string {
		return []string{
			"GET /" + letters(r), fmt.Sprint("GET /users/", r.Uint64()),
			fmt.Sprintf("GET /%016x/%d", r.Uint64(), r.IntN(100)),
			fmt.Sprintf("SELECT * FROM t WHERE id = %d", r.Uint64()), "job " + letters(r),
		}[r.IntN(5)]
	},
}

func letters(r *rand.Rand) string {
	text := make([]byte, 12)
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	return string(text)
}

// once is how many values of a flood come in an interval.
const once = 1200

// interval sends the traffic of one interval and returns the spans that were not under their
// own name, by name. The flood comes before, between and behind the names, each of which comes
// so often.
func interval(intervals *registry.Intervals, rnd *rand.Rand, names []string, times int,
	flood func(*rand.Rand) string,
) (lost map[string]int) {
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
	lost = map[string]int{}
	floods := func(n int) {
		for i := 0; flood != nil && i < n; i++ {
			r.Admit(origin, resource(flood(rnd)), false)
		}
	}
	all := slices.Repeat(names, times)
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	floods(once / 2)
	for _, name := range all {
		if got := rowOf(r, r.Admit(origin, resource(name), false)); got.Resource != name {
			lost[name]++
		}
		floods(once / 4 / len(all))
	}
	floods(once / 4)
	return lost
}

// TestWhatComesTwiceHasItsName holds the promise of docs/architecture.md with masks as they are
// by default. A mask is no name. Names that come twice in each interval have all of their spans
// under their names from their third interval on, without a flood and behind one, when they
// begin with it, when they begin behind it, and again after a pause.
func TestWhatComesTwiceHasItsName(t *testing.T) {
	for kind, names := range honest {
		for shape, flood := range floods {
			t.Run(kind+" behind "+shape, func(t *testing.T) {
				config := testConfig()
				intervals, rnd := registry.NewIntervals(&config), rand.New(rand.NewPCG(7,
					uint64(len(kind)+len(shape))))
				come := func(n int, names []string, when string) {
					for i := range n {
						if lost := interval(intervals, rnd, names, 2, flood); i >= 2 && len(lost) > 0 {
							t.Fatalf("%s, interval %d: %d of %d names lost spans, such as %v", when, i+1,
								len(lost), len(names), some(lost))
						}
						intervals.Begin()
					}
				}
				come(4, names, "from the start")
				come(3, names[:1], "all but one pause")
				come(4, names, "after a pause")
			})
		}
	}
}

func some(names map[string]int) (few []string) {
	for name := range names {
		if few = append(few, name); len(few) == 3 {
			break
		}
	}
	return few
}

// TestWhatBeginsBehindAFloodHasItsName: also where the flood has run alone for some intervals.
func TestWhatBeginsBehindAFloodHasItsName(t *testing.T) {
	for kind, names := range honest {
		for shape, flood := range floods {
			t.Run(kind+" behind "+shape, func(t *testing.T) {
				config := testConfig()
				intervals, rnd := registry.NewIntervals(&config), rand.New(rand.NewPCG(8, uint64(len(kind))))
				for range 3 {
					interval(intervals, rnd, []string{"GET /"}, 2, flood)
					intervals.Begin()
				}
				for i := range 4 {
					if lost := interval(intervals, rnd, names, 2, flood); i >= 2 && len(lost) > 0 {
						t.Fatalf("interval %d: %d of %d names lost spans, such as %v", i+1, len(lost),
							len(names), some(lost))
					}
					intervals.Begin()
				}
			})
		}
	}
}

// TestAFloodHasMasks: what has an identifier and no place is counted under its mask, which
// keeps its place as whatever repeats, and what has none collapses.
func TestAFloodHasMasks(t *testing.T) {
	for _, l := range []span.Label{span.LabelResource, span.LabelHTTPEndpoint} {
		config := testConfig()
		config.Budgets[l] = 64
		intervals, rnd := registry.NewIntervals(&config), rand.New(rand.NewPCG(1, 20))
		own, masked, blocked, keys := 0, 0, 0, uint64(0)
		for i := range 4 {
			r := intervals.Registry()
			origin, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
			for range 3000 {
				value := floods["uuids"](rnd)
				key := span.Key{Service: "s", Operation: "o", Resource: "r"}
				*key.Text(l) = value
				a := r.Admit(origin, &key, false)
				switch got := *rowOf(r, a).Text(l); got {
				case value:
					own++
				case "GET /orders/{uuid}":
					if masked++; a.Masked != set(l) || a.Collapsed != 0 || a.Whole() {
						t.Fatalf("%s is said to be %+v", value, a)
					}
					keys++
				default:
					blocked++
				}
				*key.Text(l) = "GET /" + letters(rnd)
				if a = r.Admit(origin, &key, false); a.Masked != 0 {
					t.Fatalf("words became %s", *rowOf(r, a).Text(l))
				}
			}
			if i > 0 && blocked > 1 {
				t.Fatalf("interval %d: %d of a flood collapsed", i, blocked)
			}
			intervals.Begin()
		}
		if own > 4*64 || intervals.Masked()[l.String()] != keys {
			t.Errorf("%d values have their own names, %d are masked and %v are said to be", own, masked,
				intervals.Masked())
		}
	}
}

// TestMasksByMode: always, each value of a resource or endpoint that has an identifier; never,
// none; over the budget, none of another label.
func TestMasksByMode(t *testing.T) {
	const value, maskOf = "GET /users/17", "GET /users/{id}"
	for mode, want := range map[registry.Masking]string{
		registry.MaskAlways:     maskOf,
		registry.MaskOverBudget: value, registry.MaskNever: value,
	} {
		r, origin := one(t, func(c *registry.Config) { c.Masking = mode })
		for range 3 {
			key := span.Key{
				Service: value, Operation: value, Resource: value, HTTPEndpoint: value,
				Type: value,
			}
			a := r.Admit(origin, &key, false)
			if got := rowOf(r, a); got.Resource != want || got.HTTPEndpoint != want || got.Type != value ||
				got.Service != value || a.Whole() != (want == value) {
				t.Errorf("%s: it became %+v, %+v", mode, got, a)
			}
		}
	}
	for mode, isMasked := range map[registry.Masking]bool{
		registry.MaskNever:      false,
		registry.MaskOverBudget: true,
	} {
		r, origin := one(t, func(c *registry.Config) {
			c.Masking, c.Budgets[span.LabelResource], c.Budgets[span.LabelType] = mode, 8, 8
		})
		masked := registry.LabelSet(0)
		for i := range 40 {
			key := resource(fmt.Sprint("GET /users/", i))
			key.Type = key.Resource
			masked |= r.Admit(origin, key, false).Masked
		}
		if want := set(span.LabelResource); isMasked && masked != want || !isMasked && masked != 0 {
			t.Errorf("%s: %b are masked", mode, masked)
		}
	}
}

// TestAMaskFitsItsLabel: it may be longer than the text was.
func TestAMaskFitsItsLabel(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Masking = registry.MaskAlways })
	for text, isMasked := range map[string]bool{
		"/a/1": true, "/" + long(196) + "/1": false,
		"/" + long(190) + "/123456": true,
	} {
		key := span.Key{Service: "s", Operation: "o", Resource: "r", HTTPEndpoint: text}
		if a := r.Admit(origin, &key, false); a.Masked.Has(span.LabelHTTPEndpoint) != isMasked {
			t.Errorf("%s became %s", text, rowOf(r, a).HTTPEndpoint)
		}
	}
}

// TestMasksOfStatistics: every label that may be masked is there before any is.
func TestMasksOfStatistics(t *testing.T) {
	config := testConfig()
	if masked := registry.NewIntervals(&config).Masked(); len(masked) != 2 || masked["resource"] != 0 ||
		masked["http_endpoint"] != 0 {
		t.Errorf("they are %v", masked)
	}
	var m registry.Masking
	for _, name := range []string{"always", "never", "over-budget"} {
		if err := m.Set(name); err != nil || m.String() != name {
			t.Errorf("%s is %s, %v", name, m, err)
		}
	}
	if err := m.Set("sometimes"); err == nil {
		t.Error("sometimes is a mode")
	}
}

// TestAKeyWithoutARowIsNotMasked: it is counted without any name, so it is not among those that
// are said to have a mask.
func TestAKeyWithoutARowIsNotMasked(t *testing.T) {
	config := testConfig()
	config.MaxAggregates, config.Budgets[span.LabelResource] = 8, 8
	intervals := registry.NewIntervals(&config)
	r := intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{})
	masked, lost := uint64(0), 0
	for i := range 200 {
		a := r.Admit(origin, &span.Key{
			Service: "s", Operation: "o", Resource: fmt.Sprint("GET /a/", i), Type: fmt.Sprint("t", i%20),
		}, false)
		if a.Masked != 0 {
			masked++
		}
		if a.Collapsed.Has(span.WholeKey) {
			lost++
		}
	}
	if said := intervals.Masked()["resource"]; masked == 0 || lost == 0 || said != masked {
		t.Errorf("%d keys are masked and %d have no row; %d are said to be masked", masked, lost, said)
	}
}
