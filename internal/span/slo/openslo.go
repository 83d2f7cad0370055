package slo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v2"
)

// MaxFileBytes is the maximum length of a file with objectives.
const MaxFileBytes = 1 << 20

// The values of OpenSLO's fields that ReadFile supports.
const (
	openSLOVersion = "openslo/v1"
	kindSLO        = "SLO"
	sourceType     = "spanstatsd"
	occurrences    = "Occurrences"
	atMost         = "lte"
)

// document is an OpenSLO document of the kind SLO, as far as ReadFile reads it.
type document struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		Service      string `yaml:"service"`
		IndicatorRef string `yaml:"indicatorRef"`
		Indicator    struct {
			Spec struct {
				RatioMetric     any `yaml:"ratioMetric"`
				ThresholdMetric struct {
					MetricSource struct {
						Type string            `yaml:"type"`
						Spec map[string]string `yaml:"spec"`
					} `yaml:"metricSource"`
				} `yaml:"thresholdMetric"`
			} `yaml:"spec"`
		} `yaml:"indicator"`
		TimeWindow []struct {
			Duration  string `yaml:"duration"`
			IsRolling bool   `yaml:"isRolling"`
		} `yaml:"timeWindow"`
		BudgetingMethod string            `yaml:"budgetingMethod"`
		Objectives      []objectiveOfFile `yaml:"objectives"`
	} `yaml:"spec"`
}

// objectiveOfFile is an element of objectives in an OpenSLO document.
type objectiveOfFile struct {
	Op            string   `yaml:"op"`
	Value         *float64 `yaml:"value"` // seconds
	Target        float64  `yaml:"target"`
	TargetPercent float64  `yaml:"targetPercent"`
}

// ReadFile reads the objectives of a file with OpenSLO documents. It skips documents of other kinds than SLO.
func ReadFile(name string) (objectives []Objective, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read --slo-file: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && len(content) > MaxFileBytes {
		err = fmt.Errorf("the file exceeds %d bytes; remove documents", MaxFileBytes)
	}
	if err == nil {
		objectives, err = parseDocuments(content)
	}
	if err != nil {
		return nil, fmt.Errorf("read --slo-file %s: %w", name, err)
	}
	return objectives, nil
}

// parseDocuments parses YAML documents.
func parseDocuments(content []byte) (objectives []Objective, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var d document
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decode YAML: %w", err)
		}
		if d.Kind != kindSLO {
			continue
		}
		o, err := d.objective()
		if err != nil {
			return nil, fmt.Errorf("read SLO %q: %w", d.Metadata.Name, err)
		}
		objectives = append(objectives, o)
	}
	if len(objectives) == 0 {
		return nil, fmt.Errorf("no document has the kind %s; add one", kindSLO)
	}
	return objectives, nil
}

// objective converts a document.
func (d *document) objective() (o Objective, err error) {
	if err := d.check(); err != nil {
		return o, err
	}
	o.Name = d.Metadata.Name
	labels := maps.Clone(d.Spec.Indicator.Spec.ThresholdMetric.MetricSource.Spec)
	if labels == nil {
		labels = map[string]string{}
	}
	if _, hasService := labels[labelService]; !hasService && d.Spec.Service != "" {
		labels[labelService] = d.Spec.Service
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if err := o.addLabel(name, labels[name]); err != nil {
			return o, err
		}
	}
	if len(d.Spec.TimeWindow) > 0 {
		window := d.Spec.TimeWindow[0].Duration
		days, isDays := strings.CutSuffix(window, "d")
		if !isDays {
			return o, fmt.Errorf("timeWindow has the duration %q; use days, such as 30d", window)
		}
		if err := o.parseWindow(days); err != nil {
			return o, err
		}
	}
	if err := o.setTarget(&d.Spec.Objectives[0]); err != nil {
		return o, err
	}
	return o, o.complete()
}

// check returns an error if the document uses a feature of OpenSLO that is not supported.
func (d *document) check() error {
	spec := &d.Spec
	indicator := &spec.Indicator.Spec
	source := indicator.ThresholdMetric.MetricSource.Type
	isMethodSupported := spec.BudgetingMethod == "" || spec.BudgetingMethod == occurrences
	switch {
	case d.APIVersion != openSLOVersion:
		return fmt.Errorf("apiVersion is %q; use %s", d.APIVersion, openSLOVersion)
	case spec.IndicatorRef != "":
		return errors.New("indicatorRef is not supported; write the indicator in the SLO")
	case indicator.RatioMetric != nil:
		return errors.New("ratioMetric is not supported; use a thresholdMetric")
	case source != sourceType:
		return fmt.Errorf("thresholdMetric.metricSource has the type %q; use %s", source, sourceType)
	case indicator.ThresholdMetric.MetricSource.Spec == nil:
		return errors.New("thresholdMetric.metricSource has no spec; add its labels, or spec: {} for all spans of the service")
	case !isMethodSupported:
		return fmt.Errorf("budgetingMethod is %q; use %s", spec.BudgetingMethod, occurrences)
	case len(spec.Objectives) != 1:
		return fmt.Errorf("there are %d objectives; use one per SLO", len(spec.Objectives))
	case len(spec.TimeWindow) > 1:
		return errors.New("there is more than one timeWindow; use one")
	case len(spec.TimeWindow) == 1 && !spec.TimeWindow[0].IsRolling:
		return errors.New("timeWindow is not rolling; set isRolling: true")
	}
	return nil
}

// setTarget sets the threshold and the target of the objective.
func (o *Objective) setTarget(from *objectiveOfFile) error {
	o.Target = from.TargetPercent
	if from.TargetPercent == 0 {
		const digits = 1e9 // 0.999 becomes exactly 99.9
		o.Target = math.Round(from.Target*100*digits) / digits
	}
	hasValue := from.Value != nil
	switch {
	case from.Target != 0 && from.TargetPercent != 0:
		return errors.New("an objective has both target and targetPercent; remove one")
	case !o.hasTarget():
		return errors.New("an objective has no target between 0 and 1; add one such as target: 0.999")
	case from.Op == "" && !hasValue:
		return nil // only errors count
	case from.Op != atMost:
		return fmt.Errorf("an objective has the op %q; use %s", from.Op, atMost)
	case !hasValue:
		return errors.New("an objective has an op, but no value; add the threshold in seconds, such as value: 0.3")
	}
	nanoseconds := math.Round(*from.Value * float64(time.Second))
	isThreshold := nanoseconds >= 1 && *from.Value <= math.MaxInt32 // false for NaN
	if !isThreshold {
		return fmt.Errorf("an objective has the value %v; use the threshold in seconds, such as 0.3", *from.Value)
	}
	o.Threshold = time.Duration(nanoseconds)
	return nil
}
