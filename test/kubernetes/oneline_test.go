package kubernetes

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	helmregistry "helm.sh/helm/v4/pkg/registry"
	"helm.sh/helm/v4/pkg/strvals"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// documented is the registry in the README. The test replaces it with its own.
const documented = "your-registry.example"

// TestInstallPage_TwoCommands runs the Kubernetes commands of the README: the released chart is pushed to a
// registry and installed from there, and a namespace is labeled. A pod created in it must contain the
// daemon with the image of that registry. After the release is uninstalled, pods must be unmodified
// again.
func TestInstallPage_TwoCommands(t *testing.T) {
	c := start(t)
	address := startRegistry(t)
	lines := commandsOf(t, "../../README.md", "## In Kubernetes")
	if len(lines) != 2 {
		t.Fatalf("the README has %q under Kubernetes, which are not two lines", lines)
	}
	h := newHelm(t, c)
	h.push(t, packed(t, address), "oci://"+address+"/charts")
	c.namespace(t, "shop", nil, nil)
	for _, line := range lines {
		words := strings.Fields(strings.ReplaceAll(line, documented, address))
		switch {
		case len(words) == 6 && words[0] == "helm" && words[1] == "install" && words[4] == "--set":
			h.install(t, words[2], words[3], words[5])
		case len(words) == 5 && strings.Join(words[:3], " ") == "kubectl label namespace":
			name, value, _ := strings.Cut(words[4], "=")
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, name, value)
			if _, err := c.CoreV1().Namespaces().Patch(t.Context(), words[3], types.MergePatchType,
				[]byte(patch),
				meta.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("this test does not know how to do %q", line)
		}
	}
	eventually(t, "a pod has the daemon", func() error {
		p, err := c.CoreV1().Pods("shop").Create(t.Context(), pod("probe"),
			meta.CreateOptions{DryRun: []string{"All"}})
		if err == nil && !isInjected(&p.Spec) {
			return fmt.Errorf("a pod is admitted as it is")
		}
		if err == nil && !strings.HasPrefix(p.Spec.InitContainers[0].Image, address+"/spanstatsd:") {
			t.Errorf("the daemon's image is %s, where the registry is %s", p.Spec.InitContainers[0].Image,
				address)
		}
		return err
	})
	// The metric of the alert SpanstatsdNotInjected, for a policy that does not fail.
	metrics, err := c.RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	checks := regexp.MustCompile(`(?m)^apiserver_mutating_admission_policy_check_total\{(.*)\} `).FindAllStringSubmatch(
		string(metrics), -1)
	for _, labels := range checks {
		if !strings.Contains(labels[1], `error_type="no_error"`) ||
			!strings.Contains(labels[1], `policy="spanstatsd-sidecar"`) {
			t.Errorf("the API server counts {%s}", labels[1])
		}
	}
	if len(checks) == 0 {
		t.Error("the API server does not count what the policy does")
	}
	h.uninstall(t, "spanstatsd")
	eventually(t, "a pod is as it was", func() error {
		p, err := c.CoreV1().Pods("shop").Create(t.Context(), pod("probe"),
			meta.CreateOptions{DryRun: []string{"All"}})
		if err == nil && isInjected(&p.Spec) {
			return fmt.Errorf("a pod has the daemon, though the release is gone")
		}
		return err
	})
}

// commandsOf returns the lines of the first command block in a section of a document.
func commandsOf(t *testing.T, file, heading string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	block := regexp.MustCompile(`(?m)(^    \S.*\n)+`).FindString(section)
	if !found || block == "" {
		t.Fatalf("%s has no commands under %q", file, heading)
	}
	for line := range strings.Lines(block) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// startRegistry starts a registry on loopback that runs until the end of the test.
func startRegistry(t *testing.T) (address string) {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// packed packs the chart as in a release, with the registry as its image registry.
func packed(t *testing.T, registry string) (file string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("sh", "deploy/chart.sh", filepath.Join(dir, "chart.tgz"))
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "VERSION=v0.1.0", "EPOCH=0", "REGISTRY="+registry)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack the chart: %v\n%s", err, out)
	}
	return filepath.Join(dir, "chart.tgz")
}

// helm does what the helm command does, with Helm's library.
type helm struct {
	settings *cli.EnvSettings
	config   *action.Configuration
}

func newHelm(t *testing.T, c *cluster) *helm {
	t.Helper()
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	t.Setenv("HELM_DATA_HOME", t.TempDir())
	h := &helm{settings: cli.New(), config: action.NewConfiguration()}
	h.settings.KubeConfig = filepath.Join(c.dir, "kubeconfig")
	if err := h.config.Init(h.settings.RESTClientGetter(), "default", "secrets"); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.config.RegistryClient, err = helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(),
		helmregistry.ClientOptWriter(io.Discard)); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *helm) push(t *testing.T, file, to string) {
	t.Helper()
	push := action.NewPushWithOpts(action.WithPushConfig(h.config), action.WithPlainHTTP(true),
		action.WithPushOptWriter(io.Discard))
	push.Settings = h.settings
	if out, err := push.Run(file, to); err != nil {
		t.Fatalf("push the chart: %v, %s", err, out)
	}
}

func (h *helm) install(t *testing.T, name, chart, set string) {
	t.Helper()
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.WaitStrategy = name, "default", kube.HookOnlyStrategy
	install.PlainHTTP = true
	file, err := install.LocateChart(chart, h.settings)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := loader.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	values, err := strvals.Parse(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Run(loaded, values); err != nil {
		t.Fatalf("install %s: %v", chart, err)
	}
}

func (h *helm) uninstall(t *testing.T, name string) {
	t.Helper()
	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run(name); err != nil {
		t.Fatal(err)
	}
}
