package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// manifests are the objects in a file, an overlay or a rendered chart.
type manifests struct {
	pods     []workload
	policies []*networking.NetworkPolicy
	monitors []*monitoring.PodMonitor
	rules    []*monitoring.PrometheusRule
	maps     []*core.ConfigMap
	accounts []*core.ServiceAccount
}

// workload is an object with a pod template.
type workload struct {
	kind, name string
	pod        *core.PodTemplateSpec
}

// decode decodes every document strictly: unknown or repeated fields and unexpected kinds are errors.
func decode(text []byte) (*manifests, error) {
	m := &manifests{}
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if err == io.EOF {
			return m, nil
		} else if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
		if string(asJSON) == "null" {
			continue
		}
		if err := m.add(asJSON); err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, document)
		}
	}
}

// add decodes one object into the type of its kind.
func (m *manifests) add(object []byte) error {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(object, &head); err != nil {
		return err
	}
	switch head.APIVersion + " " + head.Kind {
	case "apps/v1 Deployment":
		d, err := strictly[apps.Deployment](object)
		if err == nil {
			m.pods = append(m.pods, workload{head.Kind, d.Name, &d.Spec.Template})
		}
		return err
	case "apps/v1 StatefulSet":
		s, err := strictly[apps.StatefulSet](object)
		if err == nil {
			m.pods = append(m.pods, workload{head.Kind, s.Name, &s.Spec.Template})
		}
		return err
	case "apps/v1 DaemonSet":
		d, err := strictly[apps.DaemonSet](object)
		if err == nil {
			m.pods = append(m.pods, workload{head.Kind, d.Name, &d.Spec.Template})
		}
		return err
	case "v1 Namespace":
		_, err := strictly[core.Namespace](object)
		return err
	case "v1 ServiceAccount":
		return collect(&m.accounts, object)
	case "v1 ConfigMap":
		return collect(&m.maps, object)
	case "networking.k8s.io/v1 NetworkPolicy":
		return collect(&m.policies, object)
	case "monitoring.coreos.com/v1 PodMonitor":
		return collect(&m.monitors, object)
	case "monitoring.coreos.com/v1 PrometheusRule":
		return collect(&m.rules, object)
	}
	return fmt.Errorf("unexpected kind %s %s", head.APIVersion, head.Kind)
}

func collect[T any](into *[]*T, object []byte) error {
	value, err := strictly[T](object)
	if err == nil {
		*into = append(*into, value)
	}
	return err
}

// strictly decodes one object like the API server with strict validation.
func strictly[T any](object []byte) (*T, error) {
	var value T
	problems, err := json.UnmarshalStrict(object, &value)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("decode %T: %v", value, problems)
	}
	return &value, nil
}
