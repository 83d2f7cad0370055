//go:build !race

package daemon

import (
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	receiverotlp "github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// combinations are configurations with each set of receivers and destinations that an operator can
// choose, by name.
func combinations(t *testing.T) map[string]Config {
	t.Helper()
	endpoint, badEndpoint := otlp.ParseEndpoint("http://127.0.0.1:4318")
	forward, badForward := receiverotlp.ParseCollector("http://127.0.0.1:4318")
	metrics, badMetrics := otlp.New(otlp.Config{Variables: otlp.Variables{Endpoint: endpoint}})
	totals, badTotals := otlp.New(otlp.Config{
		Variables: otlp.Variables{Endpoint: endpoint}, Temporality: otlp.Cumulative,
	})
	zipkins, badZipkin := zipkin.Protocol.Parse("http://127.0.0.1:9410")
	if err := errors.Join(badEndpoint, badForward, badMetrics, badTotals, badZipkin); err != nil {
		t.Fatal(err)
	}
	scraped := prometheus.New(prometheus.Config{Bounds: []float64{
		.005, .01, .05, .1, .2, .4, .8, 1, 1.4, 2,
		5, 10, 15,
	}})
	table := exemplars.New(exemplars.DefaultLimit)
	type choice struct {
		name   string
		choose func(c *Config)
	}
	none := choice{"", func(*Config) {}}
	takes := func(c *Config) { c.OTLP.Addr = "127.0.0.1:4319" }
	forwards := func(c *Config) { takes(c); c.OTLP.Forward = forward }
	reports := func(c *Config) { c.Zipkin.Addr, c.Zipkin.Forward = "127.0.0.1:9411", zipkins }
	all := map[string]Config{"": usable(t)}
	for _, choices := range [][]choice{
		{none, {"Datadog receiver ", func(c *Config) { c.APM.Addr = "127.0.0.1:8127" }}},
		{
			none,
			{"OTLP ", takes},
			{"forwarded OTLP ", forwards},
			{"sampled OTLP ", func(c *Config) { forwards(c); c.OTLP.Keep = &sampling.Policy{} }},
			{"forwarded Zipkin ", reports},
			{"forwarded OTLP and Zipkin ", func(c *Config) { forwards(c); reports(c) }},
		},
		{none, {"with Datadog semantics ", func(c *Config) {
			c.OTLP.Semantics, c.OTLP.MarksCounted = receiverotlp.SemanticsDatadog, c.OTLP.Forward.IsSet()
		}}},
		{
			none,
			{"to metrics ", func(c *Config) { c.Exporters = []export.Exporter{metrics.Describe()} }},
			{"to running totals ", func(c *Config) { c.Exporters = []export.Exporter{totals.Describe()} }},
			{"to a scrape only ", func(c *Config) { c.Prometheus, c.Agent.URL = scraped, agent.URL{} }},
			{"to metrics and a scrape ", func(c *Config) {
				c.Exporters, c.Prometheus = []export.Exporter{metrics.Describe()}, scraped
			}},
			{"to running totals only ", func(c *Config) {
				c.Exporters, c.Agent.URL = []export.Exporter{totals.Describe()}, agent.URL{}
			}},
		},
	} {
		further := map[string]Config{}
		for before, config := range all {
			for _, c := range choices {
				made := config
				c.choose(&made)
				if len(made.exporters()) > 0 && ForwardsTraces(&made) {
					made.Exemplars = table
				}
				further[before+c.name] = made
			}
		}
		all = further
	}
	maps.DeleteFunc(all, func(name string, c Config) bool {
		return c.checkDestinations() != nil || strings.Contains(name, "reading") && !c.OTLP.Enabled()
	})
	return all
}

// TestMemory_DefaultsFitAnyLimit expects that the defaults can be lowered to fit in any memory from
// leastMemory on, for any receivers and destinations. Below that, the only error is about memory.
func TestMemory_DefaultsFitAnyLimit(t *testing.T) {
	for name, config := range combinations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fitsFrom := 0
			for mib := 1; mib <= 512; mib++ {
				c := config
				FitMemory(&c, memory.Limit{Bytes: int64(mib) << 20, Source: "a test"}, noneSet)
				if fitsFrom == 0 && !c.fits() && mib%8 != 0 {
					continue // composing advice takes long
				}
				wrong, tooMuch := c.checkComponents(), c.checkMemory()
				switch {
				case wrong != nil:
					t.Errorf("at %d MiB: %v", mib, wrong)
				case tooMuch == nil && fitsFrom == 0:
					fitsFrom = mib
				case tooMuch != nil && (fitsFrom > 0 || !strings.Contains(tooMuch.Error(), "allow more")):
					t.Errorf("it fits from %d MiB on, and at %d MiB: %v", fitsFrom, mib, tooMuch)
				}
			}
			if fitsFrom == 0 || fitsFrom > leastMemory(&config) {
				t.Errorf("it fits from %d MiB on", fitsFrom)
			}
		})
	}
}

// leastMemory returns the MiB in which everything fits: 90, plus 22 with both OTLP and Zipkin.
func leastMemory(c *Config) int {
	least := 90
	if c.OTLP.Enabled() && c.Zipkin.Enabled() {
		least = 112
	}
	if c.Prometheus != nil {
		least += 8
	}
	return least
}

// noneSet is the isSet of an operator that has set no limit.
func noneSet(string) bool { return false }

// TestMemory_SetLimitsFitOrAreNamed sets some limits to values from a 64th to 64 times their
// defaults, in any memory. The configuration then fits, or the error names a limit that was set.
func TestMemory_SetLimitsFitOrAreNamed(t *testing.T) {
	configs := combinations(t)
	names := slices.Sorted(maps.Keys(configs))
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 32))
		name := names[random.IntN(len(names))]
		c := configs[name]
		set := map[string]bool{}
		for range 1 + random.IntN(3) {
			limits := c.limits()
			limit := flagsWithLimits[random.IntN(len(flagsWithLimits))]
			if value := limits[limit]; !set[limit] {
				*value = max(1, *value<<random.IntN(7)>>random.IntN(7))
				set[limit] = true
				c.Settings = append(c.Settings, status.Setting{Name: limit, Origin: status.FromFlag})
			}
		}
		mib := 1 + random.IntN(512)
		FitMemory(&c, memory.Limit{Bytes: int64(mib) << 20, Source: "a test"}, func(limit string) bool {
			return set[limit]
		})
		wrong := errors.Join(c.checkComponents(), c.checkMemory())
		if wrong == nil {
			continue
		}
		isNamed := mib < leastMemory(&c) // the defaults alone can be too large here
		for limit := range set {
			named := regexp.MustCompile(`(check |--)` + limit + `([^-a-z]|$)`)
			isNamed = isNamed || named.MatchString(wrong.Error())
		}
		if !isNamed {
			t.Errorf("seed %d: %q at %d MiB with %v: %v", seed, name, mib, set, wrong)
		}
	}
}

// flagsWithLimits are the flags that depend on the memory, unless they are set.
var flagsWithLimits = []string{
	"max-aggregates", "label-bytes", "sketch-bytes", "max-origins", "drainers", "ring-slots",
	"max-key-bytes", "max-key-bytes-total", "retry-bytes", "max-connections", "apm-max-body",
	"apm-max-body-bytes", "apm-max-connections", "otlp-max-body", "otlp-max-body-bytes",
	"otlp-max-connections", "zipkin-max-body", "zipkin-max-body-bytes", "zipkin-max-connections",
}
