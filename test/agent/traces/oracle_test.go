package traces

import (
	"fmt"
	"sync"
	"testing"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace/idx"
	"github.com/DataDog/datadog-agent/pkg/trace/agent"
	"github.com/DataDog/datadog-agent/pkg/trace/api"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/info"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-go/v5/statsd"
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
)

// oracle is the agent's own path from a decoded payload to statistics.
type oracle struct {
	conf  *config.AgentConfig
	agent *agent.Agent
}

type noStats struct{}

func (noStats) Write(*pb.StatsPayload) {}

var makeOracle = sync.OnceValue(func() *oracle {
	conf := realagent.Config()
	return &oracle{conf, realagent.New(conf)}
})

// decode decodes a body like the agent's receiver.
func decode(format datadog.Format, body []byte, lang string) (*idx.InternalTracerPayload, error) {
	p := &idx.InternalTracerPayload{}
	var err error
	switch format {
	case datadog.FormatV04:
		_, err = p.UnmarshalMsgConverted(body)
	case datadog.FormatV05:
		err = p.UnmarshalMsgDictionary(body)
	case datadog.FormatV07:
		var old pb.TracerPayload
		if _, err = old.UnmarshalMsg(body); err != nil {
			return nil, err
		}
		return api.ConvertToIdx(&old, "v07-pb"), nil
	default:
		_, err = p.UnmarshalMsg(body)
		return p, err
	}
	if err == nil {
		p.SetLanguageName(lang)
	}
	return p, err
}

// count returns what the agent would count for a body.
func (o *oracle) count(t testing.TB, format datadog.Format, body []byte, lang string, topLevel bool,
	since time.Time,
) (map[string]total, error) {
	p, err := decode(format, body, lang)
	if err != nil {
		return nil, err
	}
	o.agent.Concentrator = stats.NewConcentrator(o.conf, noStats{}, since, &statsd.NoOpClient{})
	ts := info.NewReceiverStats(false).GetTagStats(info.Tags{Lang: lang})
	o.agent.ProcessV1(&api.PayloadV1{Source: ts, TracerPayload: p, ClientComputedTopLevel: topLevel})
	return o.totals(t), nil
}

// totals returns what the agent's concentrator has counted.
func (o *oracle) totals(t testing.TB) map[string]total {
	totals := map[string]total{}
	for _, payload := range o.agent.Concentrator.(*stats.Concentrator).Flush(true).Stats {
		for _, bucket := range payload.Stats {
			for _, g := range bucket.Stats {
				key := fmt.Sprintf("%q", []any{
					payload.Service, g.Service, g.Name, g.Resource, g.Type, g.SpanKind,
					fmt.Sprint(g.HTTPStatusCode),
					fmt.Sprint(g.Synthetics), fmt.Sprint(int(g.IsTraceRoot)), g.GRPCStatusCode,
					g.ServiceSource, g.PeerTags, fmt.Sprint(bucket.Start),
				})
				totals[key] = totals[key].plus(total{
					float64(g.Hits), float64(g.Errors),
					float64(g.TopLevelHits), float64(g.Duration), sketched(t, g.OkSummary),
					sketched(t, g.ErrorSummary),
				})
			}
		}
	}
	return totals
}
