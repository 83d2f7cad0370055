package main

import "fmt"

// tool is a program under judgment. Each is in a file tool_*.go of its own, and in the list of tools.
type tool interface {
	// name is the first cell of the tool's rows.
	name() string
	// build names the tool's program, and the Go module in it that determines the version: "" for this repository.
	build() (program, module string)
	// path says how spans reach the tool, and how its output leaves it.
	path() string
	// prepare returns everything that a trial needs to run the tool. The tool does not run yet.
	prepare(bench) (*candidate, error)
}

// tools are in the order of the page.
func tools() []tool {
	return []tool{
		spanstatsd{input: overOTLP},
		spanstatsd{input: overDatadog},
		spanstatsd{input: overSocket},
		collector{isDelta: false},
		collector{isDelta: true},
		traceAgent{},
	}
}

// bench is where a tool runs in a trial.
type bench struct {
	dir      string // working directory, empty at first
	programs string // directory of the built programs
	ledger   *ledger
	limits   limits
}

// candidate is a tool with its sender, its destination and its counters.
type candidate struct {
	command  []string // program and arguments; run again after a restart
	environ  []string
	ready    string // address or path of the socket at which the tool receives spans
	sender   sender
	output   output
	counters counters
}

// ports returns free ports.
func ports(number int) (free []int, err error) {
	for range number {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		free = append(free, port)
	}
	return free, nil
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
