package otlp

import "net/http"

// code is a status of gRPC.
type code uint8

const (
	codeOK                 code = 0
	codeCancelled          code = 1
	codeUnknown            code = 2
	codeInvalidArgument    code = 3
	codeDeadlineExceeded   code = 4
	codeNotFound           code = 5
	codeAlreadyExists      code = 6
	codePermissionDenied   code = 7
	codeResourceExhausted  code = 8
	codeFailedPrecondition code = 9
	codeAborted            code = 10
	codeOutOfRange         code = 11
	codeUnimplemented      code = 12
	codeInternal           code = 13
	codeUnavailable        code = 14
	codeDataLoss           code = 15
	codeUnauthenticated    code = 16
)

// httpStatus is the status of HTTP that has an SDK do the same as the code has it do: what
// may be tried again by one may be tried again by the other. RESOURCE_EXHAUSTED may only
// with the time when; without, it is what was sent that is too much.
func (c code) httpStatus(hasRetry bool) int {
	switch c {
	case codeOK:
		return http.StatusOK
	case codeCancelled, codeAborted, codeOutOfRange, codeUnavailable, codeDataLoss:
		return http.StatusServiceUnavailable
	case codeDeadlineExceeded:
		return http.StatusGatewayTimeout
	case codeResourceExhausted:
		if hasRetry {
			return http.StatusTooManyRequests
		}
		return http.StatusRequestEntityTooLarge
	case codeInvalidArgument, codeFailedPrecondition:
		return http.StatusBadRequest
	case codeUnauthenticated:
		return http.StatusUnauthorized
	case codePermissionDenied:
		return http.StatusForbidden
	case codeNotFound, codeUnimplemented:
		return http.StatusNotFound
	case codeAlreadyExists:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// codeOf is the code that has an SDK do the same as the status of HTTP.
func codeOf(status int) code {
	switch status {
	case http.StatusUnauthorized:
		return codeUnauthenticated
	case http.StatusForbidden:
		return codePermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType,
		http.StatusNotImplemented:
		return codeUnimplemented
	case http.StatusRequestEntityTooLarge:
		return codeResourceExhausted
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		return codeUnavailable
	}
	switch status / 100 {
	case 2:
		return codeOK
	case 4:
		return codeInvalidArgument
	case 5:
		return codeInternal
	}
	return codeUnknown
}

// isRetryable says whether an SDK sends a request again after such an answer.
func (c code) isRetryable(hasRetry bool) bool {
	switch c {
	case codeCancelled, codeDeadlineExceeded, codeAborted, codeOutOfRange, codeUnavailable, codeDataLoss:
		return true
	case codeResourceExhausted:
		return hasRetry
	}
	return false
}
