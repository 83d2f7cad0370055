package registry

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry/demand"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// maxMeasured is the maximum number of measurements per interval.
	maxMeasured = 16

	// maxProcesses is the maximum number of processes of a service in which the same label is measured, so
	// that many versions of a service leave room for other services.
	maxProcesses = 4

	// maxExamples is the maximum number of collapsed values in the report about a label.
	maxExamples = 5
)

// Overflow describes one interval in which labels had more values than their budgets allow. It shows how
// large the budgets would have to be.
type Overflow struct {
	Ended  time.Time       `json:"ended"`   // end of the interval
	IsLast bool            `json:"is_last"` // no later interval has ended
	Labels []LabelOverflow `json:"labels"`  // by number of values, the largest first
	// LabelsNotMeasured is the number of labels that exceeded their budget and are not in Labels.
	LabelsNotMeasured int `json:"labels_not_measured"`
	// Keys is the estimated number of label sets that the interval would have had without budgets.
	Keys int `json:"keys"`
}

// LabelOverflow describes a label of a service that had more values than its budget allows.
type LabelOverflow struct {
	Service string `json:"service"`
	Label   string `json:"label"`  // label as in --cardinality-limit, for example "resource" or "tag:tenant.id"
	Budget  int    `json:"budget"` // maximum number of distinct values
	// Wanted is the estimated number of distinct values that the label had. The standard error is 1.6 %. If several
	// processes of the service have exceeded the budget, it is the largest number among the first four of them.
	Wanted int `json:"wanted"`
	// Collapsed contains the most frequent values that were replaced, the most frequent first.
	Collapsed []CollapsedValue `json:"collapsed"`
}

// CollapsedValue is a value of a label that was replaced, because the budget of the label was exhausted.
type CollapsedValue struct {
	Value string `json:"value"` // the first 100 bytes
	Spans uint64 `json:"spans"` // estimated number of spans
}

// overflows measures the labels of one interval that have more values than their budget allows. It uses
// no memory before the first value is lost, and after its interval has ended.
type overflows struct {
	labels      []*labelDemand
	notMeasured int
	ignored     *labelDemand     // takes the place of the labels that are not measured; nil before the first
	keys        *demand.Distinct // keys with a lost label, or without a row; nil before the first
}

// labelDemand measures how many values one label, or one tag key, of one process has. The admission of a
// key adds the values that get no slot. The others are added when the interval ends.
type labelDemand struct {
	origin    OriginID
	service   string // service of the first process of the origin
	label     string // label as in --cardinality-limit
	budget    int
	isIgnored bool // too many labels are measured already, or the measurement has ended
	values    *demand.Distinct
	lost      demand.Frequent // sample of the values that got no slot
	hasSample bool            // lost is not empty
	unsampled uint64          // spans with a lost value since the last sample
}

// overflowBytes is the maximum memory of one overflows. Two can exist for a moment, between Begin and ReportEnded.
const overflowBytes = maxMeasured*(demand.Bytes+labelDemandBytes) + int(unsafe.Sizeof(demand.Distinct{}))

// labelDemandBytes is the maximum memory of a labelDemand except for its measurements.
const labelDemandBytes = span.MaxLabel + 128

// startMeasuring starts to measure how many values a label has in one process of a service. limit is the number of
// values that the label may have. The result ignores all values if maxMeasured labels are measured already, or
// this label in maxProcesses processes of the service.
func (o *overflows) startMeasuring(origin OriginID, service, label string, limit int) *labelDemand {
	processes := o.countProcesses(service, label)
	if processes >= maxProcesses {
		return o.ignoredDemand()
	}
	if len(o.labels) >= maxMeasured {
		isInReport := processes > 0 // another process of the service measures it
		if !isInReport {
			o.notMeasured++
		}
		return o.ignoredDemand()
	}
	d := &labelDemand{
		origin: origin, service: service, label: strings.Clone(label), budget: limit, values: new(demand.Distinct),
	}
	o.labels = append(o.labels, d)
	return d
}

// countProcesses returns the number of processes of a service in which a label is measured.
func (o *overflows) countProcesses(service, label string) int {
	count := 0
	for _, d := range o.labels {
		if d.service == service && d.label == label {
			count++
		}
	}
	return count
}

// ignoredDemand returns the measurement that ignores all values.
func (o *overflows) ignoredDemand() *labelDemand {
	if o.ignored == nil {
		o.ignored = &labelDemand{isIgnored: true}
	}
	return o.ignored
}

// lostPerSample is the number of spans with a lost value of which one is a sample, so that a flood of
// values costs little. It is a prime number, so that a sender that repeats the same values does not always
// hit the same one.
const lostPerSample = 17

// addLost adds a value that got no slot, given its hash and the number of its spans.
func (d *labelDemand) addLost(hash uint64, value string, spans uint64) {
	if d.isIgnored {
		return
	}
	d.values.Add(hash)
	d.unsampled += spans
	if !d.hasSample || d.unsampled >= lostPerSample {
		d.lost.Add(hash, value, d.unsampled) // the sample stands for the spans before it
		d.hasSample = true
		d.unsampled = 0
	}
}

// addKey adds a key that lost a label or got no row, given the hash that it would have without budgets.
func (o *overflows) addKey(hash uint64) {
	if o.keys == nil {
		o.keys = new(demand.Distinct)
	}
	o.keys.Add(hash)
}

// measureLostText records that a value of the label l, or its mask such as "GET /users/{id}", was replaced, because
// the label has too many different values. The first call for a label starts to measure how many it has.
func (a *admitter) measureLostText(l span.Label, value labelValue) {
	budget := &a.origin.budgets[l]
	if budget.demand == nil {
		budget.demand = a.overflows.startMeasuring(a.originID, a.serviceName(), l.String(), a.config.Budgets[l])
	}
	budget.demand.addLost(value.hash, value.text, a.spans)
}

// measureLostTag records that a value of a tag key was replaced, because the tag key has too many different
// values. values is the budget of the tag key, and tagHash the hash of the tag.
func (a *admitter) measureLostTag(values *tagValues, tagHash uint64, key, value string) {
	if values.demand == nil {
		values.demand = a.overflows.startMeasuring(a.originID, a.serviceName(), "tag:"+key, values.limit)
	}
	values.demand.addLost(tagHash, value, a.spans)
}

// serviceName returns the name of the service that has sent the current key.
func (a *admitter) serviceName() string { return a.origins.descriptions[a.originID].Service }

// measureLostKey adds the current key to the sketch that estimates how many keys the interval would have without
// budgets. Keys that differ only in identifiers, as GET /users/1 and GET /users/2 do, count as one key.
func (a *admitter) measureLostKey() { a.overflows.addKey(a.maskedKeyHash()) }

// reportOverflow returns which labels had more values than their budgets allowed, or nil if none had. It must
// be called at most once, at the end of the interval.
func (t *tables) reportOverflow(ended time.Time) *Overflow {
	o := &t.overflows
	if o.keys == nil { // no key has lost a label
		return nil
	}
	// So far, the measurements contain only the values and keys that got no slot.
	t.addKeptLabels()
	t.addKeptKeys()
	report := &Overflow{
		Ended: ended, Labels: []LabelOverflow{},
		LabelsNotMeasured: o.notMeasured, Keys: o.keys.Estimate(),
	}
	for _, d := range o.labels {
		service := t.origins.descriptions[d.origin].Service // span.Blocked if several services share the origin
		report.Labels = append(report.Labels, d.describe(service))
	}
	report.Labels = largestPerService(report.Labels)
	return report
}

// release releases the memory of all measurements.
func (o *overflows) release() {
	for _, d := range o.labels {
		*d = labelDemand{isIgnored: true}
	}
	*o = overflows{}
}

// addKeptLabels adds the values that have a slot to the measurements of their labels.
func (t *tables) addKeptLabels() {
	for i := int(firstID); i < len(t.labels.byID); i++ {
		l := &t.labels.byID[i]
		if l.isBlocked {
			continue
		}
		measured := t.budgetOf(l).demand
		if measured != nil && !measured.isIgnored {
			measured.values.Add(l.hash)
		}
	}
}

// budgetOf returns the budget, a limit on different values, that a label value or tag counts against. A tag
// counts against the budget of its tag key, which must be in the label table.
func (t *tables) budgetOf(l *labelValue) *budget {
	if l.isTag() {
		return &t.labels.byID[l.tagKey].values.budget
	}
	return &t.origins.byID[l.scope.origin].budgets[l.scope.kind]
}

// addKeptKeys adds the keys that have a row and all of their labels to the measurement of keys.
func (t *tables) addKeptKeys() {
	for i := range t.rows.byID {
		row := &t.rows.byID[i]
		isUnlabeled := row.encoded == nil
		if !isUnlabeled && !t.hasLostLabel(row.encoded) {
			t.overflows.keys.Add(row.hash)
		}
	}
}

// hasLostLabel reports whether an encoded key has a label that was replaced by tracer_blocked_value.
func (t *tables) hasLostLabel(encoded encodedKey) bool {
	isBlocked := func(id labelID) bool { return t.labels.byID[id].isBlocked }
	if slices.ContainsFunc(encoded.texts(), isBlocked) {
		return true
	}
	for _, tags := range encoded.tagLists() {
		if slices.ContainsFunc(tags, isBlocked) {
			return true
		}
	}
	return false
}

// describe returns the result of a measurement.
func (d *labelDemand) describe(service string) LabelOverflow {
	described := LabelOverflow{
		Service: service, Label: d.label, Budget: d.budget, Wanted: d.values.Estimate(),
	}
	for _, value := range d.lost.Top(maxExamples) {
		described.Collapsed = append(described.Collapsed, CollapsedValue{Value: value.Text, Spans: value.Uses})
	}
	return described
}

// largestPerService sorts the labels by their number of values, the largest first. If a label of a service was
// measured more than once, in several processes or lists of tags, it keeps only the largest number.
func largestPerService(labels []LabelOverflow) []LabelOverflow {
	slices.SortStableFunc(labels, func(a, b LabelOverflow) int { return cmp.Compare(b.Wanted, a.Wanted) })
	type name struct{ service, label string }
	seen := map[name]bool{}
	return slices.DeleteFunc(labels, func(l LabelOverflow) bool {
		key := name{l.Service, l.Label}
		isDuplicate := seen[key]
		seen[key] = true
		return isDuplicate
	})
}

// CountSpans counts more spans of a key in which Admit has replaced a label, so that the most frequent values
// of labels with too many values can be found. It is called for a sample of the spans for which a caller
// reuses the result of Admit. The result is the same as that of Admit.
func (r *Registry) CountSpans(origin OriginID, key *span.Key, spans uint64) Admission {
	const isCounted = true // by Admit
	return r.admit(origin, key, spans, isCounted)
}

// Overflow returns the last interval in which a label had more values than its budget allows, or nil if
// there was none. The caller must not change the labels of the result.
func (i *Intervals) Overflow() *Overflow {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.overflow == nil {
		return nil
	}
	report := *i.overflow
	report.IsLast = i.lastHadOverflow
	return &report
}

// ReportEnded determines which labels of the interval that ended last exceeded their budgets, for Overflow. It must
// be called once after each call of Begin, when no batch is in the ended interval any more. It reads that interval
// without a lock, so it does not delay the batches of the new one.
func (i *Intervals) ReportEnded() {
	ended := &i.previousRegistry().tables
	report := ended.reportOverflow(time.Now())
	ended.overflows.release()

	i.mu.Lock()
	defer i.mu.Unlock()
	i.lastHadOverflow = report != nil
	if report != nil { // otherwise i.overflow stays that of an earlier interval
		i.overflow = report
	}
}
