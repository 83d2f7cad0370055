package otlp

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	flushpost "github.com/spanstatsd/spanstatsd/internal/flush/post"
)

// What a destination answers goes back in the words of who asked: as it is where both speak
// alike, else by the table of code.go.

// replyOfHTTP is the answer of a destination that speaks HTTP and was asked in one encoding, for
// an SDK that speaks perhaps another.
func replyOfHTTP(from *door.Answer, said []byte, asked, speaks encoding) *reply {
	a := &reply{status: status{code: codeOf(from.Status)}, http: from.Status}
	if from.Status/100 == 3 { // nobody follows it
		a.code = codeUnknown
	}
	a.retry = retryOf(from, a.code)
	switch {
	case asked == speaks:
		a.asIs, a.asIsType = said, from.Field("Content-Type")
		if said == nil {
			a.asIs = []byte{}
		}
	case a.code == codeOK && asked == inProtobuf:
		a.message = said
	case a.code == codeOK: // in words that this SDK does not speak; it was taken
	case asked == inProtobuf && strings.HasPrefix(from.Field("Content-Type"), mediaProtobuf):
		text, retry := flushpost.ReadStatus(said)
		a.said, a.retry = text, max(a.retry, retry)
	}
	if a.code != codeOK && a.said == "" {
		a.said = "the destination answered " + strconv.Itoa(from.Status) + " " + http.StatusText(from.Status)
	}
	return a
}

// retryOf is when an answer says that a request may be tried again, 0 where it does not.
func retryOf(from *door.Answer, c code) time.Duration {
	if after := from.Field("Retry-After"); after != "" && c.isRetryable(true) {
		return flushpost.RetryAfter(after, time.Now())
	}
	return 0
}

// replyOfGRPC is the answer of a destination that speaks gRPC. Its status stands in
// trailers, or in the header where it has no message.
func replyOfGRPC(from *door.Answer, said []byte, speaks encoding) *reply {
	n, err := strconv.ParseUint(from.Field(headerGRPCStatus), 10, 8)
	if err != nil || n > uint64(codeUnauthenticated) { // something else than gRPC answered
		a := &reply{status: status{code: codeOf(from.Status)}}
		if a.code == codeOK {
			a.code = codeUnknown
		}
		a.retry = retryOf(from, a.code)
		a.said = "the destination answered " + strconv.Itoa(from.Status) + " without a status of gRPC"
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
	if text, err := url.PathUnescape(from.Field(headerGRPCMessage)); err == nil {
		a.said = text
	}
	details := from.Field(headerGRPCDetails)
	_, a.retry = flushpost.ReadStatus(decoded(details))
	if speaks == inGRPC {
		a.asIs = []byte(details)
	}
	return a
}
