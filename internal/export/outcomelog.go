package export

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/logging/ratelog"
)

// Minimum intervals between log lines about outcomes of the same kind, and about warnings of accepted
// payloads.
const (
	logInterval     = 10 * time.Second
	warningInterval = time.Hour
)

// outcomeLog logs a line when the outcome of attempts changes, but not while it stays the same.
type outcomeLog struct {
	log, warnings *slog.Logger
	name          string // name of the destination

	last          outcomeKind // used only by the sender
	hasLoggedLoss atomic.Bool // a line about a dropped payload was logged since the last success
}

// outcomeKind is the part of an outcome whose changes are logged.
type outcomeKind struct {
	outcome             Outcome
	isSilent            bool // there was no response
	isPartiallyRejected bool
}

func newOutcomeLog(log *slog.Logger, x Exporter) *outcomeLog {
	return &outcomeLog{
		log: ratelog.New(log, logInterval, ""), warnings: ratelog.New(log, warningInterval, ""),
		name: x.Name,
	}
}

// logAttempt logs the result of an attempt to deliver a payload, if it differs from the result of the previous attempt. It
// also logs the warnings of accepted payloads. queued is the number of waiting payloads, and pending the number of spans that
// are not delivered yet.
func (l *outcomeLog) logAttempt(p *Payload, a Attempt, queued int, pending uint64) {
	isFullyAccepted := a.Outcome == OutcomeAccepted && a.Rejected == 0
	hasWarning := isFullyAccepted && a.Err != nil
	if hasWarning {
		l.warnings.Warn(l.name+" accepts payloads with a warning", "warning", a.Err)
	}
	current := outcomeKind{outcome: a.Outcome, isSilent: a.Silent, isPartiallyRejected: a.Rejected > 0}
	hasChanged := current != l.last
	l.last = current
	if !hasChanged {
		return
	}
	switch {
	case a.Outcome == OutcomeNotWanted: // the exporter logs this
	case isFullyAccepted:
		l.logRecovery(queued, pending)
	default:
		l.logFailure(p, a)
	}
}

// logRecovery logs that the destination accepts payloads again.
func (l *outcomeLog) logRecovery(queuedPayloads int, pendingSpans uint64) {
	l.log.Info(l.name+" accepts payloads again", "queued_payloads", queuedPayloads, "pending_spans", pendingSpans)
	l.hasLoggedLoss.Store(false) // logLost logs the next loss
}

// logFailure logs an attempt to deliver a payload that the destination has not accepted, or has accepted only in part.
func (l *outcomeLog) logFailure(p *Payload, a Attempt) {
	isRunningTotals := p.canBeSentTwice() // so the next payload includes the spans of this one
	switch {
	case a.Outcome == OutcomeAccepted: // in part
		l.log.Error(l.name+" rejects a part of the payloads; its spans are lost", "error", a.Err)
	case a.Outcome == OutcomeNotYet && a.Silent:
		l.log.Warn(l.name+" is unreachable; payloads are queued and retried", "error", a.Err)
	case a.Outcome == OutcomeNotYet:
		l.log.Warn(l.name+" responds but rejects payloads for now; they are queued and retried", "error", a.Err)
	case a.Outcome == OutcomeRefused && isRunningTotals:
		l.log.Error(l.name+" rejects payloads; the next payload includes their spans", "error", a.Err)
	case a.Outcome == OutcomeRefused:
		l.log.Error(l.name+" rejects payloads; their spans are lost", "error", a.Err)
	case a.Outcome == OutcomeUnknown:
		l.log.Warn(l.name+" did not respond; it may have counted the payload, so it is not sent again", "error", a.Err)
	}
}

// logLost logs that a payload was dropped because it could not be delivered in time. It logs only the first such
// payload after a success. It ignores payloads of the service graph, because the next one contains the same edges.
func (l *outcomeLog) logLost(reason Reason, p *Payload) {
	isGivenUp := reason.result() == ResultGivenUp
	if !isGivenUp || p.IsGraph {
		return
	}
	isFirst := l.hasLoggedLoss.CompareAndSwap(false, true)
	if isFirst {
		l.log.Warn("dropping payloads until the "+l.name+" accepts them again",
			"reason", string(reason), "spans", p.Spans, "tries", p.tries, "error", p.lastErr)
	}
}
