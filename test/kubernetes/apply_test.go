package kubernetes

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/restmapper"
)

const chartDir = "../../deploy/helm/spanstatsd"

// chart returns the manifests of an installation with these values.
func chart(t *testing.T, values map[string]any) string {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(c, values,
		common.ReleaseOptions{Name: "spanstatsd", Namespace: "spanstatsd", IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	var manifests strings.Builder
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			manifests.WriteString(text + "\n---\n")
		}
	}
	return manifests.String()
}

// apply creates the objects of the manifests. The API server validates every field.
func (c *cluster) apply(t *testing.T, manifests string) {
	t.Helper()
	c.applyIn(t, "default", manifests)
}

// applyIn is apply with a namespace that overrides those of the manifests.
func (c *cluster) applyIn(t *testing.T, namespace, manifests string) {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(c.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		var o unstructured.Unstructured
		if err := documents.Decode(&o); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			t.Fatal(err)
		}
		resource := c.objects.Resource(mapping.Resource)
		options := v1.CreateOptions{FieldValidation: v1.FieldValidationStrict}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			o.SetNamespace(namespace)
			_, err = resource.Namespace(namespace).Create(t.Context(), &o, options)
		} else {
			_, err = resource.Create(t.Context(), &o, options)
		}
		if err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// namespace creates a namespace and waits for its service account.
func (c *cluster) namespace(t *testing.T, name string, labels, annotations map[string]string) {
	t.Helper()
	of := &core.Namespace{ObjectMeta: v1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations}}
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), of, v1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &core.ServiceAccount{ObjectMeta: v1.ObjectMeta{Name: "default"}}
	_, err := c.CoreV1().ServiceAccounts(name).Create(t.Context(), account, v1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) { // the controller can be faster
		t.Fatal(err)
	}
}

// node creates a node, so that the pod of a DaemonSet can be created.
func (c *cluster) node(t *testing.T) {
	t.Helper()
	node := &core.Node{ObjectMeta: v1.ObjectMeta{Name: "node"}}
	node, err := c.CoreV1().Nodes().Create(t.Context(), node, v1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.Taints = nil // like a ready node
	if _, err := c.CoreV1().Nodes().Update(t.Context(), node, v1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// otherPolicy is a policy of another vendor that adds a container. Its name determines whether it is
// applied before or after the daemon's policy.
const otherPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: |
          object.spec.containers.exists(c, c.name == "late") ? [] :
          [JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "late", image: "late"}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  matchResources: {namespaceSelector: {matchLabels: {NAME: "yes"}}}
`

// webhook installs a webhook of another vendor that adds a container, too. Webhooks are called after
// policies.
func (c *cluster) webhook(t *testing.T) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(addLate))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c.apply(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: late}
webhooks:
  - name: late.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    reinvocationPolicy: IfNeeded
    clientConfig: {url: "%s", caBundle: %s}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
    namespaceSelector: {matchLabels: {webhook: "yes"}}
`, s.URL, base64.StdEncoding.EncodeToString(authority)))
}

func addLate(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID    string   `json:"uid"`
			Object core.Pod `json:"object"`
		} `json:"request"`
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	patch := []byte(`[{"op":"add","path":"/spec/containers/-","value":{"name":"late","image":"late"}}]`)
	if bytes.Contains(body, []byte(`"name":"late"`)) {
		patch = []byte(`[]`)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": review.APIVersion, "kind": review.Kind,
		"response": map[string]any{
			"uid": review.Request.UID, "allowed": true, "patchType": "JSONPatch",
			"patch": patch,
		},
	})
}
