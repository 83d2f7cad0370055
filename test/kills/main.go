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
	if os.Getenv(eaterVariable) != "" {
		eat()
		return
	}
	var s settings
	flag.DurationVar(&s.length, "time", time.Hour, "how long new episodes begin and daemons are killed")
	flag.IntVar(&s.kills, "kills", 0, "end after so many kills; 0: when the time is over")
	flag.Uint64Var(&s.firstSeed, "seed", rand.Uint64N(1_000_000_000),
		"of the first episode; each later one has the next")
	flag.IntVar(&s.onlyRate, "rate", 0, "spans a second, of all clients of an episode; 0: drawn")
	flag.StringVar(&s.onlyTo, "destination", "",
		"exporting statistics, agent, delta, cumulative, prometheus, with commas; empty: drawn")
	flag.StringVar(&s.onlyDoors, "door", "",
		"HTTP doors that are sent to as well, apm, otlp, zipkin, with commas, or none; empty: drawn")
	flag.BoolVar(&s.onlyStarved, "starved", false, "kill by the OOM killer, in each episode")
	flag.BoolVar(&s.isOrderly, "orderly", false,
		"stop daemons in order instead of killing them: it checks this program")
	flag.IntVar(&s.atOnce, "at-once", 5, "episodes at a time")
	flag.DurationVar(&s.episode, "episode", 45*time.Second, "how long daemons are killed in an episode")
	flag.BoolVar(&s.isPlanned, "lives", false, "give daemons lives by a plan that is drawn from the seed: "+
		"stops, "+
		"second signals, successors, damaged files, and kills behind any store")
	plan := flag.String("plan", "", "the plan of one episode, as a run prints it that has failed")
	file := flag.String("log", os.DevNull, "file for what the daemons write")
	flag.Parse()
	if *plan != "" {
		s.isPlanned, s.atOnce = true, 1
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
	line, isGood, err := runWith(ctx, s, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kills:", err)
	}
	fmt.Println(line)
	if !isGood || err != nil {
		os.Exit(1)
	}
}

// runWith builds the required programs and runs the episodes.
func runWith(ctx context.Context, s settings, file string) (line string, isGood bool, err error) {
	s.dir, err = os.MkdirTemp("", "kills")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(s.dir)
	if s.program, err = built.Plain(s.dir, built.Daemon); err != nil {
		return "", false, err
	}
	if s.isPlanned {
		if err := canFillUp(s.dir); err != nil {
			fmt.Fprintln(os.Stderr, "NOT RUN: full disks:", err)
		} else {
			s.canFill = true
		}
		if s.tagged, err = built.KillPoints(filepath.Join(s.dir, "tagged"), built.Daemon); err != nil {
			return "", false, err
		}
	}
	if s.classes, err = buildJava(filepath.Join(s.dir, "java")); errors.Is(err, errNoJava) {
		fmt.Fprintln(os.Stderr, "NOT RUN: the client library for Java:", err)
	} else if err != nil {
		return "", false, err
	}
	if s.python, err = pythonCommand(); err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: the client library for Python:", err)
	}
	if s.node, err = nodeCommand(); err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: the client library for Node.js:", err)
	}
	if p, err := newPod(); err != nil {
		fmt.Fprintln(os.Stderr, "NOT RUN: kills by the OOM killer:", err)
	} else if s.canStarve = true; p.close() != nil {
		return "", false, err
	}
	log, err := os.Create(file)
	if err != nil {
		return "", false, err
	}
	defer log.Close()
	s.log, s.notes = &lockedWriter{to: log}, &lockedWriter{to: os.Stderr}
	return s.run(ctx)
}
