// Package recording finds out which labels of recorded spans would exceed their budgets, before a daemon runs.
package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
)

// Config describes how a daemon would count the recorded spans.
type Config struct {
	Labels      otel.Labels
	Ignore      *ignore.List    // rules for spans that are not counted; nil counts every span
	MaxResource int             // maximum length of a resource
	Interval    time.Duration   // time between two exports
	Registry    registry.Config // limits and budgets
}

// maxLineBytes is the maximum length of a request in a file.
const maxLineBytes = 64 << 20

// Result describes a recording.
type Result struct {
	Spans            uint64
	CountedByClients uint64 // further spans that are marked as counted, and are left out
	// Overflow contains the highest number of values per label that any interval needs; nil if no label exceeds its
	// budget.
	Overflow *registry.Overflow
}

// Read reads a file that has one OTLP trace request in JSON per line, like those of the Collector's file exporter, and
// counts the spans within the limits of config. It divides time into intervals of length config.Interval. The end times
// of the spans in a request determine its interval.
func Read(config Config, file io.Reader) (Result, error) {
	r := &reader{
		config: config, policy: otel.NewPolicy(config.Labels), counter: otel.NewCounter(),
		intervals: registry.NewIntervals(&config.Registry),
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLineBytes)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := r.readRequest(line); err != nil {
			return Result{}, fmt.Errorf("read recording: line %d: %w", number, err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return Result{}, fmt.Errorf("read recording: line %d is longer than %d MiB; record smaller batches", number+1,
			maxLineBytes>>20)
	}
	if lines.Err() != nil {
		return Result{}, fmt.Errorf("read recording: %w", lines.Err())
	}
	r.endInterval()
	return Result{Spans: r.spans, CountedByClients: r.countedByClients, Overflow: r.highest}, nil
}

// reader admits the spans of a recording.
type reader struct {
	config           Config
	policy           *otel.Policy
	counter          *otel.Counter
	intervals        *registry.Intervals
	intervalEnd      int64 // nanoseconds since the Unix epoch; 0 before the first span
	spans            uint64
	countedByClients uint64
	highest          *registry.Overflow
	protobuf         []byte // memory of the last request
}

// readRequest admits the spans of a request in JSON.
func (r *reader) readRequest(json []byte) (err error) {
	r.protobuf, err = otlpjson.FromJSON(r.protobuf[:0], json)
	if err != nil {
		return err //nolint:wrapcheck // Read does
	}
	if err := r.counter.Count(r.protobuf, r.policy); err != nil {
		return err //nolint:wrapcheck // Read does
	}
	defer r.counter.Release()
	r.countedByClients += uint64(r.counter.Skipped())
	r.beginInterval()
	for origin, batch := range r.counter.Batches {
		id, _ := r.intervals.Registry().AdmitOriginOrShared(origin, 0)
		for i := range batch.Snapshots {
			r.admit(id, origin.Lang, batch.Labeler, &batch.Snapshots[i])
		}
	}
	return nil
}

// maxDisorder is the maximum time by which a request can be earlier than the end of the current interval and still
// belongs to it.
const maxDisorder = time.Minute

// beginInterval begins a new interval if the newest span of the request ended after the current interval. It also begins
// one if the newest span ended more than maxDisorder before the end of the current interval: an older recording can be
// appended to the file, or the clock of a previous sender can be ahead.
func (r *reader) beginInterval() {
	newest := int64(0) // end of the newest span, in nanoseconds since the Unix epoch
	for _, batch := range r.counter.Batches {
		for i := range batch.Snapshots {
			newest = max(newest, batch.Snapshots[i].End)
		}
	}
	hasSpans := newest > 0
	isLater := newest >= r.intervalEnd
	isMuchEarlier := newest < r.intervalEnd-int64(maxDisorder)
	needsNewInterval := hasSpans && (isLater || isMuchEarlier)
	if !needsNewInterval {
		return
	}
	if r.intervalEnd > 0 {
		r.endInterval()
	}
	width := int64(r.config.Interval)
	r.intervalEnd = newest - newest%width + width
}

// admit admits the key of a span, as a publisher does. lang is the language of its process.
func (r *reader) admit(origin registry.OriginID, lang string, labeler span.Labeler, s *span.Snapshot) {
	r.spans++
	if s.Flags&span.Ignored != 0 {
		return
	}
	key := labeler.Label(s.Span)
	key.NormalizeLabels(lang)
	key.ShortenResource(r.config.MaxResource)
	if !r.config.Ignore.MatchesKey(key) {
		r.intervals.Registry().Admit(origin, key)
	}
}

// endInterval ends the current interval. If labels have exceeded their budgets in it, endInterval updates r.highest with
// the numbers of their values.
func (r *reader) endInterval() {
	r.intervals.Begin() // begins the next interval, which ends the current one
	r.intervals.ReportEnded()
	overflow := r.intervals.Overflow()
	hasOverflow := overflow != nil && overflow.IsLast // if IsLast is false, overflow is from an earlier interval
	switch {
	case !hasOverflow:
		return
	case r.highest == nil:
		r.highest = overflow
	default:
		r.highest = highestOf(r.highest, overflow)
	}
}

// highestOf returns the higher numbers of two intervals, for each label.
func highestOf(a, b *registry.Overflow) *registry.Overflow {
	highest := &registry.Overflow{
		Ended: b.Ended, IsLast: true,
		LabelsNotMeasured: max(a.LabelsNotMeasured, b.LabelsNotMeasured), Keys: max(a.Keys, b.Keys),
	}
	type name struct{ service, label string }
	position := map[name]int{} // in highest.Labels
	for _, l := range slices.Concat(a.Labels, b.Labels) {
		i, isKnown := position[name{l.Service, l.Label}]
		switch {
		case !isKnown:
			position[name{l.Service, l.Label}] = len(highest.Labels)
			highest.Labels = append(highest.Labels, l)
		case l.Wanted > highest.Labels[i].Wanted:
			highest.Labels[i] = l
		}
	}
	slices.SortStableFunc(highest.Labels, func(a, b registry.LabelOverflow) int { return cmp.Compare(b.Wanted, a.Wanted) })
	return highest
}
