package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// peer is a module of another project that a target measures next to ours, and the folder whose go.mod
// determines its version.
type peer struct{ folder, module string }

const (
	agentModule    = "github.com/DataDog/datadog-agent/pkg/trace"
	contribModules = "github.com/open-telemetry/opentelemetry-collector-contrib/"
)

var (
	agent           = peer{"lab/peers", agentModule}
	spanMetrics     = peer{"lab/peers", contribModules + "connector/spanmetricsconnector"}
	signalToMetrics = peer{"lab/peers", contribModules + "connector/signaltometricsconnector"}

	peersOf = map[string][]peer{
		"bench-peers":  {agent, spanMetrics},
		"bench-floods": {agent},
		"bench-otlp":   {spanMetrics, signalToMetrics},
		"bench-flush":  {agent, spanMetrics},
		"bench-apm":    {{"test/agent", agentModule}},
		"judge":        {agent, spanMetrics},
	}
)

// maxPeerAge is the age of a version after which a peer has probably changed.
const maxPeerAge = 90 * 24 * time.Hour

// tellOldPeers prints the peers in a document's tables whose versions were released more than maxPeerAge
// before now, or at an unknown time. It does not fail for them, because a newer version may not exist.
func tellOldPeers(file string, now time.Time) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	targets, err := targetsOf(string(text))
	if err != nil {
		return err
	}
	for _, target := range targets {
		for _, p := range peersOf[target] {
			version, at, err := p.released()
			if err != nil {
				fmt.Printf("%s: make %s: %v\n", file, target, err)
			} else if age := now.Sub(at); age > maxPeerAge {
				fmt.Printf("%s: make %s compares with %s %s, which is %.0f days old; update %s/go.mod\n", file,
					target, p.module, version, age.Hours()/24, p.folder)
			}
		}
	}
	return nil
}

// released returns the version of a peer and the time of its release.
func (p peer) released() (version string, at time.Time, err error) {
	command := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Time.Format \"2006-01-02\"}}", p.module)
	command.Dir = p.folder
	output, err := command.Output()
	if err != nil {
		return "", at, fmt.Errorf("find version of %s in %s: %w", p.module, p.folder, err)
	}
	version, date, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	if at, err = time.Parse(time.DateOnly, date); err != nil {
		return "", at, fmt.Errorf("find version of %s in %s: %w", p.module, p.folder, err)
	}
	return version, at, nil
}
