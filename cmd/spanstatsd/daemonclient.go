package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spf13/pflag"
)

// unreachableError is the error if a daemon does not respond.
type unreachableError struct{ error }

func (u unreachableError) Unwrap() error { return u.error }

// unreachable returns an unreachableError with a formatted text.
func unreachable(format string, args ...any) error {
	return unreachableError{fmt.Errorf("ask daemon: "+format, args...)}
}

// daemonFlags holds the flags of commands that query a daemon.
type daemonFlags struct{ url, caFile string }

// addTo adds the flags to a flag set.
func (d *daemonFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&d.url, "url", "", "URL of the daemon, http://host:port, or http://user:password@host:port")
	f.StringVar(&d.caFile, "ca-file", "", "PEM file with the certificate authority for an https:// URL (default: the "+
		"system's)")
}

// statusSource queries the status of a daemon.
type statusSource struct {
	url    string        // URL of /status, without user and password
	user   *url.Userinfo // user and password; nil if there are none
	client http.Client
}

// source returns the source for the daemon that the flags or the environment specify. All errors
// are usage errors.
func (d *daemonFlags) source(timeout time.Duration) (*statusSource, error) {
	if timeout <= 0 {
		return nil, commandline.Mistake("parse --timeout: %s is not positive", timeout)
	}
	address := cmp.Or(d.url, localDaemon(os.Getenv(commandline.Variable("http-addr"))))
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// the address is not quoted, because it may contain a password
		return nil, commandline.Mistake("parse --url: it is not http://host:port or https://host:port")
	}
	var secure tls.Config
	if d.caFile != "" {
		if secure.RootCAs, err = check.Authorities("--ca-file", d.caFile); err != nil {
			return nil, commandline.AsUsage(err)
		}
	}
	s := &statusSource{user: u.User, client: http.Client{
		Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &secure},
	}}
	u.User = nil
	s.url = u.JoinPath("status").String()
	return s, nil
}

// localDaemon returns the address for connecting to a local daemon that listens on httpAddr. If
// httpAddr is invalid, it is the default address.
func localDaemon(httpAddr string) string {
	host, port, err := net.SplitHostPort(httpAddr)
	if err != nil {
		return "127.0.0.1:9126"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// maxStatusBytes limits the size of a response. The status of a fully used daemon has about 200 KB.
const maxStatusBytes = 8 << 20

// get requests the status once. It returns the body of the response, and the decoded status.
func (s *statusSource) get(ctx context.Context) ([]byte, *status.Status, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("ask daemon: %w", err)
	}
	if s.user != nil {
		password, _ := s.user.Password()
		request.SetBasicAuth(s.user.Username(), password)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, nil, unreachable("%w; is it running, and does --url name the --http-addr of its run?", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatusBytes))
	if err != nil {
		return nil, nil, unreachable("read the answer of %s: %w", s.url, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return nil, nil, fmt.Errorf("ask daemon: %s asks for a password; put user:password@ before the "+
			"host in --url, or in SPANSTATSD_URL", s.url)
	case http.StatusMisdirectedRequest:
		return nil, nil, fmt.Errorf("ask daemon: %s: %s", s.url, strings.TrimSpace(string(body)))
	default:
		return nil, nil, unreachable("%s answered %s; is this a spanstatsd?", s.url, response.Status)
	}
	decoded := &status.Status{}
	if err := json.Unmarshal(body, decoded); err != nil || decoded.Schema == 0 {
		return nil, nil, unreachable("what %s answered is no status; is this a spanstatsd?", s.url)
	}
	if decoded.Schema > status.StatusSchema {
		return nil, nil, fmt.Errorf("ask daemon: its status has schema %d, this program knows %d; use the "+
			"daemon's own spanstatsd status", decoded.Schema, status.StatusSchema)
	}
	return body, decoded, nil
}
