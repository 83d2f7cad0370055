package aggregate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// modelInterval is what an interval's registry must do, in sets and strings.
type modelInterval struct {
	config       *Config
	origins      map[span.Origin]*modelOrigin
	rows         map[string]bool // by origin and canonical bytes
	shared, kept int
}

type modelOrigin struct {
	values map[span.Label]map[string]bool
	tags   map[span.Label]map[string]map[string]bool // by tag key, the whole tags
	rows   int
}

func newModelInterval(config *Config) *modelInterval {
	return &modelInterval{config: config, origins: map[span.Origin]*modelOrigin{}, rows: map[string]bool{}}
}

func (m *modelInterval) origin(o span.Origin) *modelOrigin {
	if m.origins[o] == nil && len(m.origins) < m.config.MaxOrigins {
		m.origins[o] = &modelOrigin{values: map[span.Label]map[string]bool{}, tags: map[span.Label]map[string]map[string]bool{
			span.LabelPeerTag: {}, span.LabelAdditionalTag: {},
		}}
		for f := range span.LabelPeerTag {
			m.origins[o].values[f] = map[string]bool{}
		}
	}
	return m.origins[o]
}

// admit is the key that a snapshot is counted under, and which fields it lost.
func (m *modelInterval) admit(o span.Origin, key span.Key) (span.Key, registry.Collapsed) {
	origin := m.origin(o)
	floor := max(1, max(1, m.config.MaxAggregates/4)/16)
	room := m.shared < m.config.MaxAggregates || m.kept < max(1, m.config.MaxAggregates/4) && origin.rows < floor
	k, collapsed, ok := m.charge(origin, key, room)
	row := fmt.Sprint(o) + string(k.AppendCanonical(nil))
	switch {
	case ok && m.rows[row]:
		return k, collapsed
	case !ok || !room:
		return modelOverflow, 1 << span.WholeKey
	}
	m.rows[row] = true
	origin.rows++
	if m.shared < m.config.MaxAggregates {
		m.shared++
	} else {
		m.kept++
	}
	return k, collapsed
}

func (m *modelInterval) charge(o *modelOrigin, k span.Key, room bool) (_ span.Key, collapsed registry.Collapsed, ok bool) {
	for f, label := range modelLabels(&k) {
		values := o.values[span.Label(f)]
		switch {
		case *label == "" || *label == span.Blocked || values[*label]:
		case len(values) >= m.config.Budgets[f]:
			*label, collapsed = span.Blocked, collapsed|1<<f
		case !room:
			return k, collapsed, false
		default:
			values[*label] = true
		}
	}
	for f, tags := range map[span.Label]*[]string{span.LabelPeerTag: &k.PeerTags, span.LabelAdditionalTag: &k.AdditionalTags} {
		*tags = slices.Clone(*tags)
		anyBlocked := false
		for i, tag := range *tags {
			name, _, _ := strings.Cut(tag, ":")
			used, named := o.tags[f][name]
			switch {
			case used[tag] || tag == span.Blocked:
			case !named && len(o.tags[f]) >= registry.MaxTagKeys:
				(*tags)[i], collapsed = span.Blocked, collapsed|1<<f
			case !named && !room:
				return k, collapsed, false
			case tag == name+":"+span.Blocked:
				if !named {
					o.tags[f][name] = map[string]bool{}
				}
			case len(used) >= m.config.Budgets[f]:
				(*tags)[i], collapsed = name+":"+span.Blocked, collapsed|1<<f
			case !room:
				return k, collapsed, false
			case !named:
				o.tags[f][name] = map[string]bool{tag: true}
			default:
				used[tag] = true
			}
			anyBlocked = anyBlocked || (*tags)[i] == span.Blocked || (*tags)[i] == name+":"+span.Blocked
		}
		slices.Sort(*tags)
		if anyBlocked {
			*tags = slices.Compact(*tags)
		}
	}
	return k, collapsed, true
}

// modelLabels are the labels with a budget of their own, by field.
func modelLabels(k *span.Key) []*string {
	return []*string{
		&k.Service, &k.Operation, &k.Resource, &k.Type, &k.Kind,
		&k.HTTPMethod, &k.HTTPEndpoint, &k.GRPCStatus, &k.ServiceSource,
	}
}

// modelOverflow is the key of what found no row.
var modelOverflow = func() (k span.Key) {
	for _, label := range modelLabels(&k) {
		*label = span.Blocked
	}
	k.PeerTags, k.AdditionalTags = []string{span.Blocked}, []string{span.Blocked}
	return k
}()

// randomKey is a normalised key of few enough values that keys come again, and of
// more than the budgets of the test allow.
func randomKey(rnd *rand.Rand) span.Key {
	pick := func(prefix string, of int) string {
		switch n := rnd.IntN(of); n {
		case 0:
			return ""
		case 1:
			return span.Blocked
		default:
			return fmt.Sprint(prefix, n)
		}
	}
	tags := func(most int) (list []string) {
		for range rnd.IntN(most + 1) {
			name := fmt.Sprint("name", rnd.IntN(3))
			if rnd.IntN(100) == 0 {
				name = fmt.Sprint("name", rnd.IntN(200))
			}
			switch rnd.IntN(12) {
			case 0:
				list = append(list, name)
			case 1:
				list = append(list, name+":"+span.Blocked)
			case 2:
				list = append(list, span.Blocked)
			default:
				list = append(list, fmt.Sprint(name, ":", rnd.IntN(8)))
			}
		}
		slices.Sort(list)
		return list
	}
	k := span.Key{
		Service: pick("s", 6), Operation: pick("o", 6), Resource: pick("r", 30), Kind: pick("k", 5),
		TraceRoot: span.TraceRoot(rnd.IntN(3)), Synthetics: rnd.IntN(9) == 0,
	}
	if rnd.IntN(3) == 0 {
		k.Type, k.HTTPMethod, k.HTTPEndpoint, k.GRPCStatus, k.ServiceSource = pick("t", 5), pick("m", 5), pick("e", 9), pick("g", 5), pick("s", 5)
		k.HTTPStatus = 200 + rnd.Uint32N(3)
		k.AdditionalTags = tags(span.MaxAdditionalTags)
	}
	if rnd.IntN(2) == 0 {
		k.PeerTags = tags(3)
	}
	return k
}
