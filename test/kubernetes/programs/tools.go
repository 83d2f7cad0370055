//go:build tools

// Package programs has the versions of Kubernetes that test/kubernetes runs: an API server, and
// what makes pods of Deployments and their like.
package programs

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
