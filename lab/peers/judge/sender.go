package main

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"
)

// sender sends spans to a tool as an SDK or a tracer does.
type sender interface {
	// send returns when the tool has accepted the request, or when the sender gives up. isAccepted is false if the tool has
	// certainly told the sender that it lacks the spans.
	send(r request, repeat bool) (isAccepted bool)
	// throttle waits while the tool reads more slowly than spans are sent.
	throttle()
	// finish sends buffered spans, and returns the number of spans that the sender itself reports as lost.
	finish() (lost float64)
}

// httpSender sends requests over HTTP. It retries a request without a response, or with a status that the OTLP specification calls
// retryable, for retryTime.
type httpSender struct {
	url       string
	encode    func(request) ([]byte, error)
	setHeader func(header http.Header, spans int)
	client    *http.Client
}

const (
	maxConnections = 64
	responseTime   = 10 * time.Second
	retryTime      = 40 * time.Second
	firstPause     = 100 * time.Millisecond
	longestPause   = 2 * time.Second
	repeatPause    = 500 * time.Millisecond
)

func newOTLPSender(address string) *httpSender {
	return &httpSender{
		url: "http://" + address + "/v1/traces", encode: encodeOTLP, client: newClient(),
		setHeader: func(header http.Header, _ int) { header.Set("Content-Type", "application/x-protobuf") },
	}
}

func newDatadogSender(address string) *httpSender {
	return &httpSender{
		url: "http://" + address + "/v0.4/traces", encode: encodeDatadog, client: newClient(),
		setHeader: func(header http.Header, spans int) {
			header.Set("Content-Type", "application/msgpack")
			header.Set("Datadog-Meta-Lang", "go")
			header.Set("X-Datadog-Trace-Count", strconv.Itoa(spans))
			header.Set("Datadog-Send-Real-Http-Status", "true") // otherwise, the agent answers 200 if it is overloaded
		},
	}
}

func newClient() *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: maxConnections, MaxConnsPerHost: maxConnections}
	return &http.Client{Transport: transport, Timeout: responseTime}
}

// throttle does nothing, because send has waited for the response.
func (s *httpSender) throttle() {}

func (s *httpSender) finish() float64 {
	s.client.CloseIdleConnections()
	return 0
}

func (s *httpSender) send(r request, repeat bool) bool {
	body, err := s.encode(r)
	if err != nil {
		panic("BUG: encode request: " + err.Error())
	}
	pause := firstPause
	for deadline := time.Now().Add(retryTime); ; pause = min(2*pause, longestPause) {
		status, err := s.post(body, len(r.spans))
		isRetryable := err != nil || isRetryableStatus(status)
		if !isRetryable || time.Now().After(deadline) {
			isAccepted := err == nil && status/100 == 2
			if isAccepted && repeat {
				time.Sleep(repeatPause)
				_, _ = s.post(body, len(r.spans)) // the tool already has the spans
			}
			return isAccepted
		}
		time.Sleep(pause)
	}
}

func isRetryableStatus(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (s *httpSender) post(body []byte, spans int) (status int, err error) {
	r, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	s.setHeader(r.Header, spans)
	response, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
