package otlp

import (
	"strings"
	"time"
)

// status is a google.rpc.Status, which a receiver answers with where it does not take a
// request.
type status struct {
	said  string
	retry time.Duration // by its RetryInfo, 0 without one
}

// The fields of google.rpc.Status, of the Any in it, of RetryInfo, and of Duration.
const (
	fieldStatusMessage = 2
	fieldStatusDetails = 3
	fieldTypeURL       = 1
	fieldAny           = 2
	fieldRetryDelay    = 1
	fieldSeconds       = 1
	fieldNanos         = 2
)

// retryInfo is how the type URL of a RetryInfo ends.
const retryInfo = "/google.rpc.RetryInfo"

// readStatus reads the body of an answer. What cannot be read says nothing.
func readStatus(answer []byte) (s status) {
	for f := range fields(answer) {
		switch f.number {
		case fieldStatusMessage:
			s.said = string(f.bytes)
		case fieldStatusDetails:
			s.retry = max(s.retry, readRetryInfo(f.bytes))
		}
	}
	return s
}

func readRetryInfo(detail []byte) (delay time.Duration) {
	var kind string
	var value []byte
	for f := range fields(detail) {
		switch f.number {
		case fieldTypeURL:
			kind = string(f.bytes)
		case fieldAny:
			value = f.bytes
		}
	}
	if !strings.HasSuffix(kind, retryInfo) {
		return 0
	}
	for message := range messages(value, fieldRetryDelay) {
		for f := range fields(message) {
			switch f.number {
			case fieldSeconds:
				delay += time.Duration(min(max(0, int64(f.value)), longestDelay)) * time.Second
			case fieldNanos:
				delay += time.Duration(min(max(0, int64(f.value)), int64(time.Second)))
			}
		}
	}
	return delay
}

// longestDelay is more seconds than anybody is waited for, and few enough to be added up.
const longestDelay = 1 << 20
