package kubernetes

import (
	"fmt"
	"os"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// TestLimitRange_AdmitsDocumentedResources installs the policy twice: with the default resources, which
// a LimitRange refuses as documented, and with the resources that the documentation recommends instead.
func TestLimitRange_AdmitsDocumentedResources(t *testing.T) {
	c := start(t)
	c.namespace(t, "free", map[string]string{"spanstatsd": "sidecar"}, nil)
	fits := core.ResourceRequirements{Requests: list("100m", "64Mi"), Limits: list("100m", "64Mi")}
	ratios := list("4", "4")
	for name, item := range map[string]core.LimitRangeItem{
		"minimum": {Type: core.LimitTypeContainer, Min: list("50m", "64Mi")},
		"ratio":   {Type: core.LimitTypeContainer, MaxLimitRequestRatio: ratios},
		"both":    {Type: core.LimitTypeContainer, Min: list("50m", "64Mi"), MaxLimitRequestRatio: ratios},
		"pod":     {Type: core.LimitTypePod, Min: list("100m", "64Mi"), MaxLimitRequestRatio: ratios},
	} {
		c.namespace(t, name, map[string]string{"spanstatsd": "sidecar"}, nil)
		limits := &core.LimitRange{
			ObjectMeta: meta.ObjectMeta{Name: "limits"},
			Spec:       core.LimitRangeSpec{Limits: []core.LimitRangeItem{item}},
		}
		if _, err := c.CoreV1().LimitRanges(name).Create(t.Context(), limits, meta.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the limits of "+name+" are enforced", func() error {
			if _, err := c.tryLimits(t, name, core.ResourceRequirements{
				Requests: list("1m", "1Mi"), Limits: list("1", "1Gi"),
			}); !errors.IsForbidden(err) {
				return fmt.Errorf("a pod is not refused: %v", err)
			}
			return nil
		})
		if _, err := c.tryLimits(t, name, fits); err != nil {
			t.Fatal(err)
		}
	}
	c.applyPolicy(t, nil)
	c.awaitPolicy(t, "free")
	for _, name := range []string{"minimum", "ratio", "both", "pod"} {
		if _, err := c.tryLimits(t, name, fits); !errors.IsForbidden(err) {
			t.Errorf("the limits of %s admit the default resources: %v", name, err)
		}
	}
	policies := c.AdmissionregistrationV1().MutatingAdmissionPolicies()
	bindings := c.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	for _, remove := range []func() error{
		func() error { return bindings.Delete(t.Context(), "spanstatsd-sidecar", meta.DeleteOptions{}) },
		func() error { return policies.Delete(t.Context(), "spanstatsd-sidecar", meta.DeleteOptions{}) },
	} {
		if err := remove(); err != nil {
			t.Fatal(err)
		}
	}
	c.applyPolicy(t, documentedResources(t))
	for _, name := range []string{"minimum", "ratio", "both", "pod"} {
		eventually(t, "the limits of "+name+" admit a pod", func() error {
			p, err := c.tryLimits(t, name, fits)
			if err == nil && !isInjected(&p.Spec) {
				err = fmt.Errorf("a pod is admitted as it is")
			}
			return err
		})
	}
}

// applyPolicy installs the policy with resources for the daemon, or with the default ones.
func (c *cluster) applyPolicy(t *testing.T, resources map[string]any) {
	t.Helper()
	values := map[string]any{"inject": map[string]any{"enabled": true}}
	if resources != nil {
		values["resources"] = resources
	}
	c.apply(t, strings.Replace(chart(t, values), "failurePolicy: Ignore", "failurePolicy: Fail", 1))
}

// tryLimits creates a pod whose container has these resources.
func (c *cluster) tryLimits(t *testing.T, namespace string, of core.ResourceRequirements) (*core.Pod, error) {
	t.Helper()
	p := pod("shop")
	p.Spec.Containers[0].Resources = of
	return c.CoreV1().Pods(namespace).Create(t.Context(), p, meta.CreateOptions{DryRun: []string{"All"}})
}

// documentedResources reads the resources that docs/install.md recommends for namespaces with a
// LimitRange.
func documentedResources(t *testing.T) map[string]any {
	t.Helper()
	document, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(document), "A LimitRange of `type: Pod`")
	_, block, _ := strings.Cut(after, "```yaml\n")
	block, _, found := strings.Cut(block, "```\n")
	var values struct {
		Resources map[string]any `json:"resources"`
	}
	if err := yaml.Unmarshal([]byte(block), &values); err != nil || !found || values.Resources == nil {
		t.Fatalf("docs/install.md has no resources after LimitRange: %v in %q", err, block)
	}
	return values.Resources
}
