package request

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxRetryAfter bounds how long an answer can make its reader wait.
	MaxRetryAfter = time.Minute
	// maxSaid bounds what is read of an answer's body.
	maxSaid = 1 << 10
)

// Said is the text of an answer, as far as it is short.
func Said(resp *http.Response) string {
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid))
	return strings.TrimSpace(string(said))
}

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
