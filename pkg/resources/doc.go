// Package resources has no code of its own. Its packages turn what people write into what applies in
// each namespace.
//
//   - resource: the objects as read, problems that their owners should correct, and where others decide what is trusted.
//   - schema: the CRDs, as an API server applies them.
//   - configdir: resources in files.
//   - watch: the Kubernetes API in bounded memory, and single Secrets and ConfigMaps by their names.
//   - workload: images of pods, and pods of workloads.
//   - constraint: what Gatekeeper's constraints do, and where.
//   - compile: one resource into its compiled part.
//   - resolve: what applies in each namespace: levels, Tenants, limits, and the Snapshot of all.
//   - conditions: what statuses say about a Snapshot.
//   - lint: what is wrong with files, before a cluster has them.
//   - service: everything between a reference and its verdict, wired once.
//
// It is the lowest wing that knows Kubernetes and the types of landwaiter.dev.
package resources
