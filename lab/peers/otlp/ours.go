package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"github.com/spanstatsd/spanstatsd/lab/bench/tables"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// batches are the spans of a message, grouped by origin.
type batches = iter.Seq2[span.Origin, *span.Batch]

// reading is a set of rules by which our code counts. It creates a function that parses
// messages.
type reading struct {
	name      string
	countsAll bool // whether the rules count all spans
	new       func() (func(message []byte) (batches, error), error)
}

var readings = []reading{
	{"otel", true, newOTelReading},
	{"datadog", false, newDatadogReading},
}

// newOTelReading parses spans according to the semantic conventions.
func newOTelReading() (func(message []byte) (batches, error), error) {
	return readingOf(otel.Labels{})
}

func readingOf(labels otel.Labels) (func(message []byte) (batches, error), error) {
	counter, policy := otel.NewCounter(), otel.NewPolicy(labels)
	return func(message []byte) (batches, error) {
		return counter.Batches, counter.Count(message, policy)
	}, nil
}

// newDatadogReading parses spans as the agent's OTLP receiver does, with default configuration:
// 44 peer tags. Only these rules exclude some spans: those that are not top-level and whose
// kind is not in the list.
func newDatadogReading() (func(message []byte) (batches, error), error) {
	info := standin.DefaultInfo()
	policy, ok := datadog.NewPolicy(info.PeerTags, info.SpanKinds, nil, datadog.Labels{})
	if !ok {
		return nil, errors.New("make policy: the default agent's is left to it")
	}
	translator, err := translate.New(policy.Names())
	if err != nil {
		return nil, fmt.Errorf("make translator: %w", err)
	}
	counter, request, table := datadog.NewCounter(), &otlp.Request{}, &spantable.Table{}
	ofSpans, ofResources := translator.Names()
	return func(message []byte) (batches, error) {
		if err := request.Decode(message, ofSpans, ofResources); err != nil {
			return nil, err
		}
		if err := translator.Translate(request, false, table); err != nil {
			return nil, err
		}
		return counter.IngestedBatches, counter.CountIngested(table, policy)
	}, nil
}

// ours consists of the parts of a daemon that count a request, in one process.
type ours struct {
	reading
	spans   uint64 // spans in the requests
	read    func(message []byte) (batches, error)
	tables  *tables.Tables
	message []byte // reused for decoding from JSON, and for decompression
	packed  gzip.Reader
}

func newOurs(r reading) (*ours, error) {
	read, err := r.new()
	if err != nil {
		return nil, err
	}
	into, err := tables.New()
	if err != nil {
		return nil, fmt.Errorf("make tables: %w", err)
	}
	return &ours{reading: r, read: read, tables: into}, nil
}

// count counts a request, starting from its bytes.
func (o *ours) count(r *recorded.Request) (err error) {
	message := r.Message
	switch {
	case r.IsJSON():
		o.message, err = otlpjson.FromJSON(o.message[:0], message)
		message = o.message
	case isPacked(r):
		err = o.inflate(r.Body)
		message = o.message
	}
	if err != nil {
		return err
	}
	made, err := o.read(message)
	if err != nil {
		return err
	}
	o.spans += uint64(r.Spans)
	return o.tables.Publish(made)
}

func isPacked(r *recorded.Request) bool { return r.Header.Get("Content-Encoding") == "gzip" }

func (o *ours) inflate(body []byte) error {
	if err := o.packed.Reset(bytes.NewReader(body)); err != nil {
		return err
	}
	into := bytes.NewBuffer(o.message[:0])
	_, err := io.Copy(into, &o.packed)
	o.message = into.Bytes()
	return err
}

// end stops counting, and returns an error unless all published spans are in the tables.
func (o *ours) end() error {
	got, err := o.tables.Close()
	if err == nil && o.countsAll && got != o.spans {
		return fmt.Errorf("count spans: %d of %d are in the tables", got, o.spans)
	}
	return err
}
