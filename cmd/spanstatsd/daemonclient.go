package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
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

// maxStatusBytes bounds what is read of an answer; a full one has some 200 KB.
const maxStatusBytes = 8 << 20

// statusSource is a daemon that can be asked.
type statusSource struct {
	url    string // of /status, without the password
	user   *url.Userinfo
	client http.Client
}

// daemonFlags say which daemon is asked.
type daemonFlags struct{ url, caFile string }

func (d *daemonFlags) add(f *pflag.FlagSet) {
	f.StringVar(&d.url, "url", "", "where the daemon answers, http://host:port; user:password@ before the "+
		"host where it asks for them")
	f.StringVar(&d.caFile, "ca-file", "", "certificate authority of an https:// address, PEM (default: the "+
		"system's)")
}

// asked is the daemon that a command asks, whose --timeout is this.
func (d *daemonFlags) asked(timeout time.Duration) (*statusSource, error) {
	if timeout <= 0 {
		return nil, commandline.Mistake("parse --timeout: %s is not positive", timeout)
	}
	source, err := d.source(timeout)
	return source, commandline.AsUsage(err)
}

func (d *daemonFlags) source(timeout time.Duration) (*statusSource, error) {
	address := d.url
	if address == "" {
		address = localDaemon(os.Getenv(commandline.Variable("http-addr")))
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// not quoted: it may hold a password
		return nil, errors.New("parse --url: it is not http://host:port or https://host:port")
	}
	roots, err := readRoots(d.caFile)
	if err != nil {
		return nil, err
	}
	s := &statusSource{user: u.User, client: http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}}
	u.User = nil
	s.url = u.JoinPath("status").String()
	return s, nil
}

// readRoots are the authorities of a file, nil for the system's.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	return check.Authorities("--ca-file", file) //nolint:wrapcheck // it says what to do
}

// localDaemon is where a daemon of this machine answers that listens on an address.
func localDaemon(listens string) string {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "127.0.0.1:9126"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// get asks once.
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
		return nil, nil, unreachableError{fmt.Errorf("ask daemon: %w; is it running, and does --url name "+
			"the --http-addr of its run?", err)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatusBytes))
	switch {
	case err != nil:
		return nil, nil, unreachableError{fmt.Errorf("ask daemon: read the answer of %s: %w", s.url, err)}
	case response.StatusCode == http.StatusUnauthorized:
		return nil, nil, fmt.Errorf("ask daemon: %s asks for a password; put user:password@ before the "+
			"host in --url, or in SPANSTATSD_URL", s.url)
	case response.StatusCode == http.StatusMisdirectedRequest:
		return nil, nil, fmt.Errorf("ask daemon: %s: %s", s.url, strings.TrimSpace(string(body)))
	case response.StatusCode != http.StatusOK:
		return nil, nil, unreachableError{fmt.Errorf("ask daemon: %s answered %s; is this a spanstatsd?",
			s.url, response.Status)}
	}
	answer := &status.Status{}
	if err := json.Unmarshal(body, answer); err != nil || answer.Schema == 0 {
		return nil, nil, unreachableError{fmt.Errorf("ask daemon: what %s answered is no status; is this a "+
			"spanstatsd?", s.url)}
	}
	if answer.Schema > status.StatusSchema {
		return nil, nil, fmt.Errorf("ask daemon: its status has schema %d, this program knows %d; use the "+
			"daemon's own spanstatsd status", answer.Schema, status.StatusSchema)
	}
	return body, answer, nil
}
