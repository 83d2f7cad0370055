package deploy

import (
	"cmp"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The promises of the manifests for every pod with the daemon.

const (
	daemonUser = 65532
	// defaultSocket is the daemon's default socket, as checked by TestUnit.
	defaultSocket = "/var/run/spanstatsd/spans.sock"
	tokenPath     = "/var/run/secrets/kubernetes.io/serviceaccount"
	// hookSeconds and graceSeconds are the parts of a pod's grace period for the hooks and for the
	// daemon's --shutdown-grace.
	hookSeconds, graceSeconds = 20, 5
)

// The daemon's resource usage in an ordinary pod, as measured by `make test-requests`, and the smallest
// limits with which it keeps its default number of aggregates.
var (
	leastRequest, leastCPU = resource.MustParse("32Mi"), resource.MustParse("10m")
	leastLimit             = resource.MustParse("192Mi")
)

// recoveryBytes is the space that the recovery files next to the socket can take, with the default number of
// connections.
var recoveryBytes = int64(recovery.DirectoryBytes(ingest.DefaultConfig().MaxConnections))

// findings are the violations.
type findings []string

func (f *findings) expect(isMet bool, format string, args ...any) {
	if !isMet {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// violations checks one pod.
func violations(w workload) (f findings) {
	spec := &w.pod.Spec
	f.expect(!spec.HostNetwork && !spec.HostIPC, "%s shares the host's network or memory", w.name)
	f.expect(w.pod.Labels["spanstatsd"] != "", "%s has no label for the PodMonitor", w.name)
	daemon, native := daemonOf(spec)
	if daemon == nil {
		f.expect(false, "%s runs no daemon", w.name)
		return f
	}
	f.order(w, daemon, native)
	f.confined(daemon)
	f.token(spec, daemon)
	f.shared(spec, daemon)
	f.resources(daemon)
	f.probes(daemon)
	f.agent(daemon)
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.Name == "prepare" {
			f.preparation(c, daemon)
		}
	}
	return f
}

// daemonOf returns the daemon's container and whether it is a native sidecar.
func daemonOf(spec *core.PodSpec) (daemon *core.Container, native bool) {
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.Name == "spanstatsd" {
			return c, true
		}
	}
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Name == "spanstatsd" {
			return c, false
		}
	}
	return nil, false
}

// order checks that the socket exists before the application starts and outlives it.
func (f *findings) order(w workload, daemon *core.Container, native bool) {
	switch {
	case native:
		f.expect(daemon.RestartPolicy != nil && *daemon.RestartPolicy == core.ContainerRestartPolicyAlways,
			"an init container that ends keeps the pod from starting")
		f.expect(daemon.StartupProbe != nil, "nothing makes the application wait for the socket")
	case len(w.pod.Spec.Containers) > 1:
		f.expect(w.pod.Spec.Containers[0].Name == daemon.Name, "the application is started first")
		f.expect(hook(daemon, true, "ready"), "nothing makes the application wait for the socket")
		f.expect(hook(daemon, false, "idle"), "the daemon is stopped together with the application")
		grace := w.pod.Spec.TerminationGracePeriodSeconds
		f.expect(grace == nil || *grace > hookSeconds+graceSeconds, "the pod's grace ends before the "+
			"daemon's")
	}
	grace := w.pod.Spec.TerminationGracePeriodSeconds
	f.expect(grace == nil || *grace > graceSeconds, "the pod's grace ends before the daemon's")
}

// hook reports whether the post-start hook, or the pre-stop hook, waits for the given condition.
func hook(c *core.Container, start bool, what string) bool {
	if c.Lifecycle == nil {
		return false
	}
	handler := c.Lifecycle.PreStop
	if start {
		handler = c.Lifecycle.PostStart
	}
	return handler != nil && handler.Exec != nil && len(handler.Exec.Command) > 2 &&
		slices.Equal(handler.Exec.Command[:3], []string{"/spanstatsd", "wait", what})
}

// confined checks that the container has no host access, no privileges, and no writable file system.
func (f *findings) confined(c *core.Container) {
	s := c.SecurityContext
	if s == nil {
		f.expect(false, "%s has no security context", c.Name)
		return
	}
	f.expect(isTrue(s.RunAsNonRoot), "%s may run as root", c.Name)
	f.expect(s.RunAsUser != nil &&
		*s.RunAsUser == daemonUser, "%s runs as another user than the image's", c.Name)
	f.expect(s.Capabilities != nil && len(s.Capabilities.Add) == 0, "%s adds capabilities", c.Name)
	f.contained(c)
}

// contained checks the restrictions that also apply to a container that runs as root.
func (f *findings) contained(c *core.Container) {
	s := c.SecurityContext
	f.expect(isTrue(s.ReadOnlyRootFilesystem), "%s may write its root", c.Name)
	f.expect(s.AllowPrivilegeEscalation != nil &&
		!*s.AllowPrivilegeEscalation, "%s may gain privileges", c.Name)
	f.expect(s.Privileged == nil || !*s.Privileged, "%s is privileged", c.Name)
	f.expect(s.Capabilities != nil &&
		slices.Contains(s.Capabilities.Drop, "ALL"), "%s keeps capabilities", c.Name)
	f.expect(s.SeccompProfile != nil &&
		s.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault, "%s has no seccomp profile", c.Name)
}

// preparation checks the init container that runs as root to change the owner of a directory.
func (f *findings) preparation(c, daemon *core.Container) {
	socket := cmp.Or(environment(c, "SPANSTATSD_SOCKET"), defaultSocket)
	f.expect(socket == cmp.Or(environment(daemon, "SPANSTATSD_SOCKET"), defaultSocket) &&
		mountAt(c, path.Dir(socket)) != nil, "the preparation makes another directory")
	f.expect(c.RestartPolicy == nil, "the preparation stays")
	f.expect(slices.Equal(c.Args, []string{"prepare"}), "the preparation runs something else")
	f.contained(c)
	for _, added := range c.SecurityContext.Capabilities.Add {
		f.expect(added == "CHOWN" || added == "FOWNER", "the preparation has %s", added)
	}
}

// token checks that the daemon never gets a service account token, whether or not the application has
// one.
func (f *findings) token(spec *core.PodSpec, daemon *core.Container) {
	if spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken {
		return
	}
	for _, mount := range daemon.VolumeMounts {
		if mount.MountPath == tokenPath {
			v := volume(spec, mount.Name)
			f.expect(v != nil && v.EmptyDir != nil, "the volume over the token is not empty")
			return
		}
	}
	f.expect(false, "the daemon sees the service account's token")
}

// shared checks that daemon and application mount the complete directory of the socket, and that every
// container with this mount can connect.
func (f *findings) shared(spec *core.PodSpec, daemon *core.Container) {
	socket := environment(daemon, "SPANSTATSD_SOCKET")
	mount := mountAt(daemon, path.Dir(socket))
	if mount == nil {
		f.expect(false, "the socket's directory %s is no mount", path.Dir(socket))
		return
	}
	f.expect(mount.SubPath == "" && !mount.ReadOnly, "the socket's directory is mounted in part or to be "+
		"read only")
	v := volume(spec, mount.Name)
	f.expect(v != nil &&
		(v.EmptyDir != nil || v.HostPath != nil && *v.HostPath.Type == core.HostPathDirectoryOrCreate),
		"the socket's directory is no directory that pods share")
	if v != nil && v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
		f.expect(v.EmptyDir.SizeLimit.Value() >= recoveryBytes, "the recovery files of a crash loop exceed %s, so "+
			"that the kubelet evicts the pod", v.EmptyDir.SizeLimit)
	}
	open := environment(daemon, "SPANSTATSD_SOCKET_MODE") == "0666" ||
		spec.SecurityContext != nil && spec.SecurityContext.FSGroup != nil
	f.expect(open, "an application of another user may not connect")
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c == daemon || f.exports(c, daemon) {
			continue
		}
		m := mountAt(c, path.Dir(socket))
		f.expect(m != nil && m.Name == mount.Name && m.SubPath == "", "%s does not mount the socket's "+
			"directory", c.Name)
		f.expect(m == nil || m.ReadOnly, "%s may put another socket in the daemon's place", c.Name)
		f.expect(environment(c, "SPANSTATSD_SOCKET") == socket, "%s is not configured with the socket", c.Name)
	}
}

// exports reports whether an application has an SDK that exports to the daemon, so that it needs no
// socket directory. It checks that the SDK has the right endpoint, that the daemon listens there, and
// that the daemon does not export to itself.
func (f *findings) exports(c, daemon *core.Container) bool {
	endpoint := environment(c, "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" {
		return false
	}
	address := environment(daemon, "SPANSTATSD_OTLP_ADDR")
	f.expect(endpoint == "http://"+address, "%s exports to %s, and the daemon accepts OTLP at %q", c.Name,
		endpoint, address)
	host, _, _ := net.SplitHostPort(address)
	f.expect(net.ParseIP(host).IsLoopback(), "whoever reaches the pod is counted")
	f.expect(environment(daemon, "OTEL_EXPORTER_OTLP_ENDPOINT") == "",
		"the daemon sends its metrics to itself")
	return environment(c, "SPANSTATSD_SOCKET") == ""
}

func (f *findings) resources(c *core.Container) {
	request, limit := c.Resources.Requests[core.ResourceMemory], c.Resources.Limits[core.ResourceMemory]
	f.expect(request.Cmp(leastRequest) >= 0, "%s requests %s, less than its budget", c.Name, request.String())
	f.expect(limit.Cmp(leastLimit) >= 0, "%s is limited to %s, less than its defaults need", c.Name,
		limit.String())
	requested := c.Resources.Requests[core.ResourceCPU]
	f.expect(requested.Cmp(leastCPU) >= 0, "%s requests %s of CPU, less than it uses", c.Name,
		requested.String())
	cpu := c.Resources.Limits[core.ResourceCPU]
	f.expect(!cpu.IsZero(), "%s has as many drainers as the node has cores", c.Name)
}

// probes checks that probes concern only the daemon itself, and never make the pod unready.
func (f *findings) probes(c *core.Container) {
	for path, probe := range map[string]*core.Probe{"/readyz": c.StartupProbe, "/livez": c.LivenessProbe} {
		ok := probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Path == path &&
			probe.HTTPGet.Host == "" &&
			probe.HTTPGet.Port.String() == "spanstatsd"
		f.expect(ok, "no probe of the daemon requests %s", path)
	}
	f.expect(c.ReadinessProbe == nil, "the daemon's readiness affects the readiness of the application")
	port := slices.IndexFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == "spanstatsd" })
	f.expect(port >= 0 && int(c.Ports[port].ContainerPort) == httpPort(c), "no port has the name that "+
		"probes and scrapes use")
}

// httpPort returns the daemon's HTTP port.
func httpPort(c *core.Container) int {
	_, port, err := net.SplitHostPort(environment(c, "SPANSTATSD_HTTP_ADDR"))
	if n, bad := strconv.Atoi(port); err == nil && bad == nil {
		return n
	}
	return 9126
}

// agent checks that the daemon has an agent address or that the agent is disabled. Otherwise it would
// look within its own pod.
func (f *findings) agent(c *core.Container) {
	host := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "DD_AGENT_HOST" })
	node := host >= 0 && c.Env[host].ValueFrom != nil && c.Env[host].ValueFrom.FieldRef != nil &&
		c.Env[host].ValueFrom.FieldRef.FieldPath == "status.hostIP"
	isConfigured := environment(c, "DD_TRACE_AGENT_URL") != "" || environment(c, "SPANSTATSD_AGENT_URL") == "off"
	f.expect(node || isConfigured, "the address of the node's agent is not configured")
}

func isTrue(b *bool) bool { return b != nil && *b }

func environment(c *core.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func mountAt(c *core.Container, dir string) *core.VolumeMount {
	for i := range c.VolumeMounts {
		if c.VolumeMounts[i].MountPath == dir {
			return &c.VolumeMounts[i]
		}
	}
	return nil
}

func volume(spec *core.PodSpec, name string) *core.Volume {
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == name {
			return &spec.Volumes[i]
		}
	}
	return nil
}
