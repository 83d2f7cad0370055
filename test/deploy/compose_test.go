package deploy

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"sigs.k8s.io/yaml"
)

// composed is the example for `docker compose up`.
type composed struct{ *types.Project }

func loadExample(t *testing.T) composed {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../examples/compose.yaml"},
		cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return composed{project}
}

// TestComposeExample checks that all mounted and built files exist, that services listen on loopback
// only, that each name used by one service belongs to a service that listens there, and that the daemon
// accepts its flags.
func TestComposeExample(t *testing.T) {
	c := loadExample(t)
	for name, service := range c.Services {
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); err != nil || !volume.ReadOnly {
				t.Errorf("%s mounts %s, writable: %t; %v", name, volume.Source, !volume.ReadOnly, err)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes port %d at %q", name, port.Target, port.HostIP)
			}
		}
		if service.Build != nil && service.Build.DockerfileInline == "" {
			if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	daemon := c.Services["spanstatsd"]
	if daemon.Command[0] != "run" || !daemon.ReadOnly || !slices.Equal(daemon.CapDrop, []string{"ALL"}) {
		t.Errorf("the daemon runs as %q, its root is writable: %t", daemon.Command, !daemon.ReadOnly)
	}
	check := exec.Command(binary, append([]string{"config", "--check"}, daemon.Command[1:]...)...)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %v, %s", check.Args, err, out)
	}
	shop := c.Services["shop"]
	if exports, err := url.Parse(*shop.Environment["OTEL_EXPORTER_OTLP_ENDPOINT"]); err != nil ||
		!c.listens(exports.Host) {
		t.Errorf("the shop exports to %v, which has no listener; %v", exports, err)
	}
	if !shop.StdinOpen {
		t.Error("the shop has no standard input, so it exits at once")
	}
	c.checkPrometheus(t)
	c.checkGrafana(t)
}

// listens reports whether an address belongs to a service that is configured to listen there.
func (c composed) listens(address string) bool {
	name, port, err := net.SplitHostPort(address)
	service, there := c.Services[name]
	if err != nil || !there {
		return false
	}
	if name == "prometheus" {
		return port == "9090" // its default
	}
	return slices.ContainsFunc(service.Command, func(flag string) bool {
		return strings.HasSuffix(flag, "=0.0.0.0:"+port)
	}) && service.Hostname == name
}

// mounted returns the file on this machine that a service sees at a path.
func (c composed) mounted(t *testing.T, service, at string) string {
	t.Helper()
	for _, volume := range c.Services[service].Volumes {
		if volume.Target == at {
			return volume.Source
		}
	}
	t.Fatalf("%s has no file at %s", service, at)
	return ""
}

// exampleConfig is the tested part of the example's Prometheus configuration.
type exampleConfig struct {
	RuleFiles []string `json:"rule_files"`
	Jobs      []struct {
		Path    string                       `json:"metrics_path"`
		Targets []struct{ Targets []string } `json:"static_configs"`
	} `json:"scrape_configs"`
}

// checkPrometheus checks that both metrics paths of the daemon are scraped, and that all rules are
// loaded.
func (c composed) checkPrometheus(t *testing.T) {
	t.Helper()
	at := strings.TrimPrefix(c.Services["prometheus"].Command[0], "--config.file=")
	var config exampleConfig
	if err := yaml.Unmarshal(readFile(t, c.mounted(t, "prometheus", at)), &config); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, job := range config.Jobs {
		paths = append(paths, job.Path)
		if target := job.Targets[0].Targets[0]; !c.listens(target) {
			t.Errorf("Prometheus scrapes %s, which has no listener", target)
		}
	}
	if !slices.Equal(paths, []string{"/metrics/spans", ""}) {
		t.Errorf("Prometheus scrapes %q", paths)
	}
	for _, name := range config.RuleFiles {
		c.mounted(t, "prometheus", path.Join(path.Dir(at), name))
	}
	if len(config.RuleFiles) != 2 {
		t.Errorf("rules %q", config.RuleFiles)
	}
}

// checkGrafana checks that the data source is the example's Prometheus, and that both dashboards are
// found.
func (c composed) checkGrafana(t *testing.T) {
	t.Helper()
	const provisioning = "/etc/grafana/provisioning/"
	var sources struct{ Datasources []struct{ Type, URL string } }
	var provided struct {
		Providers []struct{ Options struct{ Path string } }
	}
	for at, into := range map[string]any{
		"datasources/prometheus.yaml": &sources, "dashboards/spanstatsd.yaml": &provided,
	} {
		if err := yaml.Unmarshal(readFile(t, c.mounted(t, "grafana", provisioning+at)), into); err != nil {
			t.Fatal(err)
		}
	}
	if source := sources.Datasources[0]; source.Type != "prometheus" ||
		!c.listens(strings.TrimPrefix(source.URL, "http://")) {
		t.Errorf("Grafana's data source is %+v", source)
	}
	for _, d := range dashboards {
		c.mounted(t, "grafana", path.Join(provided.Providers[0].Options.Path, d.name))
	}
	c.mounted(t, "grafana", *c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
}
