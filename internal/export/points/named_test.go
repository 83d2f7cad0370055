package points

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Named returns the dimensions with their budgets.
func TestDimensions_Budgets(t *testing.T) {
	d, err := ParseDimensions("all, tenant.id=200,feature")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for name, budget := range d.Named {
		got[name] = budget
	}
	if len(got) != 2 || got["tenant.id"] != 200 || got["feature"] != 0 || !d.has("tenant.id") ||
		!d.has("http.route") {
		t.Errorf("%v", got)
	}
	for _, text := range []string{
		"tenant.id=", "tenant.id=many", "tenant.id=0", "tenant.id=-1", "=3",
		"none=3",
	} {
		if _, err := ParseDimensions(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// An origin attribute is a dimension only if it is included by name. An attribute of the span takes
// precedence.
func TestDimensions_OriginAttribute(t *testing.T) {
	origin := &span.Origin{Env: "prod", Version: "2", Host: "h", ContainerID: "c", RuntimeID: "r"}
	key := &span.Key{
		Service: "shop", Operation: "web", Resource: "GET /",
		PeerTags: []string{"host.name:mine"},
	}
	of := func(text string) map[string]string {
		dimensions, err := ParseDimensions(text)
		if err != nil {
			t.Fatal(err)
		}
		list := attributes{format: labels{}}
		(&spanmetrics{dimensions: dimensions}).writeKey(&list, origin, key)
		got := map[string]string{}
		for name, value := range Labels(string(list.bytes)) {
			got[name] = value
		}
		return got
	}
	named := of("deployment.environment.name,service.version,service.instance.id,container.id,host.name")
	for name, want := range map[string]string{
		"deployment_environment_name": "prod", "service_version": "2", "service_instance_id": "r",
		"container_id": "c", "host_name": "mine",
	} {
		if named[name] != want {
			t.Errorf("%s is %q, want %q", name, named[name], want)
		}
		if _, is := of("all")[name]; is && name != "host_name" {
			t.Errorf("%s is among all", name)
		}
	}
}
