package main

import "flag"

// inputs are the costs of one thing each, and how a cluster is used.
type inputs struct {
	// Measured: docs/design/performance.md and docs/operate/sizing.md.
	warmMicroseconds       float64
	verifyMilliseconds     float64
	gatekeeperMilliseconds float64
	auditMilliseconds      float64
	requestsPerImage       float64
	verdictKiB             float64
	evidenceKiB            float64
	podKiB                 float64
	namespaceKiB           float64
	teamKiB                float64
	programMiB             float64
	garbage                float64
	// Settings, by default those of the charts.
	replicaProcessors    float64
	limitMiB             float64
	cacheMiB             float64
	passTTL              float64
	auditSeconds         float64
	gatekeeperProcessors float64
	// Assumed.
	busy              float64
	imagesPerPod      float64
	podsPerWorkload   float64
	pairsPerImage     float64
	teamsPerNode      float64
	namespacesPerTeam float64
	waveShare         float64
	waveSeconds       float64
	failureShare      float64
	failureSeconds    float64
	registryLimit     float64
	patienceMinutes   float64
}

// input is one of them with its flag.
type input struct {
	to     *float64
	name   string
	preset float64
	help   string
}

// measured are costs, each with the line of docs/design/performance.md that it comes from.
func (in *inputs) measured() []input {
	return []input{
		// "Admission", 10 clients: 0.43 ms of the provider. Under full load a request takes a tenth of it.
		{&in.warmMicroseconds, "warm-microseconds", 430, "CPU of a request for a cached image"},
		// "Formats": cosign 0.8 to 1.5 ms cold, keyless up to 3.3 ms; the largest.
		{&in.verifyMilliseconds, "verify-milliseconds", 3.3, "CPU of verifying an image"},
		// "Admission", 10 clients: 2.17 ms of Gatekeeper.
		{&in.gatekeeperMilliseconds, "gatekeeper-milliseconds", 2.17, "CPU of Gatekeeper for an admission"},
		// "Admission", 10 clients: 2.17 ms with VerifiedImages less 1.15 ms alone. Audit itself was not measured.
		{&in.auditMilliseconds, "audit-milliseconds", 1.02, "CPU of Gatekeeper's audit for a pod"},
		// "Round trips": one signature takes 3 requests under a tag and 6 as a referrer.
		{&in.requestsPerImage, "requests-per-image", 6, "requests to the registry for an image without kept evidence"},
		// sizing.md, "Memory": a verdict takes about 3 KiB, evidence usually 2 to 10 KiB.
		{&in.verdictKiB, "verdict-kib", 3, "memory of a verdict"},
		{&in.evidenceKiB, "evidence-kib", 6, "memory of the evidence about an image"},
		// sizing.md, "Memory": 1 KiB for a pod with two images; 15 MiB for 1,000 namespaces.
		{&in.podKiB, "pod-kib", 1, "memory of a watched pod"},
		{&in.namespaceKiB, "namespace-kib", 15.36, "memory of a namespace with 4 resources"},
		// "Tenants": 500 Tenants take 20 MiB.
		{&in.teamKiB, "team-kib", 41, "memory of a Tenant"},
		// sizing.md, "Memory": the program takes 60 MiB, and the process up to three times the sum.
		{&in.programMiB, "program-mib", 60, "memory of the program itself"},
		{&in.garbage, "garbage", 3, "memory of the process over that of what it holds"},
	}
}

// settings are what an admin chooses.
func (in *inputs) settings() []input {
	return []input{
		{&in.replicaProcessors, "replica-cpus", 1, "CPUs of a replica"},
		{&in.limitMiB, "limit-mib", 512, "memory limit of a replica"},
		{&in.cacheMiB, "cache-mib", 64, "cache.bytes"},
		{&in.passTTL, "pass-ttl", 3600, "cache.passTTL in seconds"},
		{&in.auditSeconds, "audit-seconds", 60, "Gatekeeper's --audit-interval"},
		// Gatekeeper's chart: 3 replicas with a limit of one CPU.
		{&in.gatekeeperProcessors, "gatekeeper-cpus", 3, "CPUs of all replicas of Gatekeeper's webhook"},
	}
}

// assumed are what differs between clusters.
func (in *inputs) assumed() []input {
	return []input{
		{&in.busy, "busy", 0.66, "share of its CPUs that a replica should use at most"},
		{&in.imagesPerPod, "images-per-pod", 2, "images of a pod"},
		{&in.podsPerWorkload, "pods-per-workload", 4, "pods with the same images in a namespace"},
		{&in.pairsPerImage, "namespaces-per-image", 3, "namespaces that use one image"},
		{&in.teamsPerNode, "teams-per-node", 0.5, "teams for each node"},
		{&in.namespacesPerTeam, "namespaces-per-team", 3, "namespaces of a team"},
		{&in.waveShare, "wave-share", 0.1, "share of all pods that a deploy wave replaces"},
		{&in.waveSeconds, "wave-seconds", 300, "length of a deploy wave"},
		{&in.failureShare, "failure-share", 1.0 / 3, "share of the nodes that fail at once, such as a zone"},
		{&in.failureSeconds, "failure-seconds", 60, "time in which their pods are created again"},
		// "From outside", throttled: the registry takes 200 requests a second.
		{&in.registryLimit, "registry-limit", 200, "requests a second that the registry answers"},
		{&in.patienceMinutes, "patience-minutes", 15, "how long a cold start may take"},
	}
}

// register makes a flag of each input.
func (in *inputs) register(flags *flag.FlagSet) {
	for _, list := range [][]input{in.measured(), in.settings(), in.assumed()} {
		for _, each := range list {
			flags.Float64Var(each.to, each.name, each.preset, each.help)
		}
	}
}

// positive reports whether all inputs are.
func (in *inputs) positive() bool {
	for _, list := range [][]input{in.measured(), in.settings(), in.assumed()} {
		for _, each := range list {
			if !(*each.to > 0) { // NaN is not either
				return false
			}
		}
	}
	return true
}
