package kubernetes

import (
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape is a kind of pod with the expected result of its injection.
type shape struct {
	name      string
	change    func(*core.Pod)            // applied to a pod with one ordinary container
	isAlone   bool                       // the pod is not injected
	doors     string                     // receivers besides the native socket: d (Datadog), o (OTLP)
	unset     []string                   // receivers whose variables containers do not get
	resources *core.ResourceRequirements // expected pod-level resources; nil for unchanged ones
	namespace string                     // default: the namespace with only the injection label
}

// shapes lists kinds of pods that users have.
var shapes = []shape{
	{name: "one-container"},
	{name: "two-containers", change: add(container("log"))},
	{name: "ten-containers", change: func(p *core.Pod) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			p.Spec.Containers = append(p.Spec.Containers, container(name))
		}
	}},
	{name: "init-container", change: addInit(container("migrate"))},
	{name: "own-sidecar", change: addInit(always(container("proxy")))},
	{name: "init-and-own-sidecar", change: addInit(container("migrate"), always(container("proxy")))},
	{
		name:   "variables",
		change: env(core.EnvVar{Name: "A", Value: "b"}, core.EnvVar{Name: "C", Value: "$(A)"}),
	},
	{name: "own-socket", change: env(core.EnvVar{Name: "SPANSTATSD_SOCKET", Value: "/elsewhere"})},
	{
		name:   "own-socket-by-reference",
		change: env(core.EnvVar{Name: "SPANSTATSD_SOCKET", ValueFrom: nameOfPod}),
	},
	{name: "own-empty-socket", change: env(core.EnvVar{Name: "SPANSTATSD_SOCKET"})},
	{name: "variables-by-reference", change: env(core.EnvVar{Name: "NAME", ValueFrom: nameOfPod})},
	{
		name: "variables-from-a-map", change: both(allDoors, envFrom("")), doors: "do",
		unset: []string{"SPANSTATSD_SOCKET", "DD_TRACE_AGENT_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"},
	},
	{
		name: "variables-of-opentelemetry-from-a-map", change: both(allDoors, envFrom("OTEL_")), doors: "do",
		unset: []string{"OTEL_EXPORTER_OTLP_ENDPOINT"},
	},
	{name: "other-variables-from-a-map", change: both(allDoors, envFrom("DB_")), doors: "do"},
	{
		name: "variables-from-a-map-overridden", doors: "do",
		change: both(allDoors, both(envFrom(""), annotate("spanstatsd.io/env-from", "override"))),
	},
	{
		name: "variables-from-a-map-overridden-by-the-namespace", namespace: "override", doors: "do",
		change: envFrom(""),
	},
	{
		name: "variables-from-a-map-kept-by-the-pod", namespace: "override", doors: "do",
		change: both(envFrom(""), annotate("spanstatsd.io/env-from", "keep")),
		unset:  []string{"SPANSTATSD_SOCKET", "DD_TRACE_AGENT_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"},
	},
	{name: "all-doors", change: allDoors, doors: "do"},
	{name: "doors-with-spaces", change: annotate("spanstatsd.io/receivers", "socket, otlp"), doors: "o"},
	{name: "datadog", change: annotate("spanstatsd.io/receivers", "socket,datadog"), doors: "d"},
	{name: "old-annotation", change: annotate("spanstatsd.io/doors", "socket,datadog"), doors: "d"},
	{name: "otlp", change: annotate("spanstatsd.io/receivers", "socket,otlp"), doors: "o"},
	{name: "unknown-door", change: annotate("spanstatsd.io/receivers", "socket,carrier-pigeon")},
	{name: "own-agent", doors: "d", change: both(annotate("spanstatsd.io/receivers", "datadog"),
		env(core.EnvVar{Name: "DD_TRACE_AGENT_URL", Value: "http://agent:8126"}))},
	{name: "own-collector", doors: "o", change: both(annotate("spanstatsd.io/receivers", "otlp"),
		env(core.EnvVar{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector:4318"}))},
	{name: "own-agent-by-reference", doors: "d", change: both(annotate("spanstatsd.io/receivers", "datadog"),
		env(core.EnvVar{Name: "DD_TRACE_AGENT_URL", ValueFrom: nameOfPod}))},
	{name: "doors-of-the-namespace", namespace: "doors", doors: "do"},
	{name: "doors-of-its-own", namespace: "doors", change: annotate("spanstatsd.io/receivers", "socket")},
	{name: "volumes", change: mount("data", "/data")},
	{name: "own-mount-there", change: mount("mine", "/var/run/spanstatsd")},
	{name: "mount-beside", change: mount("mine", "/var/run")},
	{name: "without-token", change: func(p *core.Pod) {
		no := false
		p.Spec.AutomountServiceAccountToken = &no
	}},
	{name: "command-and-probes", change: func(p *core.Pod) {
		p.Spec.Containers[0].Command = []string{"/shop"}
		p.Spec.Containers[0].ReadinessProbe = &core.Probe{ProbeHandler: core.ProbeHandler{
			Exec: &core.ExecAction{Command: []string{"true"}},
		}}
	}},
	{name: "resources", change: func(p *core.Pod) {
		p.Spec.Containers[0].Resources.Limits = core.ResourceList{core.ResourceMemory: resource.MustParse("64Mi")}
	}},
	{
		name:      "limit-of-the-pod",
		change:    podResources(nil, list("2", "")),
		resources: &core.ResourceRequirements{Limits: list("3", ""), Requests: list("2010m", "32Mi")},
	},
	{
		name:      "limits-of-the-pod-below-the-daemons",
		change:    podResources(nil, list("500m", "64Mi")),
		resources: &core.ResourceRequirements{Limits: list("1500m", "256Mi"), Requests: list("510m", "96Mi")},
	},
	{
		name: "requests-of-the-pod-used-up",
		change: both(podResources(list("0.25", "1.5Gi"), nil), func(p *core.Pod) {
			p.Spec.Containers[0].Resources.Requests = list("250m", "1536Mi")
		}),
		resources: &core.ResourceRequirements{Requests: list("260m", "1568Mi")},
	},
	{
		name:      "request-of-the-pod-for-memory",
		change:    podResources(list("", "16Mi"), nil),
		resources: &core.ResourceRequirements{Requests: list("", "48Mi")},
	},
	{name: "shared-processes", change: func(p *core.Pod) {
		yes := true
		p.Spec.ShareProcessNamespace = &yes
	}},
	{name: "linux", change: func(p *core.Pod) { p.Spec.OS = &core.PodOS{Name: core.Linux} }},
	{name: "linux-by-selector", change: selectOS("linux")},
	{name: "linux-by-affinity", change: requireOS(core.NodeSelectorOpIn, "linux")},
	{name: "user-of-the-pod", change: func(p *core.Pod) {
		user := int64(1000)
		p.Spec.SecurityContext = &core.PodSecurityContext{RunAsUser: &user, FSGroup: &user}
	}},
	{name: "lives-long", change: func(p *core.Pod) {
		grace := int64(600)
		p.Spec.TerminationGracePeriodSeconds = &grace
	}},
	{name: "never-again", change: func(p *core.Pod) { p.Spec.RestartPolicy = core.RestartPolicyNever }},
	{name: "labels-and-annotations", change: both(annotate("a", "b"), func(p *core.Pod) {
		p.Labels = map[string]string{"app": "shop"}
	})},
	{name: "label-of-its-own", change: func(p *core.Pod) {
		p.Labels = map[string]string{"spanstatsd": "shop"}
	}},
	{name: "on-a-host-port", change: func(p *core.Pod) {
		p.Spec.Containers[0].Ports = []core.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}},
	{name: "restricted", namespace: "strict", change: restricted},
	{
		name: "restricted-with-doors", namespace: "strict", doors: "do",
		change: both(restricted, annotate("spanstatsd.io/receivers", "datadog,otlp")),
	},
	{name: "privileged", namespace: "loose", change: func(p *core.Pod) {
		yes := true
		p.Spec.Containers[0].SecurityContext = &core.SecurityContext{Privileged: &yes}
		p.Spec.HostPID = true
	}},
	{name: "a-container-came-before", namespace: "aa-early"},
	{name: "a-container-comes-later", namespace: "zz-late"},
	{name: "a-webhook-comes-after", namespace: "webhook"},

	{name: "switched-off-by-annotation", isAlone: true, change: annotate("spanstatsd", "none")},
	{name: "switched-off-by-label", isAlone: true, change: func(p *core.Pod) {
		p.Labels = map[string]string{"spanstatsd": "none"}
	}},
	{name: "another-namespace", isAlone: true, namespace: "without"},
	{name: "network-of-the-host", isAlone: true, namespace: "loose", change: func(p *core.Pod) {
		p.Spec.HostNetwork = true
	}},
	{name: "windows", isAlone: true, change: func(p *core.Pod) {
		p.Spec.OS = &core.PodOS{Name: core.Windows}
	}},
	{name: "windows-by-selector", isAlone: true, change: selectOS("windows")},
	{name: "windows-by-affinity", isAlone: true, change: requireOS(core.NodeSelectorOpIn, "windows")},
	{name: "not-linux-by-affinity", isAlone: true, change: requireOS(core.NodeSelectorOpNotIn, "linux")},
	{name: "own-volume-of-our-name", isAlone: true, change: mount("spanstatsd", "/data")},
	{name: "own-volume-there", isAlone: true, change: mount("spanstatsd", directory)},
	{name: "own-volume-of-our-other-name", isAlone: true, change: mount("spanstatsd-no-token", "/data")},
	{name: "component-sidecar", isAlone: true, change: both(allDoors, func(p *core.Pod) {
		addComponent(p)
		p.Spec.InitContainers = []core.Container{always(p.Spec.Containers[0])}
		p.Spec.Containers = p.Spec.Containers[1:]
	})},
	{name: "component-sidecar-classic", isAlone: true, change: addComponent},
	{name: "own-daemon", isAlone: true, change: add(container("spanstatsd"))},
	{name: "own-daemon-as-a-sidecar", isAlone: true, change: addInit(always(container("spanstatsd")))},
}

func container(name string) core.Container { return core.Container{Name: name, Image: name + ":1"} }

func always(c core.Container) core.Container {
	again := core.ContainerRestartPolicyAlways
	c.RestartPolicy = &again
	return c
}

var nameOfPod = &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "metadata.name"}}

func add(more ...core.Container) func(*core.Pod) {
	return func(p *core.Pod) { p.Spec.Containers = append(p.Spec.Containers, more...) }
}

func addInit(more ...core.Container) func(*core.Pod) {
	return func(p *core.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, more...) }
}

func env(more ...core.EnvVar) func(*core.Pod) {
	return func(p *core.Pod) { p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, more...) }
}

var allDoors = annotate("spanstatsd.io/receivers", "socket,datadog,otlp")

// envFrom gives the container the variables of a ConfigMap, with a prefix for their names.
func envFrom(prefix string) func(*core.Pod) {
	return func(p *core.Pod) {
		settings := core.LocalObjectReference{Name: "settings"}
		p.Spec.Containers[0].EnvFrom = []core.EnvFromSource{{
			Prefix: prefix, ConfigMapRef: &core.ConfigMapEnvSource{LocalObjectReference: settings},
		}}
	}
}

func podResources(requests, limits core.ResourceList) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Resources = &core.ResourceRequirements{Requests: requests, Limits: limits}
	}
}

// list returns a resource list without the empty quantities.
func list(cpu, memory string) core.ResourceList {
	of := core.ResourceList{}
	for name, quantity := range map[core.ResourceName]string{
		core.ResourceCPU: cpu, core.ResourceMemory: memory,
	} {
		if quantity != "" {
			of[name] = resource.MustParse(quantity)
		}
	}
	return of
}

func selectOS(name string) func(*core.Pod) {
	return func(p *core.Pod) { p.Spec.NodeSelector = map[string]string{core.LabelOSStable: name} }
}

func requireOS(operator core.NodeSelectorOperator, name string) func(*core.Pod) {
	return func(p *core.Pod) {
		term := core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{
			{Key: core.LabelOSStable, Operator: operator, Values: []string{name}},
		}}
		p.Spec.Affinity = &core.Affinity{NodeAffinity: &core.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{
				NodeSelectorTerms: []core.NodeSelectorTerm{term},
			},
		}}
	}
}

// addComponent adds the daemon like components/sidecar-classic.
func addComponent(p *core.Pod) {
	daemon := container("spanstatsd")
	daemon.VolumeMounts = []core.VolumeMount{
		{Name: "spanstatsd", MountPath: directory},
		{Name: "spanstatsd-no-token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
	}
	p.Spec.Containers = append([]core.Container{daemon}, p.Spec.Containers...)
	p.Spec.Volumes = append(p.Spec.Volumes, core.Volume{Name: "spanstatsd"}, core.Volume{Name: "spanstatsd-no-token"})
}

func annotate(name, value string) func(*core.Pod) {
	return func(p *core.Pod) { meta.SetMetaDataAnnotation(&p.ObjectMeta, name, value) }
}

func mount(name, path string) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, core.Volume{Name: name})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts,
			core.VolumeMount{Name: name, MountPath: path})
	}
}

func both(first, second func(*core.Pod)) func(*core.Pod) {
	return func(p *core.Pod) {
		first(p)
		second(p)
	}
}

func restricted(p *core.Pod) {
	yes, no, user := true, false, int64(1000)
	p.Spec.SecurityContext = &core.PodSecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user,
		SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
	}
	p.Spec.Containers[0].SecurityContext = &core.SecurityContext{
		AllowPrivilegeEscalation: &no,
		Capabilities:             &core.Capabilities{Drop: []core.Capability{"ALL"}},
	}
}
