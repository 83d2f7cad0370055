//go:build languages

package otel

import (
	"os"
	"regexp"
	"testing"
)

// These tests run the SDKs of other languages, as installed by languages.sh (`make test-otel`). The
// regular tests leave them out, because they install nothing.

var sdks = os.Getenv("OTEL_DIR")

func TestPython(t *testing.T) { python.test(t) }

var python = language{
	command: []string{sdks + "/python/bin/opentelemetry-instrument", "python", "apps/shop.py"},
	env: []string{
		"PATH=" + sdks + "/python/bin:" + os.Getenv("PATH"), "OTEL_METRICS_EXPORTER=otlp",
		"OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED=true",
	},
	isHeard:   true,
	protocols: []string{"http/protobuf", "grpc"},
	also:      "console", made: regexp.MustCompile(`(?m)^        "trace_id": "0x([0-9a-f]{32})"`),
	order: "/orders/<int:number>", stock: "/stock/<int:number>",
}

func TestNode(t *testing.T) { node.test(t) }

var node = language{
	command: []string{"node", "apps/shop.js"},
	env: []string{
		"NODE_PATH=" + sdks + "/node/node_modules", "NODE_OPTIONS=--require " +
			"@opentelemetry/auto-instrumentations-node/register",
		// without the detectors that query a cloud provider over the network
		"OTEL_NODE_RESOURCE_DETECTORS=env,host,os,process",
	},
	protocols: []string{"http/protobuf", "http/json", "grpc"},
	also:      "console", made: regexp.MustCompile(`(?m)^  traceId: '([0-9a-f]{32})'`),
	order: "/orders/:number", stock: "/stock/:number",
}

func TestJava(t *testing.T) { java.test(t) }

var java = language{
	command: []string{
		"java", "-javaagent:" + sdks + "/java/opentelemetry-javaagent.jar", "-cp",
		sdks + "/java/classes", "Shop",
	},
	env:       []string{"OTEL_METRICS_EXPORTER=otlp"},
	isHeard:   true,
	protocols: []string{"http/protobuf", "grpc"},
	also:      "console",
	made:      regexp.MustCompile(`LoggingSpanExporter - '.*' : ([0-9a-f]{32}) [0-9a-f]{16} `),
	order:     "/orders/", stock: "/stock/",
}

// TestMetrics_EqualPython, and the tests after it, compare the metrics of an SDK with those that the daemon derives from
// the spans of the same requests.
func TestMetrics_EqualPython(t *testing.T) { python.compareMetrics(t) }

func TestMetrics_EqualNode(t *testing.T) { node.compareMetrics(t) }

func TestMetrics_EqualJava(t *testing.T) { java.compareMetrics(t) }

// TestSamplers_MixedLanguages puts each of these SDKs at each position of a chain of services, and the Go
// SDK at the other positions.
func TestSamplers_MixedLanguages(t *testing.T) {
	python := caller{language{command: []string{sdks + "/python/bin/python", "apps/chain.py"}}, 14}
	node := caller{language{
		command: []string{"node", "apps/chain.js"}, env: []string{"NODE_PATH=" + sdks + "/node/node_modules"},
	}, 14}
	java := caller{language{
		command: []string{"java", "-cp", sdks + "/java/sdk/*:" + sdks + "/java/classes", "Chain"},
	}, 14}
	golang := caller{language{command: []string{buildChain(t)}}, 4}
	for name, callers := range map[string][3]caller{
		"python node java": {python, node, java}, "java python node": {java, python, node},
		"node java python": {node, java, python}, "go java go": {golang, java, golang},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isParent := range []bool{true, false} {
				for _, rate := range []float64{0.01, 0.1, 1} {
					chainOf(callers, isParent, [3]float64{rate, rate, rate}, 0.1).test(t)
				}
				c := chainOf(callers, isParent, [3]float64{0.1, 0.5, 0.01}, 0.5)
				c.test(t)
				c.isUpstream = true
				c.test(t)
			}
		})
	}
}
