package otlp

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// reply is a response to an SDK before it is written in the SDK's protocol.
type reply struct {
	otlpanswer.Status
	result  Result // of a request that is refused here
	http    int    // HTTP status, if it says more than the code; 0 otherwise
	message []byte // an Export...Response in protobuf, if the code is OK
	// asIs is the body of the upstream's response if the SDK speaks the same protocol, otherwise nil. With
	// HTTP it has any type, with gRPC it is the details of the status.
	asIs     []byte
	asIsType string
}

// accepted returns the reply to a request that is accepted.
func accepted() *reply { return &reply{} }

func refuse(result Result, c otlpanswer.Code, said string) *reply {
	return &reply{result: result, Status: otlpanswer.Status{Code: c, Said: said}}
}

// refused returns the reply to a request that no receiver could accept.
func refused(status int, said string) *reply {
	no := refuse(ResultRefused, otlpanswer.Unimplemented, said)
	no.http = status
	return no
}

// later returns a reply that asks for a retry.
func later(result Result, said string) *reply {
	no := refuse(result, otlpanswer.Unavailable, said)
	no.Retry = retryAfter
	return no
}

// retryAfter is when an SDK may retry a request that found no room. Most SDKs wait at least as long by
// themselves.
const retryAfter = time.Second

// status returns the HTTP status.
func (a *reply) status() int { return cmp.Or(a.http, a.HTTP()) }

// writeHTTP writes a response of OTLP/HTTP.
func (a *reply) writeHTTP(w http.ResponseWriter, e encoding, s signal) error {
	h := w.Header()
	body, media := a.asIs, a.asIsType
	switch {
	case a.asIs != nil:
	case a.Code == otlpanswer.OK && e == inJSON:
		body = otlpanswer.ReadPartial(a.message).JSON(signals[s].rejected)
	case a.Code == otlpanswer.OK:
		body = a.message
	case e == inJSON:
		body = a.JSON()
	default:
		body = a.Protobuf()
	}
	if media == "" {
		media = mediaOf[e]
	}
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if a.Retry > 0 {
		h.Set("Retry-After", a.RetryAfter())
	}
	w.WriteHeader(a.status())
	_, err := w.Write(body)
	return err //nolint:wrapcheck // nobody reads it
}
