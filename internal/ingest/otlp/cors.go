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

// Origins are the origins of pages whose scripts may send OTLP (CORS), as a browser writes them:
// https://shop.example, https://*.example.com, where * stands for one label of the host, or * for all. Nil:
// CORS is off.
type Origins []string

// anyOrigin is the pattern for all origins.
const anyOrigin = "*"

// ParseOrigins parses a list of patterns.
func ParseOrigins(list []string) (o Origins, err error) {
	for _, text := range list {
		text = strings.TrimSpace(text)
		if text != anyOrigin && !isPattern(text) {
			err = errors.Join(err, fmt.Errorf("parse --otlp-cors-origin: %.100q is no origin: give "+
				"https://shop.example as the address of a page begins, with * as a whole label of its host, "+
				"or * for every page", text))
			continue
		}
		o = append(o, strings.ToLower(text))
	}
	return o, err
}

// isPattern reports whether a text is only a scheme and a host, and each * in it a whole label.
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

// allow sets the header that lets a script of an origin read a response. It reports whether it may.
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

func (o Origins) has(origin string) bool {
	for _, pattern := range o {
		if pattern == anyOrigin || pattern == origin || fits(origin, pattern) {
			return true
		}
	}
	return false
}

// fits reports whether an origin matches a pattern.
func fits(origin, pattern string) bool {
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

// labelCharacters are the characters of a label of a host; a port or a path has others.
const labelCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// isPreflight reports whether a browser asks whether a page's script may send.
func (c *call) isPreflight() bool {
	if c.origin == "" || c.HTTP.Method != http.MethodOptions {
		return false
	}
	_, isGRPC, found := signalOf(c.HTTP.URL.Path)
	return found && !isGRPC && c.Header().Get("Access-Control-Request-Method") != ""
}

// preflightAge is for how many seconds a browser need not ask again: Chromium's maximum. maxAsked bounds the
// names of header fields that a browser asks for, since the response repeats them.
const (
	preflightAge = "7200"
	maxAsked     = 1 << 10 // bytes
)

// answerPreflight answers a browser.
func (c *call) answerPreflight() receiver.Response {
	asked := c.Header().Get("Access-Control-Request-Headers")
	c.encoding = inJSON
	if !c.server.config.Origins.has(c.origin) || len(asked) > maxAsked {
		return c.refuse(refuse(ResultRefused, otlpanswer.PermissionDenied, "pages of this origin may not "+
			"send here, or not so many fields; name it in the daemon's --otlp-cors-origin"))
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
