package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// sampleBatch returns snapshots of a web service: few services, some resources.
func sampleBatch(size int) []Snapshot {
	batch := make([]Snapshot, size)
	for i := range batch {
		batch[i] = Snapshot{
			Key: Key{
				Service: "web-store", Operation: "http.request",
				Resource: fmt.Sprintf("GET /api/v1/users/%d", i%32), Type: "web", Kind: "server",
				TraceRoot: TraceRootTrue, HTTPStatus: 200, PeerTags: []string{"peer.service:users-db"},
				HTTPMethod: "GET", HTTPEndpoint: "/api/v1/users/?",
			},
			Duration: time.Duration(1_000_000 + i*1000),
			End:      time.Unix(1_700_000_000, int64(i)),
			TopLevel: true,
		}
	}
	return batch
}

func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("connected/batch=%d", size), func(b *testing.B) {
			benchmarkBatch(b, openBenchmark(b, drain(b)), sampleBatch(size))
		})
	}
	b.Run("encoded/batch=64", func(b *testing.B) {
		benchmarkBatch(b, openBenchmark(b, drain(b)), encoded(sampleBatch(64)))
	})
	for _, size := range []int{1, 64} {
		b.Run(fmt.Sprintf("full/batch=%d", size), func(b *testing.B) {
			c := openBenchmark(b, filepath.Join(b.TempDir(), "absent"))
			for c.Publish(sampleBatch(64)) {
			}
			benchmarkBatch(b, c, sampleBatch(size))
		})
		b.Run(fmt.Sprintf("disconnected/batch=%d", size), func(b *testing.B) {
			c := openBenchmark(b, filepath.Join(b.TempDir(), "absent"))
			c.gate.refuse(disconnected) // as after MaxAway
			benchmarkBatch(b, c, sampleBatch(size))
		})
	}
	for _, size := range []int{1, 64} {
		b.Run(fmt.Sprintf("pair/batch=%d", size), func(b *testing.B) { benchmarkPair(b, size) })
	}
}

// benchmarkPair runs two goroutines that publish concurrently.
func benchmarkPair(b *testing.B, size int) {
	c := openBenchmark(b, drain(b))
	batches := [][]Snapshot{sampleBatch(size), sampleBatch(size)}
	b.ReportAllocs()
	for b.Loop() {
		settle(b, c)
		var running sync.WaitGroup
		for _, batch := range batches {
			running.Go(func() {
				for range pause / 2 / size {
					c.Publish(batch)
				}
			})
		}
		running.Wait()
	}
	reportSnapshots(b, c, pause)
}

func benchmarkBatch(b *testing.B, c *Client, batch []Snapshot) {
	b.ReportAllocs()
	for left := pause; b.Loop(); left -= len(batch) {
		if left <= 0 {
			left = settle(b, c)
		}
		c.Publish(batch)
	}
	reportSnapshots(b, c, len(batch))
}

// pause is the number of snapshots that are published before the next wait. They fit into the buffers.
const pause = 32 << 10

// settle waits until they are sent, if there is a daemon: refusing a batch is much faster and must not be measured.
func settle(b *testing.B, c *Client) int {
	b.StopTimer()
	for stats := c.Stats(); stats.Connected && stats.Buffered > pause/4; stats = c.Stats() {
		time.Sleep(20 * time.Microsecond)
	}
	b.StartTimer()
	return pause
}

// encoded returns the batch with encoded keys.
func encoded(batch []Snapshot) []Snapshot {
	for i := range batch {
		batch[i].Encoded, batch[i].Key = EncodeKey(batch[i].Key), Key{}
	}
	return batch
}

func openBenchmark(b *testing.B, socket string) *Client {
	c, err := Open(Config{Socket: socket})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	})
	return c
}

func reportSnapshots(b *testing.B, c *Client, size int) {
	stats := c.Stats()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/snapshot")
	b.ReportMetric(100*float64(stats.Published)/float64(b.N*size), "%accepted")
}

// drain starts a daemon that reads as fast as it can and ignores all spans.
func drain(b testing.TB) (socket string) {
	socket = filepath.Join(b.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Write(wire.AppendWelcome(nil, &wire.Welcome{
				Version: wire.Version, MaxFrame: wire.MinMaxFrame, MaxBatch: wire.MinMaxBatch, MaxKeys: 1024,
				Features: wire.Features{Stats: true}, Settled: true, Token: "a", // so that all spans are kept
			}))
			buffer := make([]byte, 1<<20)
			for err == nil {
				_, err = conn.Read(buffer)
			}
			if err == io.EOF {
				conn.Close()
			}
		}
	}()
	return socket
}
