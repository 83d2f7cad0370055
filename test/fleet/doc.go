// Package fleet tests daemons with the real tiers of a fleet: collectors that shard streams, collectors
// that accumulate deltas, and Prometheus.
//
//	daemons --OTLP/HTTP--> load balancer --OTLP/gRPC--> gateways --OTLP/HTTP--> Prometheus
//	(deltas)               loadbalancing                deltatocumulative       native histograms
//
// Other tests need no tiers: those with a Prometheus that scrapes a daemon (scraped_test.go,
// exemplars_test.go, dashboards_test.go), which `make test-scrape` runs alone, and those of third-party
// views with the flags that docs/dashboards.md names for each (views_test.go, jaeger_test.go).
//
// `make test-fleet` builds the collectors, Prometheus and Jaeger from their Go modules into bin/fleet.
// All collectors are one program, collector/, with just the components that a fleet needs. config/
// holds their configurations, which docs/scaling.md shows verbatim: variables contain the differences
// between a test and a cluster.
//
// Three parts belong to the test. The oracle counts the spans themselves with the OpenTelemetry SDK,
// into the buckets that must result in the end. A tap in front of each gateway records the gateway's
// requests and responses. A fake Kubernetes API with two calls tells the load balancer the addresses of
// the gateways, like the real one.
//
// Every test starts its own processes, which end with the test, and uses loopback addresses only. Waits
// end after a minute (internal/testutil/eventually); no test asserts a duration.
package fleet
