package deploy

import (
	"strings"
	"testing"
)

// TestUnit checks the promises of the service unit, and that the unit matches the daemon's defaults.
func TestUnit(t *testing.T) {
	has := map[string]bool{}
	section := ""
	for line := range strings.Lines(string(readFile(t, "../../deploy/systemd/spanstatsd.service"))) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "["):
			section = line
		case section == "[Service]" && line != "" && line[0] != '#':
			has[line] = true
		}
	}
	for _, want := range []string{
		"Type=notify", "WatchdogSec=30", "Restart=on-failure", "ExecStart=/usr/local/bin/spanstatsd run",
		"User=spanstatsd", "Group=spanstatsd", "RuntimeDirectory=spanstatsd", "RuntimeDirectoryPreserve=yes",
		"TimeoutStopSec=15",
		"NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "ProtectHome=yes",
		"PrivateDevices=yes",
		"MemoryDenyWriteExecute=yes", "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
		"SystemCallFilter=~@privileged", "MemoryMax=192M",
	} {
		if !has[want] {
			t.Errorf("the unit does not contain %s", want)
		}
	}
	for _, not := range []string{"PrivateUsers=yes", "ProtectProc=invisible", "DynamicUser=yes"} {
		if has[not] {
			t.Errorf("the unit contains %s, which hides the peer credentials from the daemon", not)
		}
	}
	if unit := string(readFile(t, "../../deploy/systemd/spanstatsd.socket")); !strings.Contains(unit,
		"\nListenStream=/run/spanstatsd/spans.sock\n") ||
		!strings.Contains(unit, "\nSocketUser=spanstatsd\n") {
		t.Error("the socket's unit does not listen where the daemon does by default, for its user")
	}
	if !strings.Contains(daemonHelp(t, "run"), `/var/run/spanstatsd/spans.sock)`) {
		t.Error("the daemon's default socket is not in the unit's directory")
	}
}
