package otlp

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	flushpost "github.com/spanstatsd/spanstatsd/internal/flush/post"
)

// What a destination answers goes back in the words of who asked: as it is where both speak
// alike, else by the table of code.go.

// replyOfHTTP is the answer of a destination that speaks HTTP and was asked in one encoding, for
// an SDK that speaks perhaps another.
func replyOfHTTP(resp *http.Response, said []byte, asked, speaks encoding) *reply {
	a := &reply{status: status{code: codeOf(resp.StatusCode)}, http: resp.StatusCode}
	if resp.StatusCode/100 == 3 { // nobody follows it
		a.code = codeUnknown
	}
	a.retry = retryOf(resp, a.code)
	switch {
	case asked == speaks:
		a.asIs, a.asIsType = said, resp.Header.Get("Content-Type")
		if said == nil {
			a.asIs = []byte{}
		}
	case a.code == codeOK && asked == inProtobuf:
		a.message = said
	case a.code == codeOK: // in words that this SDK does not speak; it was taken
	case asked == inProtobuf && strings.HasPrefix(resp.Header.Get("Content-Type"), mediaProtobuf):
		s := readStatus(said)
		a.said, a.retry = s.said, max(a.retry, s.retry)
	}
	if a.code != codeOK && a.said == "" {
		a.said = "the destination answered " + strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	}
	return a
}

// retryOf is when an answer says that a request may be tried again, 0 where it does not.
func retryOf(resp *http.Response, c code) time.Duration {
	if after := resp.Header.Get("Retry-After"); after != "" && c.isRetryable(true) {
		return flushpost.RetryAfter(after, time.Now())
	}
	return 0
}

// replyOfGRPC is the answer of a destination that speaks gRPC. Its status stands in
// trailers, or in the header where it has no message.
func replyOfGRPC(resp *http.Response, said []byte, speaks encoding) *reply {
	field := func(name string) string {
		if value := resp.Trailer.Get(name); value != "" {
			return value
		}
		return resp.Header.Get(name)
	}
	n, err := strconv.ParseUint(field(headerGRPCStatus), 10, 8)
	if err != nil || n > uint64(codeUnauthenticated) { // something else than gRPC answered
		a := &reply{status: status{code: codeOf(resp.StatusCode)}}
		if a.code == codeOK {
			a.code = codeUnknown
		}
		a.retry = retryOf(resp, a.code)
		a.said = "the destination answered " + strconv.Itoa(resp.StatusCode) + " without a status of gRPC"
		return a
	}
	a := &reply{status: status{code: code(n)}}
	if a.code == codeOK {
		message, isPacked, err := unframe(said)
		if err == nil && !isPacked {
			a.message = message
		}
		return a
	}
	if text, err := url.PathUnescape(field(headerGRPCMessage)); err == nil {
		a.said = text
	}
	details := field(headerGRPCDetails)
	a.retry = readStatus(decoded(details)).retry
	if speaks == inGRPC {
		a.asIs = []byte(details)
	}
	return a
}
