package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// form is a response format that a scraper can request.
type form struct {
	name   string
	accept string
	isGzip bool
}

const (
	protobuf    = string(expfmt.FmtProtoDelim)
	openMetrics = string(expfmt.FmtOpenMetrics_1_0_0)
	text        = string(expfmt.FmtText)
)

var forms = []form{
	{"protobuf", protobuf, false},
	{"protobuf, gzip", protobuf, true},
	{"OpenMetrics", openMetrics, false},
}

func (f form) header() http.Header {
	header := http.Header{"Accept": {f.accept}}
	if f.isGzip {
		header.Set("Accept-Encoding", "gzip")
	}
	return header
}

// packed returns a writer that compresses as promhttp does, and a function that ends it.
func (f form) packed(to io.Writer) (io.Writer, func() error) {
	if !f.isGzip {
		return to, func() error { return nil }
	}
	packer := gzip.NewWriter(to)
	return packer, packer.Close
}

// thrown is a response that is discarded.
type thrown struct {
	before func() // called before each write; can be nil
	header http.Header
	bytes  int
	status int
}

func (t *thrown) Header() http.Header {
	if t.header == nil {
		t.header = http.Header{}
	}
	return t.header
}

func (t *thrown) WriteHeader(status int) { t.status = status }

func (t *thrown) Write(b []byte) (int, error) {
	if t.before != nil {
		t.before()
	}
	t.bytes += len(b)
	return len(b), nil
}

func (*thrown) Flush() {}

// scrape calls a handler and returns the length of its response.
func scrape(handler http.Handler, f form) (int, error) {
	answer := &thrown{status: http.StatusOK}
	handler.ServeHTTP(answer, f.request())
	if answer.status != http.StatusOK {
		return 0, fmt.Errorf("scrape: status %d", answer.status)
	}
	return answer.bytes, nil
}

func (f form) request() *http.Request {
	request := httptest.NewRequest(http.MethodGet, "/metrics/spans", nil)
	request.Header = f.header()
	return request
}

// families decodes the response of a handler.
func families(handler http.Handler, f form) (all []*dto.MetricFamily, err error) {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, f.request())
	var body io.Reader = bytes.NewReader(answer.Body.Bytes())
	if answer.Header().Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
	}
	decoder := expfmt.NewDecoder(body, expfmt.ResponseFormat(answer.Header()))
	for {
		one := &dto.MetricFamily{}
		err := decoder.Decode(one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode answer: %w", err)
		}
		all = append(all, one)
	}
}
