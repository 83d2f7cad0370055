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

// Protobuf returns the status as a google.rpc.Status message.
func (s Status) Protobuf() []byte {
	b := appendUnlessZero(nil, fieldCode, uint64(s.Code))
	if s.Message != "" {
		b = protolite.AppendBytes(b, fieldMessage, s.Message)
	}
	if s.Retry > 0 {
		b = protolite.AppendBytes(b, fieldDetails, encodeRetryInfo(s.Retry))
	}
	return b
}

// encodeRetryInfo returns a google.protobuf.Any message that contains a google.rpc.RetryInfo with the given delay.
func encodeRetryInfo(delay time.Duration) []byte {
	duration := appendUnlessZero(nil, fieldSeconds, uint64(delay/time.Second))
	duration = appendUnlessZero(duration, fieldNanos, uint64(delay%time.Second))
	info := protolite.AppendBytes(nil, fieldRetryDelay, duration)
	detail := protolite.AppendBytes(nil, fieldTypeURL, retryInfoURL)
	return protolite.AppendBytes(detail, fieldValue, info)
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

// mustJSON returns the JSON encoding of v. It panics if v cannot be encoded in JSON.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an answer has no JSON: " + err.Error())
	}
	return b
}

// ReadStatus decodes a google.rpc.Status message. It takes the retry delay from a google.rpc.RetryInfo in the
// details, if there is one. It ignores malformed fields.
func ReadStatus(status []byte) (s Status) {
	const undefinedCode = uint64(Unauthenticated) + 1 // in place of all codes that gRPC does not define
	for f := range protolite.Fields(status) {
		switch f.Number {
		case fieldCode:
			s.Code = Code(min(f.Value, undefinedCode))
		case fieldMessage:
			s.Message = string(f.Bytes)
		case fieldDetails:
			s.Retry = max(s.Retry, readRetryInfo(f.Bytes))
		}
	}
	return s
}

// readRetryInfo reads a google.protobuf.Any message. It returns the delay if the message contains a google.rpc.RetryInfo,
// and 0 if it contains another message.
func readRetryInfo(detail []byte) time.Duration {
	isRetryInfo := false
	var delay time.Duration
	for f := range protolite.Fields(detail) {
		switch f.Number {
		case fieldTypeURL:
			isRetryInfo = strings.HasSuffix(string(f.Bytes), "/"+retryInfo)
		case fieldValue:
			for duration := range protolite.Messages(f.Bytes, fieldRetryDelay) {
				delay = readDuration(duration)
			}
		}
	}
	if !isRetryInfo {
		return 0
	}
	return delay
}

// readDuration decodes a google.protobuf.Duration message. A negative field counts as 0. The result is at most
// MaxRetryAfter.
func readDuration(message []byte) time.Duration {
	const maxSeconds = int64(MaxRetryAfter / time.Second)
	var duration time.Duration
	for f := range protolite.Fields(message) {
		value := max(0, int64(f.Value))
		switch f.Number {
		case fieldSeconds:
			duration += time.Duration(min(value, maxSeconds)) * time.Second
		case fieldNanos:
			duration += time.Duration(min(value, int64(time.Second)))
		}
	}
	return min(duration, MaxRetryAfter)
}

// MaxRetryAfter is the maximum retry delay that a response can impose.
const MaxRetryAfter = time.Minute

// RetryAfter parses the value of a Retry-After header, a number of seconds or a date. It returns the delay from now, at
// most MaxRetryAfter. It returns 0 if the value is invalid or the date is in the past.
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
