package otlpanswer

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// Field numbers of google.rpc.Status, Any, RetryInfo and Duration.
const (
	fieldCode       protolite.Number = 1
	fieldMessage    protolite.Number = 2
	fieldDetails    protolite.Number = 3
	fieldTypeURL    protolite.Number = 1
	fieldValue      protolite.Number = 2
	fieldRetryDelay protolite.Number = 1
	fieldSeconds    protolite.Number = 1
	fieldNanos      protolite.Number = 2
)

const (
	retryInfo    = "google.rpc.RetryInfo"
	retryInfoURL = "type.googleapis.com/" + retryInfo
)

// Protobuf returns the status in protobuf.
func (s Status) Protobuf() []byte {
	b := appendUnlessZero(nil, fieldCode, uint64(s.Code))
	if s.Message != "" {
		b = protolite.AppendBytes(b, fieldMessage, s.Message)
	}
	if s.Retry > 0 {
		delay := appendUnlessZero(nil, fieldSeconds, uint64(s.Retry/time.Second))
		delay = appendUnlessZero(delay, fieldNanos, uint64(s.Retry%time.Second))
		detail := protolite.AppendBytes(nil, fieldTypeURL, retryInfoURL)
		detail = protolite.AppendBytes(detail, fieldValue, protolite.AppendBytes(nil, fieldRetryDelay, delay))
		b = protolite.AppendBytes(b, fieldDetails, detail)
	}
	return b
}

// appendUnlessZero appends an integer field. Protobuf omits fields with the value 0.
func appendUnlessZero(b []byte, field protolite.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protolite.AppendVarint(b, field, n)
}

// JSON returns the status in protobuf's JSON mapping.
func (s Status) JSON() []byte {
	type detail struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
	}
	status := struct {
		Code    Code     `json:"code,omitempty"`
		Message string   `json:"message,omitempty"`
		Details []detail `json:"details,omitempty"`
	}{Code: s.Code, Message: s.Message}
	if s.Retry > 0 {
		delay := strconv.FormatFloat(s.Retry.Seconds(), 'f', -1, 64) + "s"
		status.Details = []detail{{retryInfoURL, delay}}
	}
	return mustJSON(status)
}

// mustJSON encodes a value that always has a JSON encoding, because it contains only texts and numbers.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an answer has no JSON: " + err.Error())
	}
	return b
}

// ReadStatus reads a protobuf status and the retry delay of its RetryInfo.
func ReadStatus(status []byte) (s Status) {
	for f := range protolite.Fields(status) {
		switch f.Number {
		case fieldCode:
			s.Code = Code(min(f.Value, uint64(Unauthenticated)+1))
		case fieldMessage:
			s.Message = string(f.Bytes)
		case fieldDetails:
			s.Retry = max(s.Retry, readRetryInfo(f.Bytes))
		}
	}
	return s
}

// readRetryInfo returns the delay of an Any that contains a RetryInfo, or 0 if it contains another message.
func readRetryInfo(detail []byte) (delay time.Duration) {
	isRetryInfo := false
	for f := range protolite.Fields(detail) {
		switch f.Number {
		case fieldTypeURL:
			isRetryInfo = strings.HasSuffix(string(f.Bytes), "/"+retryInfo)
		case fieldValue:
			for inner := range protolite.Fields(f.Bytes) {
				if inner.Number == fieldRetryDelay {
					delay = readDuration(inner.Bytes)
				}
			}
		}
	}
	if !isRetryInfo {
		return 0
	}
	return delay
}

// readDuration reads a protobuf Duration, up to MaxRetryAfter. Negative fields are read as 0.
func readDuration(duration []byte) (d time.Duration) {
	for f := range protolite.Fields(duration) {
		part := max(0, int64(f.Value))
		switch f.Number {
		case fieldSeconds:
			d += time.Duration(min(part, int64(MaxRetryAfter/time.Second))) * time.Second
		case fieldNanos:
			d += time.Duration(min(part, int64(time.Second)))
		}
	}
	return min(d, MaxRetryAfter)
}

// MaxRetryAfter is the maximum retry delay that a response can impose.
const MaxRetryAfter = time.Minute

// RetryAfter parses the value of a Retry-After header, which is a number of seconds or a date.
func RetryAfter(header string, now time.Time) time.Duration {
	var delay time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		delay = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		delay = date.Sub(now)
	}
	return min(max(delay, 0), MaxRetryAfter)
}

// RetryAfter formats the retry delay as the value of a Retry-After header, rounded up to whole seconds.
func (s Status) RetryAfter() string {
	return strconv.FormatInt(int64((s.Retry+time.Second-1)/time.Second), 10)
}
