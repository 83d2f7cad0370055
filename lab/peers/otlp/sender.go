package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// sender repeatedly sends a request over one connection and waits for each response, as an SDK
// does.
type sender struct {
	request *recorded.Request
	message []byte // copy of the request's message with current times
	send    func(ctx context.Context, isMarked bool) error
	close   func()
}

// headerComputedStats marks a request as counted.
const headerComputedStats = "Datadog-Client-Computed-Stats"

func newSender(r *recorded.Request, address string, isGRPC bool) (*sender, error) {
	s := &sender{request: r, message: bytes.Clone(r.Message)}
	if isGRPC {
		return s, s.speakGRPC(address)
	}
	s.speakHTTP(address)
	return s, nil
}

// sendFor sends for at least the given duration, and returns the number of requests.
func (s *sender) sendFor(least time.Duration, isMarked bool) (sent int, err error) {
	for begun := time.Now(); sent == 0 || time.Since(begun) < least; sent++ {
		s.request.Stamp(s.message, time.Now())
		if err := s.send(context.Background(), isMarked); err != nil {
			return sent, fmt.Errorf("send request: %w", err)
		}
	}
	return sent, nil
}

func (s *sender) speakHTTP(address string) {
	transport := &http.Transport{DisableCompression: true}
	s.close = transport.CloseIdleConnections
	s.send = func(ctx context.Context, isMarked bool) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/traces",
			bytes.NewReader(s.message))
		if err != nil {
			return err
		}
		r.Header.Set("User-Agent", s.request.Header.Get("User-Agent"))
		r.Header.Set("Content-Type", "application/x-protobuf")
		if isMarked {
			r.Header.Set(headerComputedStats, "yes")
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err == nil && answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("the answer was %s: %s", answer.Status, body)
		}
		return err
	}
}

func (s *sender) speakGRPC(address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bare{})))
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	s.close = func() { _ = conn.Close() }
	s.send = func(ctx context.Context, isMarked bool) error {
		if isMarked {
			ctx = metadata.AppendToOutgoingContext(ctx, headerComputedStats, "yes")
		}
		var answer []byte
		return conn.Invoke(ctx, "/opentelemetry.proto.collector.trace.v1.TraceService/Export", &s.message,
			&answer)
	}
	return nil
}
