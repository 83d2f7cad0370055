package kubernetes

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const overlays = "../../deploy/kubernetes/overlays"

// TestManifests applies every overlay and the chart, each in its own namespace with Pod Security level
// restricted, or privileged for node daemons, and checks that pods of their templates are admitted.
func TestManifests(t *testing.T) {
	c := start(t)
	all := map[string]string{
		"chart-node": chart(t, map[string]any{}),
		"chart-doors": chart(t,
			map[string]any{
				"apm":    map[string]any{"enabled": true},
				"otlpIn": map[string]any{"enabled": true},
			}),
		"chart-without": chart(t,
			map[string]any{
				"agent":      map[string]any{"url": "off"},
				"prometheus": map[string]any{"enabled": true},
			}),
	}
	directories, err := os.ReadDir(overlays)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range directories {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
			filepath.Join(overlays, d.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		all[d.Name()] = string(text)
	}
	for name, manifests := range all {
		t.Run(name, func(t *testing.T) {
			level := "restricted"
			if name == "node" || strings.HasPrefix(name, "chart-") {
				level = "privileged"
			}
			c.namespace(t, name, map[string]string{"pod-security.kubernetes.io/enforce": level}, nil)
			c.applyIn(t, name, manifests)
			c.admitTemplates(t, name, manifests)
		})
	}
}

// admitTemplates creates a pod of each template, because Pod Security checks pods.
func (c *cluster) admitTemplates(t *testing.T, namespace, manifests string) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	pods := 0
	for {
		var o unstructured.Unstructured
		if err := documents.Decode(&o); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		template, found, err := unstructured.NestedMap(o.Object, "spec", "template")
		if err != nil || !found {
			continue
		}
		var of core.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &of); err != nil {
			t.Fatal(err)
		}
		p := &core.Pod{ObjectMeta: v1.ObjectMeta{Name: o.GetName(), Labels: of.Labels}, Spec: of.Spec}
		p.Spec.ServiceAccountName = ""
		if _, err := c.CoreV1().Pods(namespace).Create(t.Context(), p,
			v1.CreateOptions{DryRun: []string{"All"}}); err != nil {
			t.Errorf("a pod of %s: %v", o.GetName(), err)
		}
		pods++
	}
	if pods == 0 {
		t.Error("there is no template of a pod")
	}
}
