package otlpanswer

import (
	"net/http"
	"time"
)

// Status is a google.rpc.Status, the result of a request.
type Status struct {
	Code    Code
	Message string
	Retry   time.Duration // minimum delay before a retry; 0 if the server did not specify one
}

// Code is a gRPC status code.
type Code uint8

const (
	OK Code = iota
	Canceled
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

// httpStatuses maps each code to the HTTP status that makes a client behave in the same way: both are
// retryable, or neither is.
var httpStatuses = [...]int{
	OK: http.StatusOK, Canceled: http.StatusServiceUnavailable, Unknown: http.StatusInternalServerError,
	InvalidArgument: http.StatusBadRequest, DeadlineExceeded: http.StatusGatewayTimeout,
	NotFound: http.StatusNotFound, AlreadyExists: http.StatusConflict,
	PermissionDenied: http.StatusForbidden, ResourceExhausted: http.StatusRequestEntityTooLarge,
	FailedPrecondition: http.StatusBadRequest, Aborted: http.StatusServiceUnavailable,
	OutOfRange: http.StatusServiceUnavailable, Unimplemented: http.StatusNotFound,
	Internal: http.StatusInternalServerError, Unavailable: http.StatusServiceUnavailable,
	DataLoss: http.StatusServiceUnavailable, Unauthenticated: http.StatusUnauthorized,
}

// HTTP returns the HTTP status code for the gRPC status s. ResourceExhausted becomes 429 if s has a retry delay,
// and 413 otherwise. An unknown code becomes 500.
func (s Status) HTTP() int {
	switch {
	case int(s.Code) >= len(httpStatuses):
		return http.StatusInternalServerError
	case s.Code == ResourceExhausted && s.Retry > 0:
		return http.StatusTooManyRequests
	}
	return httpStatuses[s.Code]
}

// IsRetryable reports whether the OTLP specification allows a client to retry after this status.
func (s Status) IsRetryable() bool {
	switch s.HTTP() {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// CodeOf returns the gRPC code for an HTTP status. The statuses after which OTLP/HTTP clients retry (429, 502, 503,
// 504) become Unavailable, after which OTLP/gRPC clients retry too. CodeOf returns Unknown unless the status is
// 2xx, 4xx or 5xx.
func CodeOf(httpStatus int) Code {
	switch httpStatus {
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
	switch httpStatus / 100 {
	case 2:
		return OK
	case 4:
		return InvalidArgument
	case 5:
		return Internal
	}
	return Unknown
}
