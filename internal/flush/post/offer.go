package post

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
)

var (
	// errNotAsked is why a body was withdrawn.
	errNotAsked = errors.New("it does not ask for the body")
	// errNoAnswer is the cause of an unknown outcome.
	errNoAnswer = errors.New("no answer to a request that was written whole")
)

// Post offers the destination a body once: as it is known to take one, or as it turns out
// that it does.
func (p *Poster) Post(ctx context.Context, header http.Header, bytes []byte) Answer {
	now := p.manner.load()
	a := failed(flush.OutcomeNotYet, errNotAsked)
	if now != distrusted {
		a = p.offer(ctx, header, bytes, now)
	}
	switch {
	case errors.Is(a.Err, errNotAsked):
		if err := p.learn(ctx); err != nil {
			return failed(flush.OutcomeNotYet, err)
		}
	case a.Code == http.StatusExpectationFailed && now != asksNever:
		p.manner.store(asksNever)
	default:
		p.manner.notice(a.Attempt, now)
		return a
	}
	now = p.manner.load()
	a = p.offer(ctx, header, bytes, now)
	p.manner.notice(a.Attempt, now)
	return a
}

// offer makes one request with a body, in the manner that the destination is known for. The body
// is withdrawn unless it is asked for in time.
func (p *Poster) offer(ctx context.Context, header http.Header, bytes []byte, known manner) Answer {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	req, sends, err := p.post(ctx, header, bytes, known != asksNever)
	if err != nil {
		return Answer{Attempt: flush.Attempt{Outcome: flush.OutcomeRefused, Err: err}}
	}
	if known != asksNever {
		impatience := time.AfterFunc(p.patience(ctx, known), func() {
			if sends.withdraw() {
				leave()
			}
		})
		defer impatience.Stop()
	}
	resp, err := p.whenAsked.RoundTrip(req)
	if sends.asked.Load() {
		p.manner.store(asksAlways)
	}
	switch {
	case err == nil:
		defer resp.Body.Close()
		a := p.cfg.Answers.read(p.cfg.Who, resp, maxRead, time.Now())
		a.Sent = req.Header
		return a
	case sends.state.Load() == withdrawn:
		p.manner.doubt(known)
		return failed(flush.OutcomeNotYet, p.failure("send payload to", errNotAsked))
	case sends.sentWhole():
		return failed(flush.OutcomeUnknown, fmt.Errorf("%w: %w", errNoAnswer, err))
	}
	return failed(flush.OutcomeNotYet, p.failure("send payload to", err))
}

// patience is how long a destination has to ask for a body: little if it is in doubt, else half
// of what the request has, so that the answer has the other half. A body that is asked for later
// is likely to be counted and not answered in time, which is ambiguous.
func (p *Poster) patience(ctx context.Context, known manner) time.Duration {
	if end, ok := ctx.Deadline(); ok && known == asksAlways {
		return time.Until(end) / 2
	}
	return p.cfg.Patience
}

// Get asks the destination for something, of which so many bytes are read at most.
func (p *Poster) Get(ctx context.Context, path string, most int64) Answer {
	req, err := p.request(ctx, http.MethodGet, path)
	if err != nil {
		return failed(flush.OutcomeRefused, err)
	}
	resp, err := p.unasked.RoundTrip(req)
	if err != nil {
		return failed(flush.OutcomeNotYet, err)
	}
	defer resp.Body.Close()
	return p.cfg.Answers.read(p.cfg.Who, resp, most, time.Now())
}

// learn probes a destination of which it is not known how it takes bodies. Who waits for
// another's probe uses what that has found.
func (p *Poster) learn(ctx context.Context) error {
	select {
	case p.probing <- struct{}{}:
		defer func() { <-p.probing }()
	case <-ctx.Done():
		return p.failure("probe", errNotAsked)
	}
	if p.manner.load().known() {
		return nil
	}
	return p.Probe(ctx)
}

// Probe finds out how a destination takes a body, and fails where nobody answers.
func (p *Poster) Probe(ctx context.Context) error {
	req, sends, err := p.post(ctx, nil, p.cfg.Nothing, true)
	if err != nil {
		return err
	}
	resp, err := p.unasked.RoundTrip(req)
	if err != nil {
		return p.failure("probe", err)
	}
	_ = resp.Body.Close()
	if sends.asked.Load() {
		p.manner.store(asksAlways)
	} else {
		p.manner.store(asksNever)
	}
	return nil
}
