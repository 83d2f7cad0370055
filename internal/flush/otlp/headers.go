package otlp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Headers go with each request. Their values are secrets: nothing but a request has them.
type Headers struct{ all http.Header }

// ownHeaders are set by the exporter alone.
var ownHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Te",
	"Trailer", "Upgrade",
}

// parseHeaders reads name=value pairs with commas, the values escaped as in a URL.
func parseHeaders(_, text string) (h Headers, err error) {
	all := http.Header{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, isPair := strings.Cut(pair, "=")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		value, unescaped := url.PathUnescape(strings.TrimSpace(escaped))
		switch {
		case !isPair || !isToken(name):
			err = errors.Join(err, fmt.Errorf("parse headers: number %d is no name=value", i+1))
		case slices.Contains(ownHeaders, name):
			err = errors.Join(err, fmt.Errorf("parse headers: %s is set by the daemon", name))
		case unescaped != nil || !isHeaderText(value):
			err = errors.Join(err, fmt.Errorf("parse headers: the value of %s cannot stand in a header; "+
				"escape it as in a URL, a space is %%20", name))
		default:
			all.Set(name, value)
		}
	}
	if err != nil {
		return Headers{}, err
	}
	return Headers{all}, nil
}

// isToken says whether a text can be a header's name.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isHeaderText says whether a text can be a header's value.
func isHeaderText(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// String names the headers and hides their values.
func (h Headers) String() string {
	names := slices.Sorted(maps.Keys(h.all))
	for i, name := range names {
		names[i] = name + "=(hidden)"
	}
	return strings.Join(names, ",")
}

// GoString is the same for those who print a configuration whole.
func (h Headers) GoString() string { return h.String() }

// MarshalText is the same for those who write it as JSON.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.String()), nil }
