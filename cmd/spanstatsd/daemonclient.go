package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
	"github.com/spf13/pflag"
)

// statusError is the reason why a daemon's status is not available, and what to do about it.
type statusError struct {
	cause error
	fix   string
}

func (e *statusError) Error() string { return fmt.Sprintf("read status: %s; %s", e.cause, e.fix) }
func (e *statusError) Unwrap() error { return e.cause }

// unreachableError is the error if no daemon responds.
type unreachableError struct{ error }

func (u unreachableError) Unwrap() error { return u.error }

// unreachable returns an unreachableError with a formatted cause.
func unreachable(fix, format string, args ...any) error {
	return unreachableError{&statusError{fmt.Errorf(format, args...), fix}}
}

// refused returns the error of a daemon that responds, but not with a status, with a formatted cause.
func refused(fix, format string, args ...any) error {
	return &statusError{fmt.Errorf(format, args...), fix}
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

// source returns a client for the status of the daemon at --url. Without --url, this is the daemon on
// this machine. All errors are errors of the command line.
func (d *daemonFlags) source(timeout time.Duration) (*statusSource, error) {
	if timeout <= 0 {
		return nil, commandline.Mistake("parse --timeout: %s is not positive", timeout)
	}
	address := cmp.Or(d.url, localDaemon(os.Getenv(commandline.Variable("http-addr"))))
	daemonURL, err := parseHTTPURL(address)
	if err != nil {
		return nil, err
	}
	var tlsConfig tls.Config
	if d.caFile != "" {
		tlsConfig.RootCAs, err = check.Authorities("--ca-file", d.caFile)
		if err != nil {
			return nil, commandline.AsUsage(err)
		}
	}
	user := daemonURL.User
	daemonURL.User = nil
	return &statusSource{
		url:  daemonURL.JoinPath("status").String(),
		user: user,
		client: http.Client{
			Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tlsConfig},
		},
	}, nil
}

// parseHTTPURL parses the value of --url. A value without a scheme is an http:// URL. The error does
// not contain the value, because a URL can contain a password.
func parseHTTPURL(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	isHTTP := err == nil && (u.Scheme == "http" || u.Scheme == "https")
	if !isHTTP || u.Host == "" {
		return nil, commandline.Mistake("parse --url: not an HTTP URL; use http://host:port or https://host:port")
	}
	return u, nil
}

// localDaemon returns the address of the daemon on this machine that listens on httpAddr, the value
// of --http-addr. It returns the default address if httpAddr is empty or invalid.
func localDaemon(httpAddr string) string {
	host, port, err := net.SplitHostPort(httpAddr)
	if err != nil {
		return "127.0.0.1:9126"
	}
	ip := net.ParseIP(host)
	isAnyAddress := host == "" || ip != nil && ip.IsUnspecified()
	if isAnyAddress {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// maxStatusBytes limits the size of a response. The status of a fully used daemon has about 200 KB.
const maxStatusBytes = 8 << 20

// get requests the status once. It returns the body of the response with invisible characters escaped,
// and the decoded status.
func (s *statusSource) get(ctx context.Context) ([]byte, *status.Status, error) {
	body, err := s.request(ctx)
	if err != nil {
		return nil, nil, err
	}
	decoded, err := s.decode(body)
	if err != nil {
		return nil, nil, err
	}
	validUTF8 := bytes.ToValidUTF8(body, []byte("\ufffd"))
	return sanitize.JSON(validUTF8), decoded, nil
}

// request sends one HTTP request for the status, and returns the body of the response. It returns an
// error if the response has a status code other than 200.
func (s *statusSource) request(ctx context.Context) (body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	if s.user != nil {
		password, _ := s.user.Password()
		request.SetBasicAuth(s.user.Username(), password)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, unreachable(checkDaemon, "%w", err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxStatusBytes))
	if err != nil {
		return nil, unreachable("try again", "read the response of %s: %w", s.url, err)
	}
	return body, s.checkResponse(response)
}

// checkResponse returns an error with a fix if the status code of a response is not 200.
func (s *statusSource) checkResponse(response *http.Response) error {
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized:
		return refused("add user:password@ before the host in --url or SPANSTATSD_URL",
			"%s requires a password, or the one in the URL is wrong", s.url)
	case http.StatusMisdirectedRequest:
		return refused("use the IP address of the daemon in --url, or add the name to --http-hosts of the daemon",
			"%s rejects the host name in its URL", s.url)
	}
	return unreachable(checkURL, "%s responded with %s", s.url, response.Status)
}

// decode decodes the body of a response. It returns an error if the body is not a status of a daemon of
// this version.
func (s *statusSource) decode(body []byte) (*status.Status, error) {
	decoded := &status.Status{}
	err := json.Unmarshal(body, decoded)
	switch { // the schema first, because a status with another schema can be impossible to decode
	case decoded.Schema == 0:
		return nil, unreachable(checkURL, "%s responded with something other than a status", s.url)
	case decoded.Schema != status.StatusSchema:
		return nil, refused("use spanstatsd of the same version as the daemon",
			"the status of the daemon has schema %d, and this program reads schema %d", decoded.Schema, status.StatusSchema)
	case err != nil:
		return nil, unreachable(checkURL, "%s responded with an invalid status: %w", s.url, err)
	}
	isNull := func(_ string, r *status.Receiver) bool { return r == nil }
	maps.DeleteFunc(decoded.Receivers, isNull)
	return decoded, nil
}

// Fixes for a daemon that does not respond.
const (
	checkDaemon = "check that the daemon is running, and that --url is the address in its --http-addr"
	checkURL    = "check that --url is the address of a spanstatsd"
)
