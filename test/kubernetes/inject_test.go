package kubernetes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const directory = "/var/run/spanstatsd"

// variablesOf contains the variable that containers get for each receiver.
var variablesOf = map[string]core.EnvVar{
	"":  {Name: "SPANSTATSD_SOCKET", Value: directory + "/spans.sock"},
	"d": {Name: "DD_TRACE_AGENT_URL", Value: "unix://" + directory + "/apm.socket"},
	"o": {Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://127.0.0.1:4318"},
}

// TestInjection creates pods of every shape, directly and through every controller that creates pods,
// and checks the admitted pods. The policy is that of the chart.
func TestInjection(t *testing.T) {
	c := start(t)
	c.namespace(t, "shop", map[string]string{"spanstatsd": "sidecar"}, nil)
	c.namespace(t, "without", nil, nil)
	c.namespace(t, "doors", map[string]string{"spanstatsd": "sidecar"},
		map[string]string{"spanstatsd.io/receivers": "socket,datadog,otlp"})
	c.namespace(t, "override", map[string]string{"spanstatsd": "sidecar"}, map[string]string{
		"spanstatsd.io/receivers": "socket,datadog,otlp", "spanstatsd.io/env-from": "override",
	})
	for name, level := range map[string]string{"strict": "restricted", "loose": "privileged"} {
		c.namespace(t, name,
			map[string]string{"spanstatsd": "sidecar", "pod-security.kubernetes.io/enforce": level}, nil)
	}
	// the API server applies policies in the order of their names
	for _, name := range []string{"aa-early", "zz-late"} {
		c.namespace(t, name, map[string]string{"spanstatsd": "sidecar", name: "yes"}, nil)
		c.apply(t, strings.ReplaceAll(otherPolicy, "NAME", name))
	}
	c.namespace(t, "webhook", map[string]string{"spanstatsd": "sidecar", "webhook": "yes"}, nil)
	c.webhook(t)
	policy := chart(t, map[string]any{"inject": map[string]any{"enabled": true}})
	// With the policy's default, an error in it would be silent: the pod would be admitted unchanged.
	c.apply(t, strings.Replace(policy, "failurePolicy: Ignore", "failurePolicy: Fail", 1))
	c.awaitPolicy(t, "shop")
	held := 0
	for _, s := range shapes {
		if t.Run(s.name, func(t *testing.T) { c.try(t, s) }) {
			held++
		}
	}
	for name, make := range owners {
		if t.Run(name, func(t *testing.T) { c.tryOwner(t, name, make) }) {
			held++
		}
	}
	t.Logf("shapes %d of %d held", held, len(shapes)+len(owners))
}

// awaitPolicy waits until a pod of the namespace is admitted with the daemon.
func (c *cluster) awaitPolicy(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "the policy is at work", func() error {
		p, err := c.CoreV1().Pods(namespace).Create(t.Context(), pod("probe"),
			meta.CreateOptions{DryRun: []string{"All"}})
		if err == nil && !isInjected(&p.Spec) {
			err = fmt.Errorf("a pod is admitted as it is")
		}
		return err
	})
}

func pod(name string) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec:       core.PodSpec{Containers: []core.Container{container("shop")}},
	}
}

// try creates a pod, and one of the same shape in a namespace without the label, and then admits the
// injected pod a second time.
func (c *cluster) try(t *testing.T, s shape) {
	namespace := s.namespace
	if namespace == "" {
		namespace = "shop"
	}
	p, control := pod(s.name), pod(s.name)
	if s.change != nil {
		s.change(p)
		s.change(control)
	}
	control.Name += "-control"
	plain, err := c.CoreV1().Pods("without").Create(t.Context(), control, meta.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	strict := meta.CreateOptions{FieldValidation: meta.FieldValidationStrict}
	dry, err := c.CoreV1().Pods(namespace).Create(t.Context(), p,
		meta.CreateOptions{FieldValidation: meta.FieldValidationStrict, DryRun: []string{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	admitted, err := c.CoreV1().Pods(namespace).Create(t.Context(), p, strict)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a dry run", &dry.Spec, &admitted.Spec)
	s.check(t, &admitted.Spec, &plain.Spec)
	if s.isAlone {
		return
	}
	if label := admitted.Labels["spanstatsd"]; label != cmp.Or(p.Labels["spanstatsd"], "sidecar") {
		t.Errorf("the pod has the label spanstatsd: %q", label)
	}
	again := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: s.name + "-again", Annotations: admitted.Annotations},
		Spec:       *admitted.Spec.DeepCopy(),
	}
	twice, err := c.CoreV1().Pods(namespace).Create(t.Context(), again, strict)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "admitted again", &twice.Spec, &admitted.Spec)
	admitted.Labels["touched"] = "yes"
	updated, err := c.CoreV1().Pods(namespace).Update(t.Context(), admitted, meta.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "updated", &updated.Spec, &admitted.Spec)
}

func isInjected(spec *core.PodSpec) bool {
	return len(spec.InitContainers) > 0 && spec.InitContainers[0].Name == "spanstatsd" &&
		spec.InitContainers[0].RestartPolicy != nil
}

// check compares the injected pod with the pod of the same shape that was not injected.
func (s *shape) check(t *testing.T, got, plain *core.PodSpec) {
	t.Helper()
	if s.isAlone {
		same(t, "left alone", got, plain)
		return
	}
	if !isInjected(got) {
		t.Fatalf("there is no daemon: %s", text(got))
	}
	s.checkDaemon(t, &got.InitContainers[0])
	without := got.DeepCopy()
	without.InitContainers = without.InitContainers[1:]
	without.Volumes = slices.DeleteFunc(without.Volumes, func(v core.Volume) bool {
		return strings.HasPrefix(v.Name, "spanstatsd")
	})
	without.Containers = slices.DeleteFunc(without.Containers, func(c core.Container) bool {
		return c.Name == "late"
	})
	for _, c := range append(pointers(got.InitContainers[1:]), pointers(got.Containers)...) {
		s.checkApplication(t, c)
	}
	for _, c := range append(pointers(without.InitContainers), pointers(without.Containers)...) {
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m core.VolumeMount) bool {
			return m.Name == "spanstatsd"
		})
		c.Env = slices.DeleteFunc(c.Env, func(e core.EnvVar) bool {
			return e == variablesOf[""] || e == variablesOf["d"] || e == variablesOf["o"]
		})
	}
	if s.resources != nil && !equality.Semantic.DeepEqual(got.Resources, s.resources) {
		t.Errorf("pod-level resources are %v, want %v", got.Resources, s.resources)
	}
	if s.resources != nil {
		without.Resources = plain.Resources
	}
	same(t, "without what was added", without, plain)
}

func pointers(all []core.Container) (list []*core.Container) {
	for i := range all {
		list = append(list, &all[i])
	}
	return list
}

// checkDaemon checks the daemon's receivers, and that the other policies have not modified its
// container.
func (s *shape) checkDaemon(t *testing.T, d *core.Container) {
	t.Helper()
	for door, variable := range map[string]string{"d": "SPANSTATSD_APM_SOCKET", "o": "SPANSTATSD_OTLP_ADDR"} {
		has := slices.ContainsFunc(d.Env, func(e core.EnvVar) bool { return e.Name == variable })
		if has != strings.Contains(s.doors, door) {
			t.Errorf("%s is set: %t", variable, has)
		}
	}
	for _, m := range d.VolumeMounts {
		if m.Name != "spanstatsd" && m.Name != "spanstatsd-no-token" {
			t.Errorf("the daemon has the mount %+v", m)
		}
	}
}

// checkApplication checks the mount and the variables of another container.
func (s *shape) checkApplication(t *testing.T, c *core.Container) {
	t.Helper()
	at := slices.IndexFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == directory })
	if at < 0 {
		t.Errorf("%s has no mount", c.Name)
		return
	}
	if m := c.VolumeMounts[at]; m.Name == "spanstatsd" && !m.ReadOnly {
		t.Errorf("%s may write to the directory", c.Name)
	} else if m.Name != "spanstatsd" {
		return // has its own mount, so the policy leaves it unchanged
	}
	for door, want := range variablesOf {
		at := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == want.Name })
		isSet := strings.Contains(s.doors, door) && !slices.Contains(s.unset, want.Name)
		if has := at >= 0; has != isSet && !strings.HasPrefix(s.name, "own-") {
			t.Errorf("%s has %s: %t", c.Name, want.Name, has)
		}
	}
}

// same compares specifications except for names generated by the API server.
func same(t *testing.T, what string, got, want *core.PodSpec) {
	t.Helper()
	if a, b := text(got), text(want); a != b {
		t.Errorf("%s it is\n%s\nand should be\n%s", what, a, b)
	}
}

func text(spec *core.PodSpec) string {
	of := spec.DeepCopy()
	drawn := map[string]bool{}
	for i := range of.Volumes {
		if strings.HasPrefix(of.Volumes[i].Name, "kube-api-access-") {
			drawn[of.Volumes[i].Name] = true
			of.Volumes[i].Name = "token"
		}
	}
	slices.SortFunc(of.Volumes, func(a, b core.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range append(pointers(of.InitContainers), pointers(of.Containers)...) {
		for i := range c.VolumeMounts {
			if drawn[c.VolumeMounts[i].Name] {
				c.VolumeMounts[i].Name = "token"
			}
		}
		slices.SortFunc(c.VolumeMounts, func(a, b core.VolumeMount) int {
			return strings.Compare(a.MountPath, b.MountPath)
		})
		if len(c.Env) == 0 {
			c.Env = nil
		}
		if len(c.VolumeMounts) == 0 {
			c.VolumeMounts = nil
		}
	}
	if len(of.InitContainers) == 0 {
		of.InitContainers = nil
	}
	if len(of.Volumes) == 0 {
		of.Volumes = nil
	}
	b, _ := json.Marshal(of)
	return string(b)
}

// owners returns the objects that create pods, by kind.
var owners = map[string]func(core.PodTemplateSpec, *meta.LabelSelector) any{
	"deployment": func(of core.PodTemplateSpec, by *meta.LabelSelector) any {
		return &apps.Deployment{Spec: apps.DeploymentSpec{Template: of, Selector: by}}
	},
	"stateful-set": func(of core.PodTemplateSpec, by *meta.LabelSelector) any {
		// With ordered creation, the second pod would wait until the first is ready, which never
		// happens without nodes.
		return &apps.StatefulSet{Spec: apps.StatefulSetSpec{
			Template: of, Selector: by, PodManagementPolicy: apps.ParallelPodManagement,
		}}
	},
	"daemon-set": func(of core.PodTemplateSpec, by *meta.LabelSelector) any {
		return &apps.DaemonSet{Spec: apps.DaemonSetSpec{Template: of, Selector: by}}
	},
	"job": func(of core.PodTemplateSpec, _ *meta.LabelSelector) any {
		of.Spec.RestartPolicy = core.RestartPolicyNever
		return &batch.Job{Spec: batch.JobSpec{Template: of}}
	},
	"cron-job": func(of core.PodTemplateSpec, _ *meta.LabelSelector) any {
		of.Spec.RestartPolicy = core.RestartPolicyNever
		return &batch.CronJob{Spec: batch.CronJobSpec{
			Schedule:    "* * * * *",
			JobTemplate: batch.JobTemplateSpec{Spec: batch.JobSpec{Template: of}},
		}}
	},
}

// tryOwner makes a controller create a pod.
func (c *cluster) tryOwner(t *testing.T, name string,
	make func(core.PodTemplateSpec, *meta.LabelSelector) any,
) {
	labels := map[string]string{"app": name}
	template := core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("").Spec}
	object := make(template, &meta.LabelSelector{MatchLabels: labels})
	at := meta.ObjectMeta{Name: name, Namespace: "shop"}
	var err error
	switch o := object.(type) {
	case *apps.Deployment:
		o.ObjectMeta = at
		_, err = c.AppsV1().Deployments("shop").Create(t.Context(), o, meta.CreateOptions{})
	case *apps.StatefulSet:
		o.ObjectMeta = at
		_, err = c.AppsV1().StatefulSets("shop").Create(t.Context(), o, meta.CreateOptions{})
	case *apps.DaemonSet:
		o.ObjectMeta = at
		c.node(t)
		_, err = c.AppsV1().DaemonSets("shop").Create(t.Context(), o, meta.CreateOptions{})
	case *batch.Job:
		o.ObjectMeta = at
		_, err = c.BatchV1().Jobs("shop").Create(t.Context(), o, meta.CreateOptions{})
	case *batch.CronJob:
		o.ObjectMeta = at
		_, err = c.BatchV1().CronJobs("shop").Create(t.Context(), o, meta.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.awaitPods(t, name, 1)
	if name == "deployment" || name == "stateful-set" {
		c.scale(t, name)
		c.awaitPods(t, name, 3)
	}
}

// scale sets the number of replicas to three.
func (c *cluster) scale(t *testing.T, name string) {
	t.Helper()
	three := &autoscaling.Scale{
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "shop"}, Spec: autoscaling.ScaleSpec{Replicas: 3},
	}
	var err error
	if name == "deployment" {
		_, err = c.AppsV1().Deployments("shop").UpdateScale(t.Context(), name, three, meta.UpdateOptions{})
	} else {
		_, err = c.AppsV1().StatefulSets("shop").UpdateScale(t.Context(), name, three, meta.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitPods waits until an owner has created the given number of pods. Each of them must contain the
// daemon.
func (c *cluster) awaitPods(t *testing.T, name string, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s has made %d", name, want), func() error {
		all, err := c.CoreV1().Pods("shop").List(t.Context(), meta.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(all.Items) < want {
			return fmt.Errorf("%d pods, %w", len(all.Items), err)
		}
		for _, p := range all.Items {
			if !isInjected(&p.Spec) {
				t.Errorf("%s has no daemon", p.Name)
			}
		}
		return nil
	})
}
