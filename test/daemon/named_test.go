package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// Names of span and resource attributes with a special meaning to the daemon, and some that it does not
// know.
var (
	spanNames = strings.Fields(`http.request.method http.method http.route http.response.status_code
		http.status_code rpc.grpc.status_code rpc.response.status_code db.system.name db.system db.namespace
		db.name db.collection.name db.sql.table db.operation.name db.operation messaging.system
		messaging.destination.name messaging.destination messaging.operation.name messaging.operation.type
		messaging.operation rpc.system.name rpc.system rpc.service rpc.method peer.service server.address
		net.peer.name net.host.name faas.invoked_provider faas.invoked_name faas.trigger
		graphql.operation.type network.protocol.name gen_ai.request.model`)
	// partsOfNames are attributes that only the names of spans depend on, unless they are dimensions.
	partsOfNames = strings.Fields(`url.template url.path http.path server.port db.stored_procedure.name
		db.query.text messaging.destination.template`)
	datadogNames = strings.Fields(`env version container_id container_name cloud_provider region zone
		kube_cluster_name kube_namespace pod_name kube_deployment kube_container_name http.client_ip
		http.version http.server_name http.useragent aws.s3.bucket_name aws.operation aws.service db.type
		db.instance db.pool.name tenant.id user_agent.original`)
	resourceNames = strings.Fields(`service.name service.version service.instance.id service.namespace
		deployment.environment.name deployment.environment host.name container.id telemetry.sdk.name
		telemetry.sdk.language telemetry.sdk.version process.runtime.name process.runtime.version
		vcs.ref.head.revision k8s.pod.name cloud.region zone env`)
)

// TestDimensions_EachAcceptedNameHasItsValue sends one attribute of a span or resource that the
// operator has configured as a dimension. Prometheus must scrape it under its name.
func TestDimensions_EachAcceptedNameHasItsValue(t *testing.T) {
	cases := [][2][]string{{spanNames, nil}, {partsOfNames, nil}, {nil, partsOfNames}}
	for names := range slices.Chunk(datadogNames, 8) {
		cases = append(cases, [2][]string{names, nil})
	}
	for names := range slices.Chunk(resourceNames, 8) {
		cases = append(cases, [2][]string{nil, names})
	}
	for i, of := range cases {
		for _, all := range []string{"", "all,"} {
			t.Run(fmt.Sprint(i, all), func(t *testing.T) {
				t.Parallel()
				checkDimensions(t, all, of[0], of[1])
			})
		}
	}
}

// checkDimensions sends a span for each name and looks for its series.
func checkDimensions(t *testing.T, all string, ofSpans, ofResources []string) {
	t.Helper()
	names := append(slices.Clone(ofSpans), ofResources...)
	dimensions, err := points.ParseDimensions(all + strings.Join(names, ","))
	if err != nil {
		t.Fatal(err)
	}
	var at string
	p := startPair(t, func(c *daemon.Config) {
		at = takesOTLP(c)
		c.OTLP.Labels.Attributes, c.OTLP.Labels.Resource = names, []string{"service.instance.id"}
		c.OTLP.Labels.KeepNames = slices.Contains(names, "db.operation.name") // the name says which attribute is sent
		if err := c.OTLP.Labels.Check(); err != nil {
			t.Fatal(err)
		}
		c.Prometheus = prometheus.New(prometheus.Config{URL: prometheus.Path, Dimensions: dimensions})
	})
	now := time.Now().UnixNano()
	for _, name := range names {
		attribute := fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, name, valueOf(name))
		ofSpan, ofResource := attribute, ""
		if slices.Contains(ofResources, name) {
			ofSpan, ofResource = "", attribute
		}
		if name == "rpc.response.status_code" {
			ofSpan += `,{"key":"rpc.system.name","value":{"stringValue":"grpc"}}`
		}
		post(t, at, "/v1/traces", "application/json", fmt.Appendf(nil, `{"resourceSpans":[{"resource":{`+
			`"attributes":[%s]},"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10",`+
			`"spanId":"0102030405060708","name":"says %s","startTimeUnixNano":"%d","endTimeUnixNano":"%d",`+
			`"attributes":[%s]}]}]}]}`, ofResource, name, now-1000, now, ofSpan))
	}
	var text string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		text = scrape(t, "http://"+p.HTTPAddr()+prometheus.Path)
		if strings.Count(text, "calls_total{") >= len(names) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, name := range names {
		label := fmt.Sprintf(`%s=%q`, strings.ReplaceAll(name, ".", "_"), valueOf(name))
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.Contains(line, "calls_total{") && strings.Contains(line, label) &&
				strings.Contains(line, fmt.Sprintf(`span_name="says %s"`, name))
		}
		if !found {
			t.Errorf("no series of a span named %s has %s", name, label)
		}
	}
	p.stop()
}

// valueOf returns a valid value for an attribute.
func valueOf(name string) string {
	switch {
	case name == "rpc.grpc.status_code":
		return "5"
	case strings.HasPrefix(name, "http.") && strings.HasSuffix(name, "status_code"):
		return "204"
	}
	return "value of " + name
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
