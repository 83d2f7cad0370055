package otlp

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of google.rpc.Status, of the Any in it, of RetryInfo, and of Duration.
const (
	fieldStatusCode    = 1
	fieldStatusMessage = 2
	fieldStatusDetails = 3
	fieldTypeURL       = 1
	fieldAnyValue      = 2
	fieldRetryDelay    = 1
	fieldSeconds       = 1
	fieldNanos         = 2
)

const retryInfoURL = "type.googleapis.com/google.rpc.RetryInfo"

// status is a google.rpc.Status: what an SDK is told where its request was not taken.
type status struct {
	code  code
	said  string
	retry time.Duration // after which it may try again; 0: it is not said
}

// protobuf is the status as it stands in a body, and in grpc-status-details-bin.
func (s status) protobuf() (b []byte) {
	if s.code != 0 {
		b = protowire.AppendTag(b, fieldStatusCode, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(s.code))
	}
	if s.said != "" {
		b = protowire.AppendTag(b, fieldStatusMessage, protowire.BytesType)
		b = protowire.AppendString(b, s.said)
	}
	if s.retry > 0 {
		b = protowire.AppendTag(b, fieldStatusDetails, protowire.BytesType)
		b = protowire.AppendBytes(b, retryInfo(s.retry))
	}
	return b
}

// retryInfo is an Any with a RetryInfo.
func retryInfo(delay time.Duration) (b []byte) {
	var duration, info []byte
	if seconds := delay / time.Second; seconds > 0 {
		duration = protowire.AppendTag(duration, fieldSeconds, protowire.VarintType)
		duration = protowire.AppendVarint(duration, uint64(seconds))
	}
	if nanos := delay % time.Second; nanos > 0 {
		duration = protowire.AppendTag(duration, fieldNanos, protowire.VarintType)
		duration = protowire.AppendVarint(duration, uint64(nanos))
	}
	info = protowire.AppendTag(info, fieldRetryDelay, protowire.BytesType)
	info = protowire.AppendBytes(info, duration)
	b = protowire.AppendTag(b, fieldTypeURL, protowire.BytesType)
	b = protowire.AppendString(b, retryInfoURL)
	b = protowire.AppendTag(b, fieldAnyValue, protowire.BytesType)
	return protowire.AppendBytes(b, info)
}

// json is the same in the JSON of protobuf.
func (s status) json() []byte {
	type detail struct {
		Type       string `json:"@type"`
		RetryDelay string `json:"retryDelay"`
	}
	said := struct {
		Code    code     `json:"code,omitempty"`
		Message string   `json:"message,omitempty"`
		Details []detail `json:"details,omitempty"`
	}{Code: s.code, Message: s.said}
	if s.retry > 0 {
		said.Details = []detail{{retryInfoURL, strconv.FormatFloat(s.retry.Seconds(), 'f', -1, 64) + "s"}}
	}
	b, err := json.Marshal(said)
	if err != nil {
		panic("BUG: a status has no JSON: " + err.Error())
	}
	return b
}

// header is the status as it stands in grpc-status-details-bin.
func (s status) header() string { return base64.RawStdEncoding.EncodeToString(s.protobuf()) }

// retryAfter is the time in whole seconds, as Retry-After has it.
func (s status) retryAfter() string {
	return strconv.FormatInt(int64((s.retry+time.Second-1)/time.Second), 10)
}

// decoded is what stands in a header that ends in -bin, with or without padding.
func decoded(text string) []byte {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil
	}
	return b
}
