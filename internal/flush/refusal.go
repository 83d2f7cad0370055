package flush

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
)

// keepRefused puts what the agent refused where a person can look at it, if the
// operator named a place. The spans are lost all the same.
func (f *Flusher) keepRefused(p *payload, refusal *dump.Refusal) {
	if f.dumps == nil || refusal == nil {
		return
	}
	refusal.Time, refusal.Agent, refusal.Spans, refusal.Body = time.Now(), f.cfg.Agent.String(), p.spans, p.body
	file, err := f.dumps.Keep(refusal)
	switch {
	case err != nil:
		f.cfg.Log.Warn("refused payload is not kept", "error", err)
	case file != "":
		f.cfg.Log.Info("refused payload is kept; look at it with: spanstatsd dump FILE", "file", file)
	}
}
