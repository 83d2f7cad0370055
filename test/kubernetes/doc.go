// Package kubernetes tests the Kubernetes manifests of deploy/ with a real API server. kube-apiserver,
// etcd and the controllers that create the pods of Deployments and similar objects are built from their
// Go modules into bin/kubernetes and run on loopback. There are no nodes, so no container runs: the
// tests check which pods the API server admits.
package kubernetes
