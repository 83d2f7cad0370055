//go:build browser

package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// prefix is the path prefix of the proxy.
const prefix = "/api/v1/namespaces/shop/pods/shop-7c9f:9126/proxy/"

// proxy is a proxy between browser and daemon that records the responses of /status by their time.
type proxy struct {
	*httptest.Server
	away atomic.Bool // responds like a gateway whose daemon is unreachable
	// adds contains fields that the proxy adds to each response of /status; nil for none.
	adds atomic.Pointer[map[string]any]

	mu      sync.Mutex
	answers map[string]map[string]any
}

func newProxy(t *testing.T, daemon string) *proxy {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: daemon}
	p := &proxy{answers: map[string]map[string]any{}}
	upstream := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.Path = "/" + strings.TrimPrefix(r.In.URL.Path, prefix)
		},
		ModifyResponse: p.remember,
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case p.away.Load():
			http.Error(w, "the daemon is away", http.StatusBadGateway)
		case !strings.HasPrefix(r.URL.Path, prefix):
			t.Errorf("the page asked for %s, which is not below its own address", r.URL.Path)
			http.NotFound(w, r)
		default:
			upstream.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) remember(response *http.Response) error {
	if !strings.HasSuffix(response.Request.URL.Path, "/status") {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	var answer map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		return err
	}
	if more := p.adds.Load(); more != nil {
		maps.Copy(answer, *more)
		if body, err = json.Marshal(answer); err != nil {
			return err
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		response.ContentLength = int64(len(body))
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[fmt.Sprint(answer["at"])] = answer
	return nil
}

// answer returns the recorded response of /status with the given time.
func (p *proxy) answer(at string) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[at]
}
