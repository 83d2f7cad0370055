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

// ParseOrigins parses the values of --otlp-cors-origin. It returns the valid ones, and the joined errors of the others.
func ParseOrigins(values []string) (origins Origins, err error) {
	for _, text := range values {
		text = strings.TrimSpace(text)
		isValid := text == anyOrigin || isPattern(text)
		if !isValid {
			err = errors.Join(err, fmt.Errorf("parse --otlp-cors-origin: %.100q is not an origin; use a scheme "+
				"and a host such as https://shop.example, with * for a whole label of the host, or only * for "+
				"every origin", text))
			continue
		}
		origins = append(origins, strings.ToLower(text))
	}
	return origins, err
}

// isPattern reports whether text is a URL that consists only of a scheme and a host, for example
// https://*.example.com. A * is allowed only as a whole label of the host name.
func isPattern(text string) bool {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return false
	}
	hasOtherParts := text != parsed.Scheme+"://"+parsed.Host
	if hasOtherParts {
		return false
	}
	for label := range strings.SplitSeq(parsed.Host, ".") {
		if strings.Contains(label, "*") && label != "*" {
			return false
		}
	}
	return true
}

// allow sets the response header fields that let a browser pass the response to a script of the web page at origin.
// If no pattern in o matches origin, the browser hides the response. allow sets nothing if o is nil.
func (o Origins) allow(origin string, header http.Header) {
	if o == nil {
		return
	}
	header.Add("Vary", "Origin")
	if origin != "" && o.match(origin) {
		header.Set("Access-Control-Allow-Origin", origin)
		header.Set("Access-Control-Expose-Headers", "Retry-After")
	}
}

// match reports whether any of the patterns matches an origin.
func (o Origins) match(origin string) bool {
	for _, pattern := range o {
		if pattern == anyOrigin || pattern == origin || matchesPattern(origin, pattern) {
			return true
		}
	}
	return false
}

// matchesPattern reports whether an origin matches a pattern. For example, https://shop.example.com matches
// https://*.example.com, and http://shop.example.com does not.
func matchesPattern(origin, pattern string) bool {
	scheme, host, _ := strings.Cut(origin, "://")
	patternScheme, patternHost, _ := strings.Cut(pattern, "://")
	labels := strings.Split(host, ".")
	patternLabels := strings.Split(patternHost, ".")
	if scheme != patternScheme || len(labels) != len(patternLabels) {
		return false
	}
	for i, label := range labels {
		isEqual := label == patternLabels[i]
		isWildcardMatch := patternLabels[i] == "*" && isHostLabel(label)
		if !isEqual && !isWildcardMatch {
			return false
		}
	}
	return true
}

// isHostLabel reports whether a text is a valid label of a host name, the part between two dots.
func isHostLabel(text string) bool {
	return text != "" && strings.Trim(text, labelCharacters) == ""
}

// labelCharacters are the valid characters of a host name's label. A port or a path has others.
const labelCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// isPreflight reports whether the request is a CORS preflight request for an OTLP/HTTP path. A browser sends it to
// ask whether a script of a web page may send a request.
func (c *call) isPreflight() bool {
	if c.origin == "" || c.HTTP.Method != http.MethodOptions {
		return false
	}
	_, isGRPC, found := signalOf(c.HTTP.URL.Path)
	isOTLPOverHTTP := found && !isGRPC
	hasRequestMethod := c.Header().Get("Access-Control-Request-Method") != ""
	return isOTLPOverHTTP && hasRequestMethod
}

const (
	// preflightAge is the number of seconds for which a browser caches the response. It is Chromium's maximum.
	preflightAge = "7200"
	// maxRequestedHeaders is the maximum length of the requested header names. It is limited because the response repeats
	// them.
	maxRequestedHeaders = 1 << 10 // bytes
)

// answerPreflight returns the response to a CORS preflight request. The response allows POST requests with all
// header fields that the browser has asked for. It is an error if the origin of the web page is not allowed, or if
// the list of header fields is too long.
func (c *call) answerPreflight() receiver.Response {
	origins := c.server.config.AllowedOrigins
	requestedHeaders := c.Header().Get("Access-Control-Request-Headers")
	isAllowed := origins.match(c.origin) && len(requestedHeaders) <= maxRequestedHeaders
	if !isAllowed {
		c.encoding = encodingJSON // of the error
		return c.respondError(newRefusal(ResultRefused, otlpanswer.PermissionDenied, "the origin is not allowed, or the "+
			"list of requested headers is too long; add the origin to --otlp-cors-origin of the daemon"))
	}
	c.Result = int(ResultOther)
	return func(w http.ResponseWriter) error {
		header := w.Header()
		origins.allow(c.origin, header)
		header.Add("Vary", "Access-Control-Request-Headers")
		header.Set("Access-Control-Allow-Methods", http.MethodPost)
		header.Set("Access-Control-Max-Age", preflightAge)
		if requestedHeaders != "" {
			header.Set("Access-Control-Allow-Headers", requestedHeaders)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}
