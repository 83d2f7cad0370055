package deploy

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFleetDocument checks that docs/scaling.md shows the configurations of `make test-fleet` verbatim.
func TestFleetDocument(t *testing.T) {
	document := string(readFile(t, "../../docs/scaling.md"))
	for _, name := range []string{"loadbalancer.yaml", "gateway.yaml", "prometheus.yaml"} {
		if config := string(readFile(t, filepath.Join("../fleet/config", name))); !strings.Contains(document,
			"```yaml\n"+config+"```\n") {
			t.Errorf("docs/scaling.md shows another %s than test/fleet/config has", name)
		}
	}
}
