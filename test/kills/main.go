package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

func main() {
	if os.Getenv(hogVariable) != "" {
		hogMemory()
		return
	}
	var s settings
	flag.DurationVar(&s.duration, "time", time.Hour, "duration of the run")
	flag.IntVar(&s.kills, "kills", 0, "maximum number of kills; 0 means no limit")
	flag.Uint64Var(&s.firstSeed, "seed", rand.Uint64N(1_000_000_000),
		"seed of the first episode; later episodes use the following numbers")
	flag.IntVar(&s.onlyRate, "rate", 0, "spans per second of all clients of an episode; 0 means random")
	flag.StringVar(&s.onlyDestinations, "destination", "",
		"destinations, comma-separated: agent, delta, cumulative, prometheus; empty means random")
	flag.StringVar(&s.onlyReceivers, "receiver", "",
		"HTTP receivers to send to, comma-separated: apm, otlp, zipkin; or none; empty means random")
	flag.BoolVar(&s.onlyOOM, "oom", false, "use the OOM killer in every episode")
	flag.BoolVar(&s.isGraceful, "graceful", false,
		"shut daemons down gracefully instead of killing them, to test this program")
	flag.IntVar(&s.parallel, "parallel", 5, "number of parallel episodes")
	flag.DurationVar(&s.episode, "episode", 45*time.Second, "duration of the kills in an episode")
	flag.BoolVar(&s.isPlanned, "lives", false, "run daemons by plans that are drawn from the seed: shutdowns, "+
		"second signals, successors, damaged files, kills after any store")
	plan := flag.String("plan", "", "plan of a single episode, as printed by a failed run")
	file := flag.String("log", os.DevNull, "file for the output of the daemons")
	flag.Parse()
	if *plan != "" {
		s.isPlanned, s.parallel = true, 1
		if err := json.Unmarshal([]byte(*plan), &s.onlyPlan); err != nil {
			log.Fatalf("kills: read -plan: %v", err)
		}
	}
	if s.isPlanned {
		s.episode = time.Minute // a planned episode ends with its plan
	}
	log.SetOutput(io.Discard) // net/http logs failed connections to killed daemons
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	line, passed, err := runWith(ctx, s, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kills:", err)
	}
	fmt.Println(line)
	if !passed || err != nil {
		os.Exit(1)
	}
}

// runWith builds the required programs and runs the episodes.
func runWith(ctx context.Context, s settings, file string) (line string, passed bool, err error) {
	s.dir, err = os.MkdirTemp("", "kills")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(s.dir)
	if s.program, err = built.Plain(s.dir, built.Daemon); err != nil {
		return "", false, err
	}
	if s.isPlanned {
		if err := canMountDisk(s.dir); err != nil {
			fmt.Fprintln(os.Stderr, "NOT RUN: full disks:", err)
		} else {
			s.canLimitDisk = true
		}
		if s.selfKilling, err = built.KillPoints(filepath.Join(s.dir, "self-killing"), built.Daemon); err != nil {
			return "", false, err
		}
	}
	if s.classes, err = buildJava(filepath.Join(s.dir, "java")); errors.Is(err, errNoJava) {
		fmt.Fprintln(os.Stderr, "NOT RUN: Java client:", err)
	} else if err != nil {
		return "", false, err
	}
	if s.python, err = pythonCommand(); err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: Python client:", err)
	}
	if s.node, err = nodeCommand(); err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: the client library for Node.js:", err)
	}
	if p, err := newPod(); err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: OOM kills:", err)
	} else if s.canUseOOMKiller = true; p.close() != nil {
		return "", false, err
	}
	log, err := os.Create(file)
	if err != nil {
		return "", false, err
	}
	defer log.Close()
	s.log, s.messages = &lockedWriter{to: log}, &lockedWriter{to: os.Stderr}
	return s.run(ctx)
}
