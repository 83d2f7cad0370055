//go:build languages

package tracers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
)

// BenchmarkSaving runs each application with client-computed statistics on and off, in turns, and
// reports the median processor time per request of the application's process for both.
func BenchmarkSaving(b *testing.B) {
	const turns = 5
	for _, language := range []struct {
		name string
		app  app
		each int // requests per user, sent twice; the second half is measured
	}{{"python", pythonShop(), 1000}, {"node", nodeShop(), 2000}, {"java", javaShop(), 500}} {
		b.Run(language.name, func(b *testing.B) {
			costs := map[bool][]float64{}
			for range turns {
				for _, computes := range []bool{true, false} {
					costs[computes] = append(costs[computes],
						costOf(b, language.app, language.each, computes))
				}
			}
			middle := func(computes bool) float64 {
				return slices.Sorted(slices.Values(costs[computes]))[turns/2]
			}
			b.Logf("on %.1f off %.1f", costs[true], costs[false])
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(middle(true), "on-cpu-us/request")
			b.ReportMetric(middle(false), "off-cpu-us/request")
		})
	}
}

// costOf runs an application once and returns the time that it prints.
func costOf(b *testing.B, a app, each int, computes bool) (us float64) {
	b.Helper()
	agent := startAgent(b)
	daemon := startDaemon(b, agent.Socket, func(c *datadog.Config) { c.DropUnsampled = datadog.DropOff })
	defer agent.Stop()
	defer daemon.Stop()
	command := a.start(b, setting{protocol: "0.4", computes: computes}, daemon.socket)
	command.Env = append(command.Env, fmt.Sprint("SHOP_MEASURE=", each))
	said, err := command.Output()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(said), "cpu us a request: %f", &us); err != nil {
		b.Fatalf("%v: %s", err, said)
	}
	return us
}
