// Package kubernetes holds what deploy/ has for Kubernetes against a real API server:
// kube-apiserver, etcd and the controllers that make pods of Deployments and their like, built from
// their Go modules into bin/kubernetes and started on loopback. No node is there, so no container
// runs: what is looked at is what the API server admits.
package kubernetes
