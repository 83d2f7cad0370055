package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

var tracePaths = []string{"/v0.3/traces", "/v0.4/traces", "/v0.5/traces", "/v0.7/traces", "/v1.0/traces"}

// stalled is a body that blocks until ctx is done.
type stalled struct{ ctx context.Context }

func (s *stalled) Read([]byte) (int, error) {
	pause(s.ctx, time.Duration(2000+rand.IntN(6000))*time.Millisecond)
	return 0, io.ErrUnexpectedEOF
}

// callGRPC makes a gRPC call on a new connection.
func callGRPC(ctx context.Context, t *target, body io.Reader, headers ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := newClient(anyOf(t.sdks()), true)
	defer c.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+sdkFormats["grpc"].path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set(hostileHeader, "1")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// Bodies that are slow to build.
var (
	gzipBomb     = sync.OnceValue(func() []byte { return compress(make([]byte, 64<<20)) })
	tags         = sync.OnceValue(func() []byte { return compress(manyTags(1000, 1000)) })
	growingEnums = sync.OnceValue(func() []byte {
		kinds := strings.Repeat(`"kind":-1,`, 30_000)
		return compress([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{` + kinds + `"name":"x"}]}]}]}`))
	})
)

// nestedAttribute returns a request with an attribute of nested lists.
func nestedAttribute(depth int) []byte {
	value := nested(nil, 1, []byte("x"))
	for range depth {
		value = nested(nil, 5, nested(nil, 1, value))
	}
	resource := nested(nil, 1, nested(nested(nil, 1, []byte("deep")), 2, value))
	return nested(nil, 1, nested(nil, 1, resource))
}

// manyTags returns a request with the given number of resource attributes and spans.
func manyTags(tags, count int) []byte {
	s := newSpans("hostile", resources, count)
	all := s.protobuf()
	resource := nested(nil, 1, attribute("service.name", "hostile"))
	for i := range tags {
		resource = nested(resource, 1, attribute(fmt.Sprint("tag.", i), fmt.Sprint("value ", i)))
	}
	// A repeated protobuf message field is merged: the spans have the attributes of both resources.
	_, _, n := protowire.ConsumeTag(all)
	message, _ := protowire.ConsumeBytes(all[n:])
	return nested(nil, 1, nested(bytes.Clone(message), 1, resource))
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return b
}

// sendGarbage sends random bytes: at the start of a connection, as a body, or after a valid beginning.
func sendGarbage(ctx context.Context, t *target) error {
	switch rand.IntN(4) {
	case 0:
		return write(ctx, anyOf(t.addresses()), randomBytes(1+rand.IntN(4000)), readAll)
	case 1:
		return write(ctx, anyOf(t.tracers()), postRequest(anyOf(tracePaths), msgpackType, randomBytes(2000)), readAll)
	case 2:
		media, encoding := anyOf([]string{protobufType, jsonType, "text/html", ""}), anyOf([]string{"", gzipHeader})
		return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", media, randomBytes(2000), encoding), readAll)
	}
	s := newSpans("hostile", resources, 20)
	body := s.protobuf()
	for range 5 {
		body[rand.IntN(len(body))] ^= byte(1 << rand.IntN(8))
	}
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", protobufType, body[:rand.IntN(len(body))]), readAll)
}

// sendFalseLengths sends bodies whose lists, maps and strings claim to be longer than the body.
func sendFalseLengths(ctx context.Context, t *target) error {
	body := anyOf([]string{
		"\xdd\xff\xff\xff\xff", "\x91\xdd\xff\xff\xff\xff\x80", "\x91\x91\xdf\xff\xff\xff\xff",
		"\x91\x91\x81\xdb\xff\xff\xff\xff", "\x92\xdd\xff\xff\xff\xff\x90",
		"\x92\x90\x91\x91\x9c\xce\xff\xff\xff\xff", strings.Repeat("\x91", 100_000),
		"\x91\x91\xde\xff\xff" + strings.Repeat("\xa0\xa0", 65535), strings.Repeat("\x81\xa1a", 30_000),
	})
	return write(ctx, anyOf(t.tracers()), postRequest(anyOf(tracePaths), msgpackType, []byte(body)), readAll)
}

// sendMalformedCall makes a gRPC call that violates the protocol.
func sendMalformedCall(ctx context.Context, t *target) error {
	s := newSpans("hostile", resources, 10)
	message := s.protobuf()
	framed := func(flag byte, length int) io.Reader {
		prefix := binary.BigEndian.AppendUint32([]byte{flag}, uint32(length))
		return bytes.NewReader(append(prefix, message...))
	}
	switch rand.IntN(6) {
	case 0:
		return callGRPC(ctx, t, framed(7, len(message)))
	case 1:
		return callGRPC(ctx, t, framed(1, len(message)))
	case 2:
		return callGRPC(ctx, t, framed(0, len(message)+1))
	case 3:
		return callGRPC(ctx, t, io.MultiReader(framed(0, len(message)), framed(0, len(message))))
	case 4:
		return callGRPC(ctx, t, framed(0, len(message)), "Content-Type", "application/grpc+json")
	}
	return callGRPC(ctx, t, framed(1, len(message)), "Grpc-Encoding", "snappy")
}

// sendStatistics sends invalid client-computed statistics.
func sendStatistics(ctx context.Context, t *target) error {
	p := newPacker()
	p.dict(4)
	p.put("Env", "hostile", "Service", strings.Repeat("s", rand.IntN(100_000)), "Sequence", 1, "Stats")
	p.list(1)
	p.dict(3)
	p.put("Start", time.Now().Add(time.Duration(rand.IntN(100)-50)*time.Second).UnixNano(), "Duration",
		10_000_000_000, "Stats")
	groups := rand.IntN(50)
	p.list(groups)
	for i := range groups {
		p.dict(6)
		p.put("Service", "hostile", "Name", "x", "Resource", fmt.Sprint("r", rand.IntN(1000), i), "Hits",
			rand.Uint64()>>uint(rand.IntN(64)), "Duration", rand.Uint64(), "OkSummary",
			randomBytes(rand.IntN(300)))
	}
	return write(ctx, anyOf(t.tracers()), postRequest("/v0.6/stats", msgpackType, p.Bytes()), readAll)
}

func stallBody(ctx context.Context, t *target) error {
	path, media, address := "/v1/traces", protobufType, anyOf(t.sdks())
	if rand.IntN(3) == 0 {
		path, media, address = "/v0.4/traces", msgpackType, anyOf(t.tracers())
	}
	partial := append(postHeader(path, media, 100_000+rand.IntN(400_000)), make([]byte, 90)...)
	return write(ctx, address, partial, hold(ctx))
}

func stallCall(ctx context.Context, t *target) error {
	return callGRPC(ctx, t, io.MultiReader(bytes.NewReader([]byte{0, 0, 4, 0, 0, 1, 2, 3}), &stalled{ctx}))
}

func sendBomb(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", protobufType, gzipBomb(), gzipHeader), readAll)
}

func sendNestedProtobuf(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", protobufType, nestedAttribute(1+rand.IntN(3000)), ""), readAll)
}

func sendNestedJSON(ctx context.Context, t *target) error {
	depth := 1 + rand.IntN(100_000)
	body := `{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":` +
		strings.Repeat(`{"arrayValue":{"values":[`, depth/20) +
		anyOf([]string{"", strings.Repeat("[", depth)})
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", jsonType, []byte(body)), readAll)
}

func sendGrowingEnums(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", jsonType, growingEnums(), gzipHeader), readAll)
}

func sendManyTags(ctx context.Context, t *target) error {
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", protobufType, tags(), gzipHeader), readAll)
}

func resetStream(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(5))*time.Millisecond)
	defer cancel()
	return callGRPC(ctx, t, &stalled{ctx})
}

func requestUnservedPaths(ctx context.Context, t *target) error {
	path := anyOf([]string{"/v1/metrics", "/v1/logs", "/v1/profiles", "/info", "/v0.7/config", "/../../x"})
	return write(ctx, anyOf(t.http()), postRequest(path, protobufType, nested(nil, 1, make([]byte, 1000))), readAll)
}
