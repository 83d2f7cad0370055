package deploy

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPromises_DetectViolations breaks one promise of a valid pod at a time.
func TestPromises_DetectViolations(t *testing.T) {
	no, root, once := false, int64(0), core.ContainerRestartPolicy("Never")
	for name, c := range map[string]struct {
		overlay string
		do      func(*core.PodSpec, *core.Container)
		finds   string
	}{
		"ends": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.RestartPolicy = &once },
			"that ends",
		},
		"no startup": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.StartupProbe = nil },
			"wait for the socket",
		},
		"root": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.SecurityContext.RunAsUser = &root
		}, "another user"},
		"maybe root": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.SecurityContext.RunAsNonRoot = nil
		}, "as root"},
		"writes": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.SecurityContext.ReadOnlyRootFilesystem = &no
		}, "write its root"},
		"gains": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.SecurityContext.AllowPrivilegeEscalation = nil
		}, "gain privileges"},
		"capability": {"sidecar", func(_ *core.PodSpec, d *core.Container) {
			d.SecurityContext.Capabilities.Add = []core.Capability{"NET_ADMIN"}
		}, "adds capabilities"},
		"capabilities": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.SecurityContext.Capabilities.Drop = nil
		}, "keeps capabilities"},
		"seccomp": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.SecurityContext.SeccompProfile = nil
		}, "seccomp"},
		"no context": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.SecurityContext = nil },
			"no security context",
		},
		"host network": {
			"sidecar", func(s *core.PodSpec, _ *core.Container) { s.HostNetwork = true },
			"host's network",
		},
		"token": {"sidecar", func(s *core.PodSpec, d *core.Container) {
			s.AutomountServiceAccountToken, d.VolumeMounts = nil, d.VolumeMounts[:1]
		}, "token"},
		"file mount": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.VolumeMounts[0].SubPath = "spans.sock"
		}, "in part"},
		"not shared": {"sidecar", func(s *core.PodSpec,
			_ *core.Container,
		) {
			s.Containers[0].VolumeMounts = nil
		}, "does not mount"},
		"writes beside the socket": {"sidecar", func(s *core.PodSpec, _ *core.Container) {
			s.Containers[0].VolumeMounts[0].ReadOnly = false
		}, "another socket"},
		"small volume": {"sidecar", func(s *core.PodSpec, _ *core.Container) {
			small := resource.MustParse("1Mi")
			s.Volumes[0].EmptyDir.SizeLimit = &small
		}, "evicts"},
		"socket not configured": {
			"sidecar", func(s *core.PodSpec, _ *core.Container) { s.Containers[0].Env = nil },
			"is not configured with the socket",
		},
		"closed": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.Env[1].Value = "0660" },
			"may not connect",
		},
		"small request": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.Resources.Requests = nil },
			"requests",
		},
		"small limit": {"sidecar", func(_ *core.PodSpec, d *core.Container) {
			d.Resources.Limits[core.ResourceMemory] = resource.MustParse("64Mi")
		}, "limited"},
		"all cores": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			delete(d.Resources.Limits, core.ResourceCPU)
		}, "drainers"},
		"readiness": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.ReadinessProbe = d.LivenessProbe
		}, "affects the readiness"},
		"probes others": {"sidecar", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.StartupProbe.HTTPGet.Host = "agent"
		}, "/readyz"},
		"no liveness": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.LivenessProbe = nil },
			"/livez",
		},
		"port": {
			"sidecar", func(_ *core.PodSpec, d *core.Container) { d.Ports[0].Name = "http" },
			"no port",
		},
		"no agent": {"sidecar", func(_ *core.PodSpec, d *core.Container) { d.Env = d.Env[:2] }, "agent"},
		"second": {"sidecar-classic", func(s *core.PodSpec, _ *core.Container) {
			s.Containers[0], s.Containers[1] = s.Containers[1], s.Containers[0]
		}, "started first"},
		"no postStart": {"sidecar-classic", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.Lifecycle.PostStart = nil
		}, "wait for the socket"},
		"no preStop": {"sidecar-classic", func(_ *core.PodSpec,
			d *core.Container,
		) {
			d.Lifecycle.PreStop = nil
		}, "stopped together"},
		"short grace": {"sidecar-classic", func(s *core.PodSpec,
			_ *core.Container,
		) {
			*s.TerminationGracePeriodSeconds = 25
		}, "grace"},
		"prepares more": {"node", func(s *core.PodSpec, _ *core.Container) {
			s.InitContainers[0].SecurityContext.Capabilities.Add = []core.Capability{"SYS_ADMIN"}
		}, "SYS_ADMIN"},
		"prepares elsewhere": {"node", func(s *core.PodSpec, _ *core.Container) {
			s.InitContainers[0].Env = []core.EnvVar{{
				Name:  "SPANSTATSD_SOCKET",
				Value: "/run/other/spans.sock",
			}}
		}, "another directory"},
		"probes elsewhere": {"sidecar", func(_ *core.PodSpec, d *core.Container) {
			d.Env = append(d.Env, core.EnvVar{Name: "SPANSTATSD_HTTP_ADDR", Value: ":9999"})
		}, "no port"},
		"prepares other": {"node", func(s *core.PodSpec,
			_ *core.Container,
		) {
			s.InitContainers[0].Args = nil
		}, "something else"},
		"exports elsewhere": {"otlp", func(s *core.PodSpec,
			_ *core.Container,
		) {
			s.Containers[0].Env[0].Value = "http://127.0.0.1:4317"
		}, "exports to"},
		"open to all": {"otlp", func(s *core.PodSpec, d *core.Container) {
			setEnvironment(d, "SPANSTATSD_OTLP_ADDR", "0.0.0.0:4318")
			s.Containers[0].Env[0].Value = "http://0.0.0.0:4318"
		}, "is counted"},
		"sends to itself": {"otlp", func(_ *core.PodSpec, d *core.Container) {
			setEnvironment(d, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
		}, "to itself"},
		"no daemon": {
			"node", func(s *core.PodSpec, _ *core.Container) { s.Containers[0].Name = "other" },
			"no daemon",
		},
	} {
		w := overlay(t, c.overlay).pods[0]
		if violation := violations(w); len(violation) > 0 {
			t.Fatalf("%s has violations before the test adds one: %v", c.overlay, violation)
		}
		daemon, _ := daemonOf(&w.pod.Spec)
		c.do(&w.pod.Spec, daemon)
		if found := strings.Join(violations(w), "; "); !strings.Contains(found, c.finds) {
			t.Errorf("%s: found %q, want one with %q", name, found, c.finds)
		}
	}
}

// setEnvironment sets a variable of a container.
func setEnvironment(c *core.Container, name, value string) {
	c.Env = append(slices.DeleteFunc(c.Env, func(e core.EnvVar) bool {
		return e.Name == name
	}), core.EnvVar{Name: name, Value: value})
}
