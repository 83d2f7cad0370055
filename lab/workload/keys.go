package workload

import (
	"fmt"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	services   = 4
	operations = 16
	resources  = 64
)

// someKeys returns n keys, each with another resource.
func someKeys(n int) []span.Key {
	keys := make([]span.Key, n)
	for i := range keys {
		keys[i] = newKey(i%services, i%operations, i)
	}
	return keys
}

// poolKeys returns all combinations of the labels.
func poolKeys() []span.Key {
	keys := make([]span.Key, 0, services*operations*resources)
	for service := range services {
		for operation := range operations {
			for resource := range resources {
				keys = append(keys, newKey(service, operation, resource))
			}
		}
	}
	return keys
}

// newKey returns the key with the given numbers. The resource determines whether it is a server
// (two in four), client or internal span.
func newKey(service, operation, resource int) span.Key {
	return namedKey(service, operation, resource, strconv.Itoa(resource))
}

// namedKey is like newKey, with a name instead of the resource's number.
func namedKey(service, operation, resource int, name string) span.Key {
	k := span.Key{
		Service:   fmt.Sprintf("shop-%d", service),
		Operation: fmt.Sprintf("shop.operation.%d", operation),
	}
	switch resource / operations % 4 {
	case 0, 1:
		k.Resource = fmt.Sprintf("GET /api/v1/orders/%s/items", name)
		k.Type, k.Kind, k.TraceRoot = "web", "server", span.TraceRootTrue
		k.HTTPStatus, k.HTTPMethod, k.HTTPEndpoint = 200, "GET", fmt.Sprintf("/api/v1/orders/%s/items", name)
	case 2:
		k.Resource = fmt.Sprintf("SELECT * FROM orders_%s WHERE id = ?", name)
		k.Type, k.Kind, k.TraceRoot = "sql", "client", span.TraceRootFalse
		k.PeerTags = []string{"db.name:orders", "peer.hostname:db-1.shop.internal", "peer.service:postgres"}
	default:
		k.Resource = fmt.Sprintf("OrderService.price%s", name)
		k.Kind, k.TraceRoot = "internal", span.TraceRootFalse
	}
	return k
}
