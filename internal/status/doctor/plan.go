package doctor

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// A proposed limit is the estimated number of values times one of these factors.
const (
	// headroom allows for an error of the estimate, up to 5 %, and for new values, which can take only half of a limit.
	headroom = 2 * 1.05
	// headroomWithMasks is for budgets that new values share with masks, and can take only seven sixteenths of.
	headroomWithMasks = 16.0 / 7 * 1.05
)

// proposedBudget returns a budget that suffices for all values of a label, even if all are new in an interval. It is
// never less than the present budget. isAllowed is false if it is larger than the maximum.
func proposedBudget(l *registry.LabelOverflow) (budget int, isAllowed bool) {
	_, isTag := tagName(l.Label)
	factor := headroomWithMasks
	if isTag { // new values do not share the budget of a tag with masks
		factor = headroom
	}
	return proposedLimit(max(l.Wanted, l.Budget), factor)
}

// proposedLimit multiplies a number of values by a factor, and rounds the product up to two digits. isAllowed is false
// if the result is larger than the maximum of a budget.
func proposedLimit(values int, factor float64) (limit int, isAllowed bool) {
	limit = roundUp(int(math.Ceil(factor * float64(values))))
	return limit, limit <= registry.MaxBudget
}

// roundUp rounds a number up to two digits, for example 8,610 to 8,700.
func roundUp(n int) int {
	unit := twoDigitUnit(n)
	return (n + unit - 1) / unit * unit
}

// twoDigitUnit returns the power of ten that has the place of the second digit of n: 100 for 8,610, and 1
// for numbers of one digit.
func twoDigitUnit(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return unit
}

// about formats an estimate with two digits and thousands separators, for example "about 4,100".
func about(n int) string {
	unit := twoDigitUnit(n)
	text := strconv.Itoa((n + unit/2) / unit * unit)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return "about " + text
}

// tagName returns the tag key of a label such as "tag:tenant.id", or false if the label is not a tag.
func tagName(label string) (name string, isTag bool) { return strings.CutPrefix(label, "tag:") }

// demandText describes how many values a label had, compared with its budget.
func demandText(l *registry.LabelOverflow) string {
	name, _ := tagName(l.Label)
	return fmt.Sprintf("`%s` of service `%s` wanted %s values, its budget is %d", name, l.Service, about(l.Wanted), l.Budget)
}

// checkLabelBudgets adds a finding for each label that had more values than its budget allows. It describes the last
// export interval in which any label exceeded its budget. The fix has the flag that raises the budget.
func (f *Findings) checkLabelBudgets(subject string, s *status.Status) {
	if s.Overflow == nil {
		return
	}
	for i := range s.Overflow.Labels {
		l := &s.Overflow.Labels[i]
		fix := "drop the dimension, or shorten its values in the application"
		if budget, isAllowed := proposedBudget(l); isAllowed {
			fix = fmt.Sprintf("raise it with --cardinality-limit %s=%d, or drop the dimension; `spanstatsd plan` proposes "+
				"all flags together", l.Label, budget)
		}
		f.add(Notice, subject, fix, "%s in the interval until %s, for example %s", demandText(l),
			s.Overflow.Ended.UTC().Format(time.RFC3339), examples(l))
	}
	if n := s.Overflow.LabelsNotMeasured; n > 0 {
		f.add(Notice, subject, "raise the budgets of the other labels first, and look again",
			"%d more labels exceeded their budgets, and their values were not counted", n)
	}
}

// examples lists the most frequent values of a label that were replaced.
func examples(l *registry.LabelOverflow) string {
	var values []string
	for _, collapsed := range l.Collapsed {
		values = append(values, strconv.Quote(collapsed.Value))
	}
	return strings.Join(values, ", ")
}

// Plan is a proposal of larger budgets, for the labels that exceeded theirs.
type Plan struct {
	Demand     []string // one line per label: how many values it had, and its proposed budget
	Flags      []string // flags with larger budgets
	TotalBytes int64    // maximum memory of the daemon with the flags
	LimitBytes int64    // memory limit; 0 if it is unknown
}

// Fits reports whether the daemon can start with the proposed flags.
func (p *Plan) Fits() bool { return p.LimitBytes == 0 || p.TotalBytes <= p.LimitBytes }

// bytesPerAggregate is the memory for labels per aggregate in a plan, the same as in the defaults.
const bytesPerAggregate = 1 << 10

// NewPlan returns the plan for a daemon with the given status. Its texts contain no control characters.
func NewPlan(s *status.Status) Plan {
	plan := Plan{TotalBytes: s.Memory.TotalBytes, LimitBytes: s.Memory.LimitBytes}
	if s.Overflow == nil {
		return plan
	}
	isHeld := plan.raiseLabels(s)
	if n := s.Overflow.LabelsNotMeasured; n > 0 {
		plan.Demand = append(plan.Demand, fmt.Sprintf("%d more labels exceeded their budgets, and were not measured", n))
	}
	if len(plan.Demand) == 0 {
		plan.Demand = append(plan.Demand, "labels were lost although no budget was exceeded: raise --label-bytes, or send "+
			"fewer tag keys")
	}
	if isHeld { // otherwise the number of keys depends on the dimensions that the operator drops
		plan.raiseAggregates(s)
	}
	return plan
}

// raiseLabels proposes a budget for each label. It returns false if no budget can hold the values of a label.
func (p *Plan) raiseLabels(s *status.Status) (isHeld bool) {
	isHeld = true
	budgets := map[string]int{}
	var names []string // of the labels in budgets
	for i := range s.Overflow.Labels {
		l := &s.Overflow.Labels[i]
		budget, ok := proposedBudget(l)
		advice := fmt.Sprintf("raise it to %d, or drop the dimension", budget)
		if !ok {
			isHeld = false
			advice = fmt.Sprintf("drop the dimension, because the maximum is %d", registry.MaxBudget)
		}
		if strings.ContainsAny(l.Label, `,="`) {
			ok = false
			advice = "drop the dimension, or rename it, because --cardinality-limit cannot contain its name"
		}
		p.Demand = append(p.Demand, sanitize.Text(demandText(l)+": "+advice))
		if !ok {
			continue
		}
		if budgets[l.Label] == 0 {
			names = append(names, l.Label)
		}
		budgets[l.Label] = max(budgets[l.Label], budget)
	}
	if len(names) == 0 {
		return isHeld
	}
	limits := keptLimits(s, budgets)
	for _, name := range names {
		limits = append(limits, fmt.Sprintf("%s=%d", name, budgets[name]))
	}
	p.Flags = append(p.Flags, sanitize.Text("--cardinality-limit="+strings.Join(limits, ",")))
	return isHeld
}

// keptLimits returns the budgets that --cardinality-limit of the daemon sets for labels that are not in
// replaced.
func keptLimits(s *status.Status, replaced map[string]int) (kept []string) {
	current := strings.Trim(setting(s, "cardinality-limit"), "[]") // the setting is "[label=budget,...]"
	for limit := range strings.SplitSeq(current, ",") {
		label, _, isLimit := strings.Cut(limit, "=")
		_, isReplaced := replaced[label]
		if isLimit && !isReplaced {
			kept = append(kept, limit)
		}
	}
	return kept
}

// raiseAggregates proposes a larger maximum of aggregates, and more memory for them, if the combinations of label
// values in the interval need it.
func (p *Plan) raiseAggregates(s *status.Status) {
	aggregates, isAllowed := proposedLimit(s.Overflow.Keys, headroom)
	isEnough := s.Aggregates.Max >= aggregates
	if isEnough {
		return
	}
	if !isAllowed {
		p.Demand = append(p.Demand, fmt.Sprintf("the labels together had %s combinations, more than the maximum of "+
			"--max-aggregates allows: drop a dimension", about(s.Overflow.Keys)))
		return
	}
	p.Demand = append(p.Demand, fmt.Sprintf("the labels together had %s combinations, and --max-aggregates is %d: "+
		"raise it to %d", about(s.Overflow.Keys), s.Aggregates.Max, aggregates))
	p.Flags = append(p.Flags, fmt.Sprintf("--max-aggregates=%d", aggregates))
	p.addAggregateMemory(s, aggregates)
}

// addAggregateMemory adds the memory that a larger number of aggregates needs to p.TotalBytes, and proposes
// memory for their labels.
func (p *Plan) addAggregateMemory(s *status.Status, aggregates int) {
	oldAggregates := int64(max(s.Aggregates.Max, 1))
	for _, part := range s.Memory.Parts {
		switch part.Flag {
		case "max-aggregates":
			newBytes := part.Bytes * int64(aggregates) / oldAggregates
			p.TotalBytes += newBytes - part.Bytes
		case "label-bytes":
			p.raiseLabelBytes(part, aggregates)
		}
	}
}

// raiseLabelBytes proposes memory for the labels of a number of aggregates, if it is more than the daemon's
// current memory for labels.
func (p *Plan) raiseLabelBytes(current memory.Part, aggregates int) {
	const mebibyte = 1 << 20
	mebibytes := (int64(aggregates)*bytesPerAggregate + mebibyte - 1) / mebibyte // rounded up
	labelBytes := mebibytes * mebibyte
	const openIntervals = 2        // one is exported while the other is current
	reserveBytes := labelBytes / 4 // the registry adds it, for origins with few keys
	neededBytes := openIntervals * (labelBytes + reserveBytes)
	if neededBytes <= current.Bytes {
		return
	}
	p.Flags = append(p.Flags, fmt.Sprintf("--label-bytes=%dMiB", mebibytes))
	p.TotalBytes += neededBytes - current.Bytes
}
