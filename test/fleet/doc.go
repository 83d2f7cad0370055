// Package fleet holds daemons against the tiers that a fleet has behind them, all of them
// real: collectors that shard streams, collectors that add up deltas, and Prometheus.
//
//	daemons --OTLP/HTTP--> load balancer --OTLP/gRPC--> gateways --OTLP/HTTP--> Prometheus
//	(deltas)               loadbalancing                deltatocumulative       native histograms
//
// And beside those, what needs no tiers: a Prometheus that scrapes a daemon (scraped_test.go,
// exemplars_test.go, dashboards_test.go), which `make test-scrape` runs by themselves. And views that
// others have made, with the flags that docs/dashboards.md names for each (views_test.go, jaeger_test.go).
//
// The collectors, Prometheus and Jaeger are built from their Go modules by `make test-fleet`, into
// bin/fleet; the collectors are one program, collector/, with the components that a fleet
// needs and no others. config/ holds their configurations, the same bytes that
// docs/scaling.md shows: what differs between a test and a cluster comes from variables.
//
// Three parts are ours. The oracle counts the spans themselves, with OpenTelemetry's own SDK, into
// the buckets that must come out in the end. A tap before each gateway keeps what that
// gateway was given and what it answered. And a Kubernetes API of two calls tells
// the load balancer which gateways there are, as the real one does.
//
// Every test has its own processes, which end with it, and speaks over loopback addresses
// alone. Waits end after a minute (internal/testutil/eventually); no time is asserted.
package fleet
