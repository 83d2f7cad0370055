package otlp

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/otlpanswer"
)

// reply is what an SDK is told, whatever it speaks.
type reply struct {
	otlpanswer.Status
	// result is what became of the request where the reply is a refusal of ours.
	result Result
	// http is the status of HTTP where it says more than the code does, 0 elsewhere.
	http int
	// message is an Export...Response in protobuf, where the code is OK.
	message []byte
	// asIs is the body of a destination's answer, for who speaks as the destination does; nil
	// where there is none. With HTTP it may be of any type, with gRPC it is the status's details.
	asIs     []byte
	asIsType string
}

// taken is the reply to a request that was taken whole.
func taken() *reply { return &reply{} }

func refuse(result Result, c otlpanswer.Code, said string) *reply {
	return &reply{result: result, Status: otlpanswer.Status{Code: c, Said: said}}
}

// refused is the reply to a request that is nothing which is taken here.
func refused(status int, said string) *reply {
	no := refuse(ResultRefused, otlpanswer.Unimplemented, said)
	no.http = status
	return no
}

// later has an SDK try again.
func later(result Result, said string) *reply {
	no := refuse(result, otlpanswer.Unavailable, said)
	no.Retry = retryAfter
	return no
}

// retryAfter is when an SDK may try again what found no room: most SDKs wait for as long or
// longer by themselves.
const retryAfter = time.Second

// status is the one of HTTP.
func (a *reply) status() int { return cmp.Or(a.http, a.HTTP()) }

// isFinal says whether an answer ends the matter for every sender: none of those in the table of
// docs/otlp-in.md sends the same again after a success, nor after these refusals, whatever the
// specification says of others.
func (a *reply) isFinal(e encoding) bool {
	if e == inGRPC {
		switch a.Code {
		case otlpanswer.OK, otlpanswer.InvalidArgument, otlpanswer.NotFound, otlpanswer.AlreadyExists,
			otlpanswer.PermissionDenied, otlpanswer.FailedPrecondition, otlpanswer.Unimplemented,
			otlpanswer.Unauthenticated:
			return true
		}
		return false
	}
	switch status := a.status(); status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return status/100 == 2 || status/100 == 4
	}
}

// writeHTTP answers a call of OTLP/HTTP.
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
	if _, err := w.Write(body); err != nil {
		return err //nolint:wrapcheck // net/http's own; nobody reads it
	}
	return http.NewResponseController(w).Flush() //nolint:wrapcheck // the same
}
