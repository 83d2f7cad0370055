package otlpanswer

import (
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// The fields of google.rpc.Status, of the Any in it, of RetryInfo, and of Duration.
const (
	fieldCode       protolite.Number = 1
	fieldMessage    protolite.Number = 2
	fieldDetails    protolite.Number = 3
	fieldTypeURL    protolite.Number = 1
	fieldAny        protolite.Number = 2
	fieldRetryDelay protolite.Number = 1
	fieldSeconds    protolite.Number = 1
	fieldNanos      protolite.Number = 2
)

const (
	retryInfo    = "google.rpc.RetryInfo"
	retryInfoURL = "type.googleapis.com/" + retryInfo
)

// Protobuf is the status in protobuf.
func (s Status) Protobuf() []byte {
	b := appendUnlessZero(nil, fieldCode, uint64(s.Code))
	if s.Message != "" {
		b = protolite.AppendBytes(b, fieldMessage, s.Message)
	}
	if s.Retry > 0 {
		delay := appendUnlessZero(nil, fieldSeconds, uint64(s.Retry/time.Second))
		delay = appendUnlessZero(delay, fieldNanos, uint64(s.Retry%time.Second))
		detail := protolite.AppendBytes(nil, fieldTypeURL, retryInfoURL)
		detail = protolite.AppendBytes(detail, fieldAny, protolite.AppendBytes(nil, fieldRetryDelay, delay))
		b = protolite.AppendBytes(b, fieldDetails, detail)
	}
	return b
}

// appendUnlessZero appends a number, which protobuf leaves out if it is 0.
func appendUnlessZero(b []byte, field protolite.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protolite.AppendVarint(b, field, n)
}

// JSON is the same in the JSON of protobuf.
func (s Status) JSON() []byte {
	type detail struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
	}
	said := struct {
		Code    Code     `json:"code,omitempty"`
		Message string   `json:"message,omitempty"`
		Details []detail `json:"details,omitempty"`
	}{Code: s.Code, Message: s.Message}
	if s.Retry > 0 {
		said.Details = []detail{{retryInfoURL, strconv.FormatFloat(s.Retry.Seconds(), 'f', -1, 64) + "s"}}
	}
	return mustJSON(said)
}

// mustJSON is what a struct of texts and numbers is in JSON.
func mustJSON(of any) []byte {
	b, err := json.Marshal(of)
	if err != nil {
		panic("BUG: an answer has no JSON: " + err.Error())
	}
	return b
}

// ReadStatus reads what a status says, and how long its RetryInfo has its reader wait.
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

// readRetryInfo is the wait of an Any that is a RetryInfo, 0 of any other.
func readRetryInfo(detail []byte) (wait time.Duration) {
	isIt := false
	for f := range protolite.Fields(detail) {
		switch f.Number {
		case fieldTypeURL:
			isIt = strings.HasSuffix(string(f.Bytes), "/"+retryInfo)
		case fieldAny:
			for delay := range protolite.Fields(f.Bytes) {
				if delay.Number == fieldRetryDelay {
					wait = readDuration(delay.Bytes)
				}
			}
		}
	}
	if !isIt {
		return 0
	}
	return wait
}

// readDuration reads a Duration, of which a negative part counts nothing.
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

// MaxRetryAfter bounds how long an answer can make its reader wait.
const MaxRetryAfter = time.Minute

// RetryAfter reads either form of HTTP's field of that name, seconds or a date.
func RetryAfter(field string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(field, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(field); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), MaxRetryAfter)
}

// RetryAfter is a status's time in whole seconds, as that field has it.
func (s Status) RetryAfter() string {
	return strconv.FormatInt(int64((s.Retry+time.Second-1)/time.Second), 10)
}

// Fields visits the fields of a message. It is here for the receivers; use protolite.Fields.
func Fields(message []byte) iter.Seq[protolite.Field] { return protolite.Fields(message) }
