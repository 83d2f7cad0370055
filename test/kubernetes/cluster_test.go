package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// cluster is an API server with its dependencies. The client has administrator rights.
type cluster struct {
	*kubernetes.Clientset
	objects *dynamic.DynamicClient
	config  *rest.Config
	dir     string
	running []*exec.Cmd
}

const token = "administrator"

// programs is the directory of the built programs.
const programs = "../../bin/kubernetes"

// start starts a cluster that runs until the end of the test.
func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: t.TempDir()}
	t.Cleanup(c.stop)
	key := filepath.Join(c.dir, "key.pem")
	if err := writeKey(key); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(c.dir, "tokens")
	if err := os.WriteFile(tokens, []byte(token+`,admin,1,"system:masters"`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, peer, port := freeURL(t), freeURL(t), freePort(t)
	c.run(t, "etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--listen-client-urls="+store,
		"--advertise-client-urls="+store, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer, "--unsafe-no-fsync", "--log-level=error")
	c.run(t, "kube-apiserver", "--etcd-servers="+store, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--cert-dir="+filepath.Join(c.dir, "certificates"), "--service-cluster-ip-range=10.0.0.0/24",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--authorization-mode=RBAC", "--token-auth-file="+tokens,
		"--endpoint-reconciler-type=none", "--allow-privileged")
	c.config = &rest.Config{
		Host:            "https://127.0.0.1:" + port,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS:             1000, Burst: 1000,
	}
	var err error
	if c.Clientset, err = kubernetes.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	if c.objects, err = dynamic.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server is ready", func() error {
		return c.RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(fmt.Sprintf(kubeconfigText, c.config.Host, token)),
		0o600); err != nil {
		t.Fatal(err)
	}
	c.run(t, "kube-controller-manager", "--kubeconfig="+kubeconfig, "--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port="+freePort(t), "--service-account-private-key-file="+key, "--controllers="+controllers)
	return c
}

// controllers lists the controllers that create pods and their prerequisites.
const controllers = "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller," +
	"job-controller,cronjob-controller,serviceaccount-controller,namespace-controller"

const kubeconfigText = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: "%s"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`

func writeKey(name string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(name, pem.EncodeToMemory(&block), 0o600)
}

// run starts a program that logs into the cluster's directory.
func (c *cluster) run(t *testing.T, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: make kubernetes-programs builds it", err)
	}
	c.running = append(c.running, cmd)
	t.Cleanup(func() {
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the end of the log of %s: %s", name, text[max(0, len(text)-2000):])
		}
	})
}

// stop ends all programs, etcd last.
func (c *cluster) stop() {
	for i := len(c.running) - 1; i >= 0; i-- {
		_ = c.running[i].Process.Kill()
		_ = c.running[i].Wait()
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func freeURL(t *testing.T) string { return "http://127.0.0.1:" + freePort(t) }

// eventually waits up to five minutes until try succeeds.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not so after five minutes: %s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
