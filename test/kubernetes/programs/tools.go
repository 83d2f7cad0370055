//go:build tools

// Package programs pins the Kubernetes version for test/kubernetes: the API server, and the controllers
// that create the pods of Deployments and similar objects.
package programs

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
