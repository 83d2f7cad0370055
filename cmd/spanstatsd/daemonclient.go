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

// unreachableError is a daemon that does not answer.
type unreachableError struct{ error }

func (u unreachableError) Unwrap() error { return u.error }

func unreachable(format string, args ...any) error {
	return unreachableError{fmt.Errorf("ask daemon: "+format, args...)}
}

// daemonFlags are the flags of commands that ask a daemon.
type daemonFlags struct{ url, caFile string }

func (d *daemonFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&d.url, "url", "", "where the daemon answers, http://host:port; user:password@ before the "+
		"host where it asks for them")
	f.StringVar(&d.caFile, "ca-file", "", "certificate authority of an https:// address, PEM (default: the "+
		"system's)")
}

// statusSource is a daemon that can be asked for its status.
type statusSource struct {
	url    string // of /status, without the password
	user   *url.Userinfo
	client http.Client
}

// source returns the daemon that the flags name. Its errors are usage errors.
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
		// not quoted: it may hold a password
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

// localDaemon returns the address of a daemon on this machine that listens on an --http-addr.
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

// maxStatusBytes limits a response; that of a full daemon has some 200 KB.
const maxStatusBytes = 8 << 20

// get asks once, and returns the response as it came and decoded.
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
	answer := &status.Status{}
	if err := json.Unmarshal(body, answer); err != nil || answer.Schema == 0 {
		return nil, nil, unreachable("what %s answered is no status; is this a spanstatsd?", s.url)
	}
	if answer.Schema > status.StatusSchema {
		return nil, nil, fmt.Errorf("ask daemon: its status has schema %d, this program knows %d; use the "+
			"daemon's own spanstatsd status", answer.Schema, status.StatusSchema)
	}
	return body, answer, nil
}
