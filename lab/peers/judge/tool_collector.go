package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// collector is an OpenTelemetry Collector with the connector span_metrics. With cumulative temporality, a Prometheus scrapes it; with
// delta temporality, it pushes OTLP metrics.
type collector struct{ isDelta bool }

func (c collector) name() string {
	if c.isDelta {
		return "Collector, delta"
	}
	return "Collector, cumulative"
}

func (collector) build() (program, module string) {
	return "collector", "github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
}

func (c collector) path() string {
	if c.isDelta {
		return "OTLP over HTTP, to OTLP metrics"
	}
	return "OTLP over HTTP, to a Prometheus that scrapes it"
}

// collectorConfig follows the documentation of the components: the memory limiter comes first. The limit of series per service is that of
// OpenTelemetry's SDKs.
const collectorConfig = `receivers:
  otlp:
    protocols:
      http:
        endpoint: %s
processors:
  memory_limiter:
    check_interval: 1s
    limit_percentage: 80
    spike_limit_percentage: 20
connectors:
  span_metrics:
    aggregation_temporality: %s
    metrics_flush_interval: 10s
    aggregation_cardinality_limit: 2000
    histogram:
      unit: s
exporters:
  %s
service:
  telemetry:
    logs:
      level: warn
    metrics:
      readers:
        - pull:
            exporter:
              prometheus:
                host: 127.0.0.1
                port: %d
  pipelines:
    traces:
      receivers: [otlp]
      processors: [memory_limiter]
      exporters: [span_metrics]
    metrics:
      receivers: [span_metrics]
      exporters: [%s]
`

func (c collector) prepare(b bench) (*candidate, error) {
	free, err := ports(3)
	if err != nil {
		return nil, err
	}
	receiver, telemetry, scraped := local(free[0]), free[1], local(free[2])
	made := &candidate{ready: receiver, counters: collectorCounters{"http://" + local(telemetry) + "/metrics"}}
	config := ""
	if c.isDelta {
		destination, err := startOTLPDestination(b.ledger)
		if err != nil {
			return nil, err
		}
		made.output = destination
		config = fmt.Sprintf(collectorConfig, receiver, "AGGREGATION_TEMPORALITY_DELTA",
			"otlp_http: {endpoint: \""+destination.url()+"\"}", telemetry, "otlp_http")
	} else {
		made.output = startScraper("http://"+scraped+"/metrics", b.ledger)
		config = fmt.Sprintf(collectorConfig, receiver, "AGGREGATION_TEMPORALITY_CUMULATIVE",
			"prometheus: {endpoint: \""+scraped+"\"}", telemetry, "prometheus")
	}
	file := filepath.Join(b.dir, "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	made.command = []string{filepath.Join(b.programs, "collector"), "--config", file}
	made.environ = goMemoryLimit(b.limits)
	made.sender = newOTLPSender(receiver)
	return made, nil
}

// goMemoryLimit sets the limit of Go's garbage collector to 80 % of the container's, as the Collector's documentation recommends.
func goMemoryLimit(l limits) []string {
	if l.memoryMiB == 0 {
		return nil
	}
	return []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", l.memoryMiB*8/10)}
}

// collectorCounters reads a Collector's metrics about itself. Refused spans are not read: their sender knows them.
type collectorCounters struct{ url string }

func (collectorCounters) restarted() {}

// fromLog finds the items that an exporter could not deliver before it stopped.
func (collectorCounters) fromLog(log []byte) losses {
	if bytes.Contains(log, []byte("dropped_items")) {
		return losses{"dropped_items in the log": otherUnit}
	}
	return nil
}

func (c collectorCounters) read() (losses, error) {
	isLoss := func(metric string) bool {
		return strings.HasPrefix(metric, "otelcol_exporter_send_failed_metric_points") ||
			strings.HasPrefix(metric, "otelcol_exporter_enqueue_failed_metric_points")
	}
	samples, err := readSamples(c.url, isLoss)
	if err != nil {
		return nil, err
	}
	found := losses{}
	for _, s := range samples {
		if s.value > 0 {
			found[s.metric()] = otherUnit
		}
	}
	return found, nil
}
