package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

const slicesPath = "/apis/discovery.k8s.io/v1/namespaces/observability/endpointslices"

// kubernetes is the part of a cluster's API that the load balancer uses: list and watch the addresses
// of a service.
type kubernetes struct {
	server *httptest.Server

	mu        sync.Mutex
	version   int // resource version of the addresses
	addresses []string
	changed   chan struct{} // closed when the version changes
}

func startKubernetes(t *testing.T) *kubernetes {
	t.Helper()
	k := &kubernetes{version: 1, changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+slicesPath, k.answer)
	k.server = httptest.NewServer(mux)
	t.Cleanup(func() { k.server.CloseClientConnections(); k.server.Close() })
	return k
}

// config writes the kubeconfig file for a program.
func (k *kubernetes) config(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: "+
		"{server: %q}}],\n"+
		"contexts: [{name: c, context: {cluster: c, user: c}}], users: [{name: c, user: {}}]}\n",
		k.server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// endpoints sets the service's addresses.
func (k *kubernetes) endpoints(addresses ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version++
	k.addresses = addresses
	close(k.changed)
	k.changed = make(chan struct{})
}

// object is a JSON object of the API.
type object = map[string]any

// now returns the service's addresses, their version, and a channel that is closed when they change.
func (k *kubernetes) now() (slice object, version int, changed <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	endpoints := []object{}
	for _, address := range k.addresses {
		endpoints = append(endpoints, object{
			"addresses":  []string{address},
			"conditions": object{"ready": true},
		})
	}
	return object{
		"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4",
		"endpoints": endpoints,
		"metadata": object{
			"name": "gateway-1", "namespace": "observability", "resourceVersion": strconv.Itoa(k.version),
			"labels": object{"kubernetes.io/service-name": "gateway"},
		},
	}, k.version, k.changed
}

func (k *kubernetes) answer(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	if asked.Get("watch") != "" {
		k.watch(w, r, asked.Get("sendInitialEvents") == "true", asked.Get("resourceVersion"))
		return
	}
	slice, version, _ := k.now()
	_ = json.NewEncoder(w).Encode(object{ // the client may have disconnected
		"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1",
		"metadata": object{"resourceVersion": strconv.Itoa(version)}, "items": []object{slice},
	})
}

// watch writes an event for the current state if initial is set, and one for each change.
func (k *kubernetes) watch(w http.ResponseWriter, r *http.Request, initial bool, since string) {
	to, flusher := json.NewEncoder(w), w.(http.Flusher)
	seen, _ := strconv.Atoi(since) // empty means from the beginning
	slice, version, changed := k.now()
	if initial {
		_ = to.Encode(object{"type": "ADDED", "object": slice})
		_ = to.Encode(object{"type": "BOOKMARK", "object": object{
			"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": object{
				"resourceVersion": strconv.Itoa(version),
				"annotations":     object{"k8s.io/initial-events-end": "true"},
			},
		}})
		seen = version
	}
	for {
		if version > seen {
			_ = to.Encode(object{"type": "MODIFIED", "object": slice})
			seen = version
		}
		flusher.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
		slice, version, changed = k.now()
	}
}
