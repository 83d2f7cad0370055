package post

import (
	"net/http"
	"strconv"
	"time"
)

// MaxRetryAfter bounds how long an answer can make its reader wait.
const MaxRetryAfter = time.Minute

// RetryAfter reads either form of the header, seconds or a date.
func RetryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), MaxRetryAfter)
}
