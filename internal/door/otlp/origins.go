package otlp

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Origins are those of pages whose scripts may send OTLP, which their browser asks about (CORS): of each
// what a browser writes, as https://shop.example, with * in the place of one label of the host, as
// https://*.example.com, or * for all. Nil: nobody is asked, and no browser hears that it may.
type Origins []string

// anyOrigin is the pattern of all; in a host * is one label.
const anyOrigin = "*"

// ParseOrigins reads a list of patterns.
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

// isPattern says whether a text is scheme and host alone, and each * in it all of a label.
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

// allow sets what lets a script of an origin read an answer, where it may, and says whether it may.
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

// fits says whether an origin has a pattern's scheme, and its host the labels of the pattern's.
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

// labelCharacters are those of a host's label, as a browser writes it: neither a port nor a path.
const labelCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_"
