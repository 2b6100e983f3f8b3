package main

import "math"

// shape is a cluster and how it is used.
type shape struct {
	nodes, podsPerNode float64
}

// shapes are the columns of the table: typical clusters, and a large one with as many pods as the
// kubelet permits by default.
func shapes() []shape { return []shape{{10, 30}, {100, 30}, {1000, 30}, {1000, 110}} }

// needs is what one cluster needs. Rates are a second, memory is in MiB.
type needs struct {
	pods, teams, namespaces, pairs, images float64

	wave, failure, audit  float64 // admissions in a deploy wave and in a failure; pods that audit asks for
	replicas              float64
	processors            float64 // of all replicas, at the peak
	memory, watched       float64 // of each replica; watched is the part of watches
	cache, limit          float64 // cache.bytes and memory limit of each replica, as they should be
	redisMemory           float64
	redisPerSecond        float64 // MiB that a new replica reads at most
	registrySteady        float64 // requests, verdicts expire
	registryWave          float64 // new images
	registryChange        float64 // rules change within the life of lists
	registryCold          float64 // all replicas and Redis are empty
	registryAlone         float64 // all replicas are empty, and there is no Redis
	coldMinutes           float64 // until a registry with a limit has answered all that
	gatekeeper, auditTime float64 // processors at the failure; seconds of one audit
	loads                 []load
}

// load is how much of a limit is used; the largest breaks first.
type load struct {
	name string
	used float64
}

// breaksFirst returns the limit that is used most.
func (n needs) breaksFirst() load {
	var first load
	for _, each := range n.loads {
		if each.used > first.used {
			first = each
		}
	}
	return first
}

const (
	kib        = 1.0 / 1024 // in MiB
	milli      = 1.0 / 1000
	atLeastTwo = 2 // so that one can fail
)

// estimate works out what a cluster needs. It adds up costs of one thing that were measured, and
// knows nothing about queues: above two thirds of a limit, waiting times grow.
func estimate(s shape, in inputs) needs {
	n := needs{pods: s.nodes * s.podsPerNode, teams: math.Ceil(s.nodes * in.teamsPerNode)}
	n.namespaces = n.teams * in.namespacesPerTeam
	n.pairs = n.pods * in.imagesPerPod / in.podsPerWorkload
	n.images = n.pairs / in.pairsPerImage
	n.wave = n.pods * in.waveShare / in.waveSeconds
	n.failure = n.pods * in.failureShare / in.failureSeconds
	n.audit = n.pods / in.auditSeconds
	n.requests(in)
	n.compute(in)
	n.remember(in)
	n.judge(in)
	return n
}

// requests works out what the registry is asked.
func (n *needs) requests(in inputs) {
	n.registrySteady = n.pairs / in.passTTL * in.requestsPerImage
	n.registryWave = n.pairs * in.waveShare / in.waveSeconds * in.requestsPerImage
	n.registryChange = 0 // evidence is kept, and so are lists that are younger than a verdict may be
}

// compute works out processors and replicas. At the peak, a zone fails while audit runs and,
// because rules have just changed, every pair is verified within one audit.
func (n *needs) compute(in inputs) {
	known := (n.failure + n.audit) * in.warmMicroseconds * milli * milli
	again := n.pairs / in.auditSeconds * in.verifyMilliseconds * milli
	n.processors = known + again
	n.replicas = math.Max(atLeastTwo, math.Ceil(n.processors/in.replicaProcessors/in.busy)+1)
	n.registryCold = n.pairs / in.auditSeconds * in.requestsPerImage
	n.registryAlone = n.registryCold * n.replicas
	n.coldMinutes = n.pairs * in.requestsPerImage / in.registryLimit / 60
	n.gatekeeper = n.failure * in.gatekeeperMilliseconds * milli
	n.auditTime = n.pods * in.auditMilliseconds * milli
}

// remember works out memory. Garbage is collected late, so a process uses a multiple.
func (n *needs) remember(in inputs) {
	n.watched = n.pods*in.podKiB*kib + n.namespaces*in.namespaceKiB*kib + n.teams*in.teamKiB*kib
	held := func(cache float64) float64 {
		verdicts, evidence := math.Min(n.pairs*in.verdictKiB*kib, cache), math.Min(n.pairs*in.evidenceKiB*kib, cache/2)
		return (in.programMiB + n.watched + verdicts + evidence) * in.garbage
	}
	n.cache = math.Max(in.cacheMiB, roundUp(n.pairs*in.verdictKiB*kib, 64))
	n.memory = held(in.cacheMiB)
	n.limit = math.Max(in.limitMiB, roundUp(held(n.cache), 256))
	// Verdicts by the rules before a change stay until they expire.
	n.redisMemory = n.pairs * (2*in.verdictKiB + in.evidenceKiB) * kib
	n.redisPerSecond = n.pairs / in.auditSeconds * (in.verdictKiB + in.evidenceKiB) * kib
}

func roundUp(x, step float64) float64 { return math.Ceil(x/step) * step }

// judge compares the needs with limits, before an admin changes settings.
func (n *needs) judge(in inputs) {
	n.loads = []load{
		{"Gatekeeper's audit: it takes longer than its interval", n.auditTime / in.auditSeconds},
		{"Gatekeeper's CPU when a zone fails", n.gatekeeper / in.gatekeeperProcessors},
		{"memory for verdicts (`cache.bytes`)", n.pairs * in.verdictKiB * kib / in.cacheMiB},
		{"memory limit of a replica", n.memory / in.limitMiB},
		{"the registry, if everything is cold", n.coldMinutes / in.patienceMinutes},
	}
}
