package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm/spanstatsd"

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// application returns an application's chart that depends on this project's chart as described in the
// chart's README.
func application(t *testing.T) *chart.Chart {
	t.Helper()
	c := load(t, "testdata/application")
	c.AddDependency(load(t, chartDir))
	return c
}

// render checks the values against the schema and renders every template.
func render(t *testing.T, c *chart.Chart, values string) (*manifests, error) {
	t.Helper()
	var count map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &count); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(c, count,
		common.ReleaseOptions{Name: "release", Namespace: "ns", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString(rendered[name] + "\n---\n")
		}
	}
	return decode([]byte(text.String()))
}

// TestChart renders the default values and then each option.
func TestChart(t *testing.T) {
	for name, c := range map[string]struct {
		values string
		holds  func(*manifests) bool
	}{
		"defaults": {"", func(m *manifests) bool {
			return len(m.pods) == 1 && m.pods[0].kind == "DaemonSet" && len(m.policies) == 1 &&
				len(m.monitors)+len(m.rules)+len(m.maps) == 0
		}},
		"name override": {"nameOverride: stats", func(m *manifests) bool {
			return m.pods[0].name == "stats" && m.policies[0].Name == "stats"
		}},
		"labels": {"extraLabels: {team: shop}", func(m *manifests) bool {
			return m.pods[0].pod.Labels["team"] == "shop" && m.policies[0].Labels["team"] == "shop"
		}},
		"no account": {"", func(m *manifests) bool {
			return len(m.accounts) == 0 && m.pods[0].pod.Spec.ServiceAccountName == ""
		}},
		"separate service account": {
			"serviceAccount: {create: true, annotations: {a: b}}",
			func(m *manifests) bool {
				spec := &m.pods[0].pod.Spec
				return len(m.accounts) == 1 && m.accounts[0].Name == "release" &&
					m.accounts[0].Annotations["a"] == "b" &&
					spec.ServiceAccountName == "release" && !*spec.AutomountServiceAccountToken
			},
		},
		"an account that is there": {"serviceAccount: {name: x}", func(m *manifests) bool {
			return len(m.accounts) == 0 && m.pods[0].pod.Spec.ServiceAccountName == "x"
		}},
		"more volumes": {
			"extraVolumes: [{name: ca, configMap: {name: ca}}]\nextraVolumeMounts: [{name: ca, mountPath: /ca}]",
			func(m *manifests) bool {
				mount := mountAt(&m.pods[0].pod.Spec.Containers[0], "/ca")
				return mount != nil && volume(&m.pods[0].pod.Spec, mount.Name).ConfigMap.Name == "ca"
			},
		},
		"no workload": {"mode: none", func(m *manifests) bool { return len(m.pods)+len(m.policies) == 0 }},
		"image": {"image: {repository: r.example/s, tag: '2', pullPolicy: Always}", func(m *manifests) bool {
			c := m.pods[0].pod.Spec.Containers[0]
			return c.Image == "r.example/s:2" && c.ImagePullPolicy == "Always" &&
				m.pods[0].pod.Spec.InitContainers[0].Image == c.Image
		}},
		"digest": {
			"image: {repository: s, digest: 'sha256:" + strings.Repeat("a", 64) + "'}",
			func(m *manifests) bool {
				return m.pods[0].pod.Spec.Containers[0].Image == "s@sha256:"+strings.Repeat("a", 64)
			},
		},
		"pull secret": {
			"imagePullSecrets: [{name: x}]",
			func(m *manifests) bool { return m.pods[0].pod.Spec.ImagePullSecrets[0].Name == "x" },
		},
		"agent elsewhere": {"agent: {url: 'http://agent.example:9000'}", func(m *manifests) bool {
			return environment(&m.pods[0].pod.Spec.Containers[0],
				"DD_TRACE_AGENT_URL") == "http://agent.example:9000" &&
				m.policies[0].Spec.Egress[0].Ports[0].Port.String() == "9000"
		}},
		"agent without a port": {"agent: {url: 'http://agent.example/'}", func(m *manifests) bool {
			return m.policies[0].Spec.Egress[0].Ports[0].Port.String() == "8126"
		}},
		"agent at a socket": {
			"agent: {url: 'unix:///var/run/datadog/apm.socket'}",
			func(m *manifests) bool {
				mount := mountAt(&m.pods[0].pod.Spec.Containers[0], "/var/run/datadog")
				return mount != nil &&
					volume(&m.pods[0].pod.Spec, mount.Name).HostPath.Path == "/var/run/datadog" &&
					len(m.policies[0].Spec.Egress) == 0
			},
		},
		"no agent, scraped": {
			"agent: {url: 'off'}\npodMonitor: {enabled: true}",
			func(m *manifests) bool {
				c := &m.pods[0].pod.Spec.Containers[0]
				takesItsEnvironment(t, c)
				return environment(c, "SPANSTATSD_AGENT_URL") == "off" &&
					len(m.policies[0].Spec.Egress) == 0 &&
					!slices.ContainsFunc(c.Env, looksForDatadog) &&
					slices.Equal(scrapedPaths(m), []string{"/metrics", "/metrics/spans"})
			},
		},
		"scraped next to the agent, at another port": {
			"prometheus: {enabled: true}\nconfig: {prometheus-addr: ':9127'}\npodMonitor: {enabled: true}",
			func(m *manifests) bool {
				c := &m.pods[0].pod.Spec.Containers[0]
				takesItsEnvironment(t, c)
				return environment(c, "SPANSTATSD_PROMETHEUS") == "on" &&
					slices.ContainsFunc(c.Env, looksForDatadog) &&
					c.Ports[1].ContainerPort == 9127 && c.Ports[1].Name == "spans" &&
					m.policies[0].Spec.Ingress[0].Ports[1].Port.IntValue() == 9127 &&
					*m.monitors[0].Spec.PodMetricsEndpoints[1].Port == "spans"
			},
		},
		"no agent, OTLP alone": {
			"agent: {url: 'off'}\notlp: {endpoint: 'http://c:4318/v1/metrics'}\npodMonitor: {enabled: true}",
			func(m *manifests) bool {
				c := &m.pods[0].pod.Spec.Containers[0]
				takesItsEnvironment(t, c)
				return environment(c, "SPANSTATSD_AGENT_URL") == "off" &&
					!slices.ContainsFunc(c.Env, looksForDatadog) &&
					slices.Equal(egressPorts(m), []int{4318, 53, 53}) &&
					slices.Equal(scrapedPaths(m), []string{"/metrics"})
			},
		},
		"OTLP": {
			"otlp: {endpoint: 'http://loadbalancer.observability:4318/v1/metrics'}",
			func(m *manifests) bool {
				return environment(&m.pods[0].pod.Spec.Containers[0],
					"SPANSTATSD_OTLP_METRICS_ENDPOINT") ==
					"http://loadbalancer.observability:4318/v1/metrics" &&
					slices.Equal(egressPorts(m), []int{4318, 8126, 53, 53})
			},
		},
		"OTLP without a port": {
			"otlp: {endpoint: 'https://otlp.example/v1/metrics'}",
			func(m *manifests) bool {
				return slices.Equal(egressPorts(m), []int{443, 8126, 53, 53})
			},
		},
		"OTLP next to an agent at a socket": {"otlp: {endpoint: 'http://otlp.example'}\nagent: {url: " +
			"'unix:///var/run/datadog/apm.socket'}", func(m *manifests) bool {
			return slices.Equal(egressPorts(m), []int{80, 53, 53})
		}},
		"SDKs as they are": {
			"otlpIn: {enabled: true, forward: 'grpc://collector.observability', keep: 0.05}",
			func(m *manifests) bool {
				c := &m.pods[0].pod.Spec.Containers[0]
				return environment(c, "SPANSTATSD_OTLP_SOCKET") == "/var/run/spanstatsd/otlp.socket" &&
					environment(c, "SPANSTATSD_OTLP_ADDR") == "" &&
					environment(c, "SPANSTATSD_OTLP_FORWARD") == "grpc://collector.observability" &&
					environment(c, "SPANSTATSD_OTLP_KEEP") == "0.05" &&
					slices.Equal(egressPorts(m), []int{4317, 8126, 53, 53})
			},
		},
		"SDKs whose traces end here": {"otlpIn: {enabled: true}\nagent: {url: " +
			"'unix:///var/run/datadog/apm.socket'}", func(m *manifests) bool {
			c := &m.pods[0].pod.Spec.Containers[0]
			return environment(c, "SPANSTATSD_OTLP_FORWARD")+environment(c, "SPANSTATSD_OTLP_KEEP") == "" &&
				len(m.policies[0].Spec.Egress) == 0
		}},
		"SDKs before another port": {
			"otlpIn: {enabled: true, forward: 'https://c:4443', keep: " +
				"'0.05,errors,slow:500ms'}\nagent: {url: 'unix:///var/run/datadog/apm.socket'}",
			func(m *manifests) bool {
				return environment(&m.pods[0].pod.Spec.Containers[0],
					"SPANSTATSD_OTLP_KEEP") == "0.05,errors,slow:500ms" &&
					slices.Equal(egressPorts(m), []int{4443, 53, 53})
			},
		},
		"socket": {"socket: {directory: /run/stats, mode: '0666'}", func(m *manifests) bool {
			return volume(&m.pods[0].pod.Spec, "spanstatsd").HostPath.Path == "/run/stats"
		}},
		"tracers as they are": {"apm: {enabled: true}", func(m *manifests) bool {
			return environment(&m.pods[0].pod.Spec.Containers[0],
				"SPANSTATSD_APM_SOCKET") == "/var/run/spanstatsd/apm.socket"
		}},
		"another address": {"config: {http-addr: ':9999'}", func(m *manifests) bool {
			c := &m.pods[0].pod.Spec.Containers[0]
			return environment(c, "SPANSTATSD_HTTP_ADDR") == ":9999" && c.Ports[0].ContainerPort == 9999 &&
				m.policies[0].Spec.Ingress[0].Ports[0].Port.IntValue() == 9999 &&
				m.pods[0].pod.Annotations["prometheus.io/port"] == "9999"
		}},
		"another socket": {
			"config: {socket: /run/stats/daemon.sock}\napm: {enabled: true}",
			func(m *manifests) bool {
				c, sockets := &m.pods[0].pod.Spec.Containers[0], 0
				for _, e := range c.Env {
					if e.Name == "SPANSTATSD_SOCKET" {
						sockets++
					}
				}
				return sockets == 1 && environment(c, "SPANSTATSD_SOCKET") == "/run/stats/daemon.sock" &&
					environment(c, "SPANSTATSD_APM_SOCKET") == "/run/stats/apm.socket" &&
					environment(&m.pods[0].pod.Spec.InitContainers[0],
						"SPANSTATSD_SOCKET") == "/run/stats/daemon.sock" &&
					volume(&m.pods[0].pod.Spec, "spanstatsd").HostPath.Path == "/run/stats"
			},
		},
		"sizes": {"config: {sketch-bytes: 16MiB, label-bytes: 4194304}", func(m *manifests) bool {
			c := &m.pods[0].pod.Spec.Containers[0]
			return environment(c, "SPANSTATSD_SKETCH_BYTES") == "16MiB" &&
				environment(c, "SPANSTATSD_LABEL_BYTES") == "4194304"
		}},
		"scraped without an operator": {"", func(m *manifests) bool {
			a := m.pods[0].pod.Annotations
			return a["prometheus.io/scrape"] == "true" && a["prometheus.io/port"] == "9126" &&
				a["prometheus.io/scheme"] == "http"
		}},
		"scraped by the operator alone": {
			"podMonitor: {enabled: true}",
			func(m *manifests) bool { return len(m.pods[0].pod.Annotations) == 0 },
		},
		"config": {"config: {ring-slots: 16384, max-byte-rate: 100000000, conflate-runtimes: false, " +
			"buffer: block, retry-age: 5m}", func(m *manifests) bool {
			c := &m.pods[0].pod.Spec.Containers[0]
			return environment(c, "SPANSTATSD_RING_SLOTS") == "16384" &&
				environment(c, "SPANSTATSD_MAX_BYTE_RATE") == "100000000" &&
				environment(c, "SPANSTATSD_CONFLATE_RUNTIMES") == "false" &&
				environment(c, "SPANSTATSD_RETRY_AGE") == "5m"
		}},
		"environment": {"extraEnv: [{name: DD_ENV, value: prod}]", func(m *manifests) bool {
			return environment(&m.pods[0].pod.Spec.Containers[0], "DD_ENV") == "prod"
		}},
		"resources": {"resources: {limits: {memory: 256Mi}}", func(m *manifests) bool {
			return m.pods[0].pod.Spec.Containers[0].Resources.Limits.Memory().String() == "256Mi"
		}},
		"host's processes": {
			"node: {hostPID: true}",
			func(m *manifests) bool { return m.pods[0].pod.Spec.HostPID },
		},
		"placement": {"node: {nodeSelector: {a: b}, tolerations: [], priorityClassName: p, podLabels: {l: " +
			"m}, podAnnotations: {q: r}, affinity: {nodeAffinity: {}}}", func(m *manifests) bool {
			p := m.pods[0].pod
			return p.Spec.NodeSelector["a"] == "b" && p.Spec.PriorityClassName == "p" &&
				p.Labels["l"] == "m" && p.Annotations["q"] == "r" && p.Spec.Affinity != nil &&
				len(p.Spec.Tolerations) == 0
		}},
		"no policy": {
			"networkPolicy: {enabled: false}",
			func(m *manifests) bool { return len(m.policies) == 0 },
		},
		"monitoring elsewhere": {"networkPolicy: {monitoringNamespace: watch}", func(m *manifests) bool {
			from := m.policies[0].Spec.Ingress[0].From[0].NamespaceSelector
			return from.MatchLabels["kubernetes.io/metadata.name"] == "watch"
		}},
		"monitor": {
			"podMonitor: {enabled: true, interval: 30s, labels: {release: p}}",
			func(m *manifests) bool { return m.monitors[0].Labels["release"] == "p" },
		},
		"certificate": {"web: {secret: web}\npodMonitor: {enabled: true, tlsConfig: {insecureSkipVerify: " +
			"true}, basicAuth: {username: {name: web, key: user}}}", func(m *manifests) bool {
			c := &m.pods[0].pod.Spec.Containers[0]
			mount := mountAt(c, "/etc/spanstatsd")
			endpoint := m.monitors[0].Spec.PodMetricsEndpoints[0]
			return environment(c, "SPANSTATSD_WEB_CONFIG_FILE") == "/etc/spanstatsd/web-config.yml" &&
				mount.ReadOnly &&
				volume(&m.pods[0].pod.Spec, mount.Name).Secret.SecretName == "web" &&
				c.StartupProbe.HTTPGet.Scheme == "HTTPS" && c.LivenessProbe.HTTPGet.Scheme == "HTTPS" &&
				*endpoint.Scheme == "https" && *endpoint.TLSConfig.InsecureSkipVerify &&
				endpoint.BasicAuth.Username.Key == "user"
		}},
		"passwords alone": {
			"web: {secret: web, tls: false}\npodMonitor: {enabled: true}",
			func(m *manifests) bool {
				c := &m.pods[0].pod.Spec.Containers[0]
				return c.StartupProbe.HTTPGet.Scheme == "HTTP" && c.LivenessProbe.HTTPGet.Scheme == "HTTP" &&
					m.monitors[0].Spec.PodMetricsEndpoints[0].Scheme == nil
			},
		},
		"alerts": {"prometheusRule: {enabled: true, labels: {release: p}}", func(m *manifests) bool {
			count := 0
			for _, group := range m.rules[0].Spec.Groups {
				count += len(group.Rules)
			}
			return count == len(daemonRules.read(t)) && m.rules[0].Labels["release"] == "p"
		}},
		"dashboard": {"dashboard: {enabled: true}", func(m *manifests) bool {
			for _, d := range dashboards {
				if m.maps[0].Data[d.name] != strings.TrimSpace(string(readFile(t, d.path()))) {
					return false
				}
			}
			return len(m.maps[0].Data) == len(dashboards)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := render(t, load(t, chartDir), c.values)
			if err != nil {
				t.Fatal(err)
			}
			m.keepPromises(t)
			if !c.holds(m) {
				t.Errorf("%s has no effect on %+v", c.values, m)
			}
		})
	}
}

// looksForDatadog reports whether a variable configures an agent.
func looksForDatadog(e core.EnvVar) bool { return strings.HasPrefix(e.Name, "DD_") }

// scrapedPaths returns the paths that the monitor scrapes.
func scrapedPaths(m *manifests) (paths []string) {
	for _, endpoint := range m.monitors[0].Spec.PodMetricsEndpoints {
		paths = append(paths, endpoint.Path)
	}
	return paths
}

// egressPorts returns the ports to which the network policy allows connections.
func egressPorts(m *manifests) (ports []int) {
	for _, port := range m.policies[0].Spec.Egress[0].Ports {
		ports = append(ports, port.Port.IntValue())
	}
	return ports
}

// TestSidecarTemplates renders an application's chart with each kind of sidecar.
func TestSidecarTemplates(t *testing.T) {
	for values, kind := range map[string]bool{
		"": true, "spanstatsd: {sidecar: {native: false}}": false,
		"spanstatsd: {agent: {url: 'unix:///run/dd/apm.socket'}, socket: {directory: /run/stats}}": true,
	} {
		m, err := render(t, application(t), values)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.pods) != 1 || len(m.policies) != 0 {
			t.Fatalf("%d workloads, %d policies", len(m.pods), len(m.policies))
		}
		m.keepPromises(t)
		if _, native := daemonOf(&m.pods[0].pod.Spec); native != kind {
			t.Errorf("%q: native is %t", values, native)
		}
	}
}

// TestHooks_NeedAddressWithoutCertificate: hooks that can't reach the daemon would keep the pod from
// starting, so the chart rejects such values.
func TestHooks_NeedAddressWithoutCertificate(t *testing.T) {
	classic := "spanstatsd: {sidecar: {native: false}, web: {secret: web}%s}"
	if _, err := render(t, application(t), fmt.Sprintf(classic, "")); err == nil ||
		!strings.Contains(err.Error(), "SPANSTATSD_URL") {
		t.Errorf("rendered without an address for the hooks: %v", err)
	}
	m, err := render(t, application(t), fmt.Sprintf(classic, ", extraEnv: [{name: SPANSTATSD_URL, value: "+
		"'https://127.0.0.1:9126'}]"))
	if err != nil {
		t.Fatal(err)
	}
	m.keepPromises(t)
}

// TestSidecar_FollowsConfig checks that ports, hooks, mounts and the application's variables match
// any configured address and socket of the daemon.
func TestSidecar_FollowsConfig(t *testing.T) {
	for _, native := range []bool{true, false} {
		m, err := render(t, application(t), fmt.Sprintf("spanstatsd: {apm: {enabled: true}, sidecar: "+
			"{native: %t}, config: {http-addr: ':9999', socket: /run/stats/daemon.sock}}", native))
		if err != nil {
			t.Fatal(err)
		}
		m.keepPromises(t)
		checkAgentSocket(t, m, "/run/stats/apm.socket")
		daemon, _ := daemonOf(&m.pods[0].pod.Spec)
		if socket := environment(daemon, "SPANSTATSD_SOCKET"); socket != "/run/stats/daemon.sock" ||
			daemon.Ports[0].ContainerPort != 9999 {
			t.Errorf("the daemon listens on %s, and its port is %d", socket, daemon.Ports[0].ContainerPort)
		}
	}
}

// TestChart_FlagWithOwnValueIsRejected checks settings that have a separate value in the chart.
// If set as plain flags, mounts, policies and probes would not match. The error must name the right
// value.
func TestChart_FlagWithOwnValueIsRejected(t *testing.T) {
	for values, says := range map[string]string{
		"agent: {url: 'off'}\napm: {enabled: true}":               "apm.enabled",
		"config: {agent-url: 'http://agent:1'}":                   "agent.url",
		"config: {socket-mode: '0660'}":                           "socket.mode",
		"config: {apm-socket: /s}":                                "apm.enabled",
		"config: {web-config-file: /w}":                           "web.secret",
		"config: {otlp-metrics-endpoint: 'http://c:1'}":           "otlp.endpoint",
		"config: {otlp-addr: '127.0.0.1:4318'}":                   "otlpIn.enabled",
		"config: {otlp-forward: 'http://c:1'}":                    "otlpIn.forward",
		"otlpIn: {forward: 'http://c:1'}":                         "otlpIn.enabled",
		"otlpIn: {enabled: true, keep: 0.05}":                     "otlpIn.forward",
		"extraEnv: [{name: SPANSTATSD_HTTP_ADDR, value: ':1'}]":   "config.http-addr",
		"extraEnv: [{name: SPANSTATSD_SOCKET, value: /s}]":        "config.socket",
		"extraEnv: [{name: SPANSTATSD_AGENT_URL, value: /s}]":     "agent.url",
		"extraEnv: [{name: SPANSTATSD_SOCKET_MODE, value: 0666}]": "socket.mode",
	} {
		if _, err := render(t, load(t, chartDir), values); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestChart_KnowsEveryFlag checks that config accepts every flag of the daemon and no other key, so that
// a misspelled key is rejected before anything is applied.
func TestChart_KnowsEveryFlag(t *testing.T) {
	var schema struct {
		Properties struct {
			Config struct {
				AdditionalProperties *bool
				Properties           map[string]any
			}
		}
	}
	if err := json.Unmarshal(readFile(t, chartDir+"/values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	config := schema.Properties.Config
	if config.AdditionalProperties == nil || *config.AdditionalProperties {
		t.Error("config accepts any key")
	}
	flags := regexp.MustCompile(`(?m)^ {2,6}(?:-h, )?--([a-z-]+)`)
	for _, flag := range flags.FindAllStringSubmatch(daemonHelp(t, "run"), -1) {
		if _, known := config.Properties[flag[1]]; !known && flag[1] != "help" && flag[1] != "all" {
			t.Errorf("config does not accept %s", flag[1])
		}
		delete(config.Properties, flag[1])
	}
	if len(config.Properties) > 0 {
		t.Errorf("config accepts keys that are not flags: %v", config.Properties)
	}
}

// TestSidecar_ForTracers checks that the application's tracers are configured with the socket
// that the daemon creates, in the directory that both mount.
func TestSidecar_ForTracers(t *testing.T) {
	for values, want := range map[string]string{
		"": "", "spanstatsd: {apm: {enabled: true}}": "/var/run/spanstatsd/apm.socket",
		"spanstatsd: {apm: {enabled: true}, sidecar: {native: false}, " +
			"socket: {directory: /run/stats}}": "/run/stats/apm.socket",
	} {
		m, err := render(t, application(t), values)
		if err != nil {
			t.Fatal(err)
		}
		m.keepPromises(t)
		checkAgentSocket(t, m, want)
	}
}

// checkAgentSocket checks the agent socket configured in the daemon and in the application. If want is "",
// there must be none.
func checkAgentSocket(t *testing.T, m *manifests, want string) {
	t.Helper()
	spec := &m.pods[0].pod.Spec
	daemon, _ := daemonOf(spec)
	application := &spec.Containers[len(spec.Containers)-1]
	if got := environment(daemon, "SPANSTATSD_APM_SOCKET"); got != want {
		t.Errorf("the daemon listens for traces at %q, want %q", got, want)
	}
	if got := strings.TrimPrefix(environment(application, "DD_TRACE_AGENT_URL"), "unix://"); got != want {
		t.Errorf("tracers connect to the agent at %q, want %q", got, want)
	}
	if want != "" && (mountAt(daemon, path.Dir(want)) == nil || mountAt(application, path.Dir(want)) == nil) {
		t.Errorf("%s is not in a directory that both containers mount", want)
	}
}

// TestSidecar_ForSDKs checks that the application's SDK is configured with the daemon's OTLP
// address on the pod's loopback, and that the daemon gets no variables intended for SDKs.
func TestSidecar_ForSDKs(t *testing.T) {
	for values, want := range map[string]string{
		"": "", "spanstatsd: {otlpIn: {enabled: true, forward: 'http://collector:4318', keep: " +
			"'0.05,errors'}}": "127.0.0.1:4318",
		"spanstatsd: {otlpIn: {enabled: true}, sidecar: {native: false}}": "127.0.0.1:4318",
	} {
		m, err := render(t, application(t), values)
		if err != nil {
			t.Fatal(err)
		}
		m.keepPromises(t)
		spec := &m.pods[0].pod.Spec
		daemon, _ := daemonOf(spec)
		application := &spec.Containers[len(spec.Containers)-1]
		if got := environment(daemon, "SPANSTATSD_OTLP_ADDR"); got != want {
			t.Errorf("%q: OTLP address %q, want %q", values, got, want)
		}
		if got := strings.TrimPrefix(environment(application, "OTEL_EXPORTER_OTLP_ENDPOINT"),
			"http://"); got != want {
			t.Errorf("%q: SDKs export to %q, want %q", values, got, want)
		}
	}
}

// TestChart_InvalidValuesAreRejected checks that the schema rejects such values before anything is applied.
func TestChart_InvalidValuesAreRejected(t *testing.T) {
	for _, values := range []string{
		"mode: sidecar", "modus: node", "nameOverride: A_b", "extraVolumes: [{configMap: {}}]",
		"extraLabels: {a: 1}",
		"socket: {mode: rw}", "socket: {directory: run/}",
		"agent: {url: 'ftp://x'}", "otlp: {endpoint: 'grpc://x'}",
		"otlpIn: {forward: 'ftp://x'}", "otlpIn: {keep: many}", "otlpIn: {keep: 5}",
		"otlpIn: {enabled: maybe}",
		"config: {Ring_Slots: 1}", "config: {ring-slot: 1}", "config: {sketch-bytes: 16MB}",
		"config: {http-addr: '127.0.0.1:9126'}", "config: {http-addr: '9126'}",
		"config: {socket: spans.sock}", "config: {ring-slots: [1]}", "config: {ring-slots: 0.5}",
		"image: {digest: latest}", "node: {hostNetwork: true}",
		"podMonitor: {interval: often}", "networkPolicy: {monitoringNamespace: ''}",
	} {
		if _, err := render(t, load(t, chartDir), values); err == nil ||
			!strings.Contains(err.Error(), "schema") {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// heldLabels matches labels that only Helm releases have.
var heldLabels = regexp.MustCompile(`(?m)^  labels:\n(    app\.kubernetes\.io/.*\n)+`)

// TestPolicy_SameAsChart checks that the kubectl manifest is what the chart installs, and
// short enough to read.
func TestPolicy_SameAsChart(t *testing.T) {
	rendered, err := injecting(t, map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(heldLabels.ReplaceAllString(rendered["spanstatsd/templates/inject.yaml"], "")) +
		"\n"
	if lines := strings.Count(text, "\n"); lines > 150 {
		t.Errorf("the policy has %d lines", lines)
	}
	const manifest = "../../deploy/kubernetes/inject/inject.yaml"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(readFile(t, manifest)) != text {
		t.Errorf("%s differs from the chart: UPDATE=1 go test -run %s writes it", manifest, t.Name())
	}
	limit := regexp.MustCompile(`emptyDir\{sizeLimit: "(\w+)"\}`).FindStringSubmatch(text)
	if size, err := resource.ParseQuantity(strings.Join(limit[1:], "")); err != nil || size.Value() < recoveryBytes {
		t.Errorf("a volume of %v is too small for recovery files of %d bytes: %v", limit, recoveryBytes, err)
	}
	if strings.Contains(text, "DaemonSet") ||
		strings.Contains(rendered["spanstatsd/templates/daemonset.yaml"], "DaemonSet") {
		t.Error("there is a daemon on each node too")
	}
}

// TestInjection_WithoutAgent checks that a pod's annotation can't enable a receiver whose traces no
// agent would accept, and that values that would mount an object of another namespace are rejected.
func TestInjection_WithoutAgent(t *testing.T) {
	rendered, err := injecting(t, map[string]any{"agent": map[string]any{"url": "off"}})
	if err != nil || !strings.Contains(rendered["spanstatsd/templates/inject.yaml"], `"datadog": false`) {
		t.Errorf("rendered %s with %v", rendered["spanstatsd/templates/inject.yaml"], err)
	}
	for of, value := range map[string]any{
		"agent": map[string]any{"url": "unix:///run/agent/apm.socket"}, "web": map[string]any{"secret": "s"},
		"extraVolumes": []any{map[string]any{"name": "ca"}},
	} {
		if _, err := injecting(t, map[string]any{of: value}); err == nil ||
			!strings.Contains(err.Error(), "inject.enabled") {
			t.Errorf("%v of %s is accepted: %v", value, of, err)
		}
	}
}

// injecting renders the chart with injection and other values.
func injecting(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	values["inject"] = map[string]any{"enabled": true}
	c := load(t, chartDir)
	all, err := util.ToRenderValues(c, values,
		common.ReleaseOptions{Name: "spanstatsd", Namespace: "spanstatsd", IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Engine{Strict: true}.Render(c, all)
}
