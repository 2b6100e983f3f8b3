// Package cluster runs a real Kubernetes control plane with OPA Gatekeeper in
// front of it, as plain processes on 127.0.0.1: etcd, kube-apiserver,
// kube-controller-manager and Gatekeeper. There are no nodes: pods are admitted
// or denied, and never run. It ends exactly the processes that it started. It
// does not import "testing", because `make dev` runs it too.
package cluster
