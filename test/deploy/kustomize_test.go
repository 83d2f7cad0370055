package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const kubernetes = "../../deploy/kubernetes"

// overlay builds an overlay.
func overlay(t *testing.T, name string) *manifests {
	t.Helper()
	return build(t, filepath.Join(kubernetes, "overlays", name))
}

// build builds the kustomization of a directory.
func build(t *testing.T, name string) *manifests {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	m, err := decode(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// TestOverlays builds every overlay. None of them needs any CRD.
func TestOverlays(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(kubernetes, "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 {
		t.Errorf("%d overlays", len(entries))
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			m := overlay(t, entry.Name())
			if len(m.pods) != 1 || len(m.policies) != 1 || len(m.monitors) != 0 {
				t.Fatalf("%d workloads, %d policies, %d monitors", len(m.pods), len(m.policies),
					len(m.monitors))
			}
			m.keepPromises(t)
			daemon, _ := daemonOf(&m.pods[0].pod.Spec)
			if !strings.HasPrefix(daemon.Image, "spanstatsd:") {
				t.Errorf("image %s", daemon.Image)
			}
		})
	}
}

// TestOverlay_Tracers adds the agent socket to the example.
func TestOverlay_Tracers(t *testing.T) {
	m := build(t, "testdata/apm")
	m.keepPromises(t)
	daemon, native := daemonOf(&m.pods[0].pod.Spec)
	if socket := environment(daemon, "SPANSTATSD_APM_SOCKET"); !native ||
		socket != "/var/run/spanstatsd/apm.socket" || mountAt(daemon, "/var/run/spanstatsd") == nil {
		t.Errorf("the daemon listens for traces at %q", socket)
	}
	if environment(daemon, "SPANSTATSD_SOCKET") == "" {
		t.Error("the component removed the daemon's native socket")
	}
}

// TestOverlay_OTLP adds the OTLP destination to the example.
func TestOverlay_OTLP(t *testing.T) {
	m := build(t, "testdata/otlp")
	m.keepPromises(t)
	daemon, native := daemonOf(&m.pods[0].pod.Spec)
	if endpoint := environment(daemon, "SPANSTATSD_OTLP_METRICS_ENDPOINT"); !native ||
		endpoint != "http://loadbalancer.observability:4318/v1/metrics" {
		t.Errorf("metrics go to %q", endpoint)
	}
	if environment(daemon, "SPANSTATSD_SOCKET") == "" {
		t.Error("the component removed the daemon's native socket")
	}
}

// TestOverlay_SDKs adds an OTLP receiver on loopback to the example, with forwarding to a collector.
func TestOverlay_SDKs(t *testing.T) {
	m := build(t, "testdata/otlp-in")
	m.keepPromises(t)
	daemon, native := daemonOf(&m.pods[0].pod.Spec)
	if address := environment(daemon, "SPANSTATSD_OTLP_ADDR"); !native || address != "127.0.0.1:4318" ||
		environment(daemon, "SPANSTATSD_OTLP_FORWARD") != "http://collector.observability:4318" {
		t.Errorf("OTLP address %q", address)
	}
	if environment(daemon, "SPANSTATSD_SOCKET") == "" {
		t.Error("the component removed the daemon's native socket")
	}
}

// TestOverlay_OpenTelemetryAlone checks that the example's daemon accepts its settings, that an SDK finds it,
// and that nothing needs an agent.
func TestOverlay_OpenTelemetryAlone(t *testing.T) {
	spec := &overlay(t, "otlp").pods[0].pod.Spec
	daemon, _ := daemonOf(spec)
	takesItsEnvironment(t, daemon)
	for name, want := range map[string]string{
		"SPANSTATSD_AGENT_URL": "off", "SPANSTATSD_OTLP_KEEP": "0.05,errors",
		"SPANSTATSD_OTLP_FORWARD":          "http://collector.observability:4318",
		"SPANSTATSD_OTLP_METRICS_ENDPOINT": "http://loadbalancer.observability:4318/v1/metrics",
	} {
		if got := environment(daemon, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if endpoint := environment(&spec.Containers[0],
		"OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint != "http://127.0.0.1:4318" {
		t.Errorf("the application exports to %q", endpoint)
	}
}

// TestOverlay_PrometheusAlone checks that a scraped daemon without an agent accepts its settings.
func TestOverlay_PrometheusAlone(t *testing.T) {
	m := build(t, "testdata/prometheus")
	m.keepPromises(t)
	daemon, native := daemonOf(&m.pods[0].pod.Spec)
	if !native || environment(daemon, "SPANSTATSD_AGENT_URL") != "off" ||
		environment(daemon, "SPANSTATSD_SOCKET") == "" {
		t.Errorf("environment of the daemon: %v", daemon.Env)
	}
	takesItsEnvironment(t, daemon)
}

// takesItsEnvironment runs the daemon to check its environment.
func takesItsEnvironment(t *testing.T, daemon *core.Container) {
	t.Helper()
	check := exec.Command(binary, "config", "--check")
	check.Env = []string{"SPANSTATSD_SOCKET=" + filepath.Join(t.TempDir(), "s")}
	for _, e := range daemon.Env {
		if e.Value != "" && e.Name != "SPANSTATSD_SOCKET" {
			check.Env = append(check.Env, e.Name+"="+e.Value)
		}
	}
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("the daemon rejects %v: %s", check.Env, out)
	}
}

// TestPodMonitor_SelectsPods checks that the PodMonitor, which alone needs the operator's CRDs, selects
// the pods of the examples.
func TestPodMonitor_SelectsPods(t *testing.T) {
	m := build(t, "testdata/monitored")
	if len(m.monitors) != 1 {
		t.Errorf("%d monitors", len(m.monitors))
	}
	m.keepPromises(t)
}

// TestOverlays_UseEveryFile checks that a kustomization includes each manifest, since other manifests are not
// tested.
func TestOverlays_UseEveryFile(t *testing.T) {
	err := filepath.WalkDir(kubernetes, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" ||
			entry.Name() == "kustomization.yaml" {
			return err
		}
		kustomization, err := os.ReadFile(filepath.Join(filepath.Dir(path), "kustomization.yaml"))
		if err == nil && !strings.Contains(string(kustomization), entry.Name()) {
			t.Errorf("%s is in no kustomization", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// keepPromises checks every pod, and whether policies and monitors match it.
func (m *manifests) keepPromises(t *testing.T) {
	t.Helper()
	for _, w := range m.pods {
		for _, violation := range violations(w) {
			t.Errorf("%s %s: %s", w.kind, w.name, violation)
		}
		port := 9126
		if daemon, _ := daemonOf(&w.pod.Spec); daemon != nil {
			port = httpPort(daemon)
		}
		if len(m.monitors) == 0 && !isScraped(w.pod, port) {
			t.Errorf("Prometheus does not discover %s: %v", w.name, w.pod.Annotations)
		}
		for _, policy := range m.policies {
			if len(policy.Spec.Egress) > 0 && !findsNames(policy) {
				t.Errorf("the policy %s blocks %s from the name service", policy.Name, w.name)
			}
			if !selects(t, &policy.Spec.PodSelector, w.pod.Labels) {
				t.Errorf("the policy %s does not select %s", policy.Name, w.name)
			}
			if rule := policy.Spec.Ingress[len(policy.Spec.Ingress)-1]; len(rule.From) != 1 ||
				rule.Ports[0].Port.IntValue() != port {
				t.Errorf("the policy %s admits scrapes from outside the monitoring namespace", policy.Name)
			}
		}
		for _, monitor := range m.monitors {
			if !selects(t, &monitor.Spec.Selector, w.pod.Labels) {
				t.Errorf("the monitor %s does not select %s", monitor.Name, w.name)
			}
			if port := monitor.Spec.PodMetricsEndpoints[0].Port; port == nil || *port != "spanstatsd" {
				t.Errorf("the monitor %s scrapes another port", monitor.Name)
			}
		}
		hooksAndFlags(t, &w.pod.Spec)
	}
}

// isScraped reports whether a Prometheus with annotation discovery scrapes the daemon's port.
func isScraped(pod *core.PodTemplateSpec, port int) bool {
	return pod.Annotations["prometheus.io/scrape"] == "true" &&
		pod.Annotations["prometheus.io/port"] == strconv.Itoa(port)
}

// findsNames reports whether a network policy allows DNS over UDP and TCP.
func findsNames(policy *networking.NetworkPolicy) bool {
	ways := map[core.Protocol]bool{}
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			if port.Port != nil && port.Port.IntValue() == 53 && port.Protocol != nil {
				ways[*port.Protocol] = true
			}
		}
	}
	return ways[core.ProtocolTCP] && ways[core.ProtocolUDP]
}

func selects(t *testing.T, selector *meta.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}

// hooksAndFlags runs the daemon to check every command of the manifests, and every SPANSTATSD_ variable
// as a flag of a command.
func hooksAndFlags(t *testing.T, spec *core.PodSpec) {
	t.Helper()
	for _, c := range append(append([]core.Container{}, spec.InitContainers...), spec.Containers...) {
		if c.Name != "spanstatsd" && c.Name != "prepare" {
			continue
		}
		help := daemonHelp(t, c.Args...)
		if c.Lifecycle != nil {
			help += daemonHelp(t, c.Lifecycle.PostStart.Exec.Command[1:]...)
			help += daemonHelp(t, c.Lifecycle.PreStop.Exec.Command[1:]...)
		}
		for _, e := range c.Env {
			if name, isFlag := strings.CutPrefix(e.Name, "SPANSTATSD_"); isFlag {
				if flag := "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) +
					" "; !strings.Contains(help, flag) {
					t.Errorf("%s sets %s, and neither %v nor a hook has a flag %s", c.Name, e.Name, c.Args,
						flag)
				}
			}
		}
	}
}
