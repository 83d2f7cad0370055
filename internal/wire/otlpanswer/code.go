package otlpanswer

import (
	"net/http"
	"time"
)

// Status is a google.rpc.Status: what became of a request.
type Status struct {
	Code  Code
	Message  string
	Retry time.Duration // after which the request may be tried again; 0: it does not say when
}

// Code is what gRPC calls a status.
type Code uint8

const (
	OK Code = iota
	Cancelled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated
)

// httpStatuses are those of HTTP that have a sender do the same as the codes have it do: what may be
// tried again by one protocol may be tried again by the other.
var httpStatuses = [...]int{
	OK: http.StatusOK, Cancelled: http.StatusServiceUnavailable, Unknown: http.StatusInternalServerError,
	InvalidArgument: http.StatusBadRequest, DeadlineExceeded: http.StatusGatewayTimeout,
	NotFound: http.StatusNotFound, AlreadyExists: http.StatusConflict,
	PermissionDenied: http.StatusForbidden, ResourceExhausted: http.StatusRequestEntityTooLarge,
	FailedPrecondition: http.StatusBadRequest, Aborted: http.StatusServiceUnavailable,
	OutOfRange: http.StatusServiceUnavailable, Unimplemented: http.StatusNotFound,
	Internal: http.StatusInternalServerError, Unavailable: http.StatusServiceUnavailable,
	DataLoss: http.StatusServiceUnavailable, Unauthenticated: http.StatusUnauthorized,
}

// HTTP is a status in HTTP. RESOURCE_EXHAUSTED may be tried again if it says when; without, it is
// what was sent that is too much.
func (s Status) HTTP() int {
	switch {
	case int(s.Code) >= len(httpStatuses):
		return http.StatusInternalServerError
	case s.Code == ResourceExhausted && s.Retry > 0:
		return http.StatusTooManyRequests
	}
	return httpStatuses[s.Code]
}

// IsRetryable says whether the specification has a sender try again.
func (s Status) IsRetryable() bool {
	switch s.HTTP() {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// CodeOf is the code that has a sender do the same as a status of HTTP.
func CodeOf(status int) Code {
	switch status {
	case http.StatusUnauthorized:
		return Unauthenticated
	case http.StatusForbidden:
		return PermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented:
		return Unimplemented
	case http.StatusRequestEntityTooLarge:
		return ResourceExhausted
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return Unavailable
	}
	switch status / 100 {
	case 2:
		return OK
	case 4:
		return InvalidArgument
	case 5:
		return Internal
	}
	return Unknown
}
