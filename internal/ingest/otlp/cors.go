package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// Origins are patterns for the origins of web pages whose scripts may send OTLP (CORS). A pattern is an origin such as
// https://shop.example or https://*.example.com, in which * matches one label of the host name, or * for all origins.
// Nil disables CORS.
type Origins []string

// anyOrigin is the pattern for all origins.
const anyOrigin = "*"

// ParseOrigins parses the values of --otlp-cors-origin.
func ParseOrigins(list []string) (o Origins, err error) {
	for _, text := range list {
		text = strings.TrimSpace(text)
		if text != anyOrigin && !isPattern(text) {
			err = errors.Join(err, fmt.Errorf("parse --otlp-cors-origin: %.100q is not an origin; give a scheme "+
				"and a host such as https://shop.example, with * for a whole label of the host, or only * for "+
				"every origin", text))
			continue
		}
		o = append(o, strings.ToLower(text))
	}
	return o, err
}

// isPattern reports whether a text consists of only a scheme and a host, and each * is a whole label of the host.
func isPattern(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != text {
		return false
	}
	for label := range strings.SplitSeq(u.Host, ".") {
		if strings.Contains(label, "*") && label != "*" {
			return false
		}
	}
	return true
}

// allow sets the response header that lets the browser pass the response to a script of an origin, if a pattern matches
// the origin. It reports whether one does.
func (o Origins) allow(origin string, h http.Header) bool {
	if o == nil {
		return false
	}
	h.Add("Vary", "Origin")
	if origin == "" || !o.has(origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	return true
}

// has reports whether a pattern matches an origin.
func (o Origins) has(origin string) bool {
	for _, pattern := range o {
		if pattern == anyOrigin || pattern == origin || matches(origin, pattern) {
			return true
		}
	}
	return false
}

// matches reports whether an origin matches a pattern with a scheme and a host.
func matches(origin, pattern string) bool {
	scheme, host, _ := strings.Cut(origin, "://")
	wantScheme, wantHost, _ := strings.Cut(pattern, "://")
	labels, want := strings.Split(host, "."), strings.Split(wantHost, ".")
	if scheme != wantScheme || len(labels) != len(want) {
		return false
	}
	for i, label := range labels {
		isLabel := label != "" && strings.Trim(label, labelCharacters) == ""
		if want[i] != label && (want[i] != "*" || !isLabel) {
			return false
		}
	}
	return true
}

// labelCharacters are the valid characters of a host name's label. A port or a path has others.
const labelCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// isPreflight reports whether the request is a CORS preflight request of a browser for an OTLP/HTTP path.
func (c *call) isPreflight() bool {
	if c.origin == "" || c.HTTP.Method != http.MethodOptions {
		return false
	}
	_, isGRPC, found := signalOf(c.HTTP.URL.Path)
	return found && !isGRPC && c.Header().Get("Access-Control-Request-Method") != ""
}

const (
	// preflightAge is the number of seconds for which a browser caches the response. It is Chromium's maximum.
	preflightAge = "7200"
	// maxAsked is the maximum length of the requested header names. It is limited because the response repeats them.
	maxAsked = 1 << 10 // bytes
)

// answerPreflight returns the response to a CORS preflight request.
func (c *call) answerPreflight() receiver.Response {
	asked := c.Header().Get("Access-Control-Request-Headers")
	c.encoding = inJSON
	if !c.server.config.Origins.has(c.origin) || len(asked) > maxAsked {
		return c.refuse(refuse(ResultRefused, otlpanswer.PermissionDenied, "the origin is not allowed, or the "+
			"list of requested headers is too long; add the origin to --otlp-cors-origin of the daemon"))
	}
	c.Result = int(ResultOther)
	return func(w http.ResponseWriter) error {
		h := w.Header()
		c.server.config.Origins.allow(c.origin, h)
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Allow-Methods", http.MethodPost)
		if h.Set("Access-Control-Max-Age", preflightAge); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}
