package serving

import "time"

const (
	// maxFileBytes bounds certificate, key and CA files.
	maxFileBytes = 1 << 20
	// defaultFileInterval is how often files are read: kubelet updates a mounted Secret within
	// about a minute, to which ten seconds add little.
	defaultFileInterval = 10 * time.Second

	// authoritySettle is how long a certificate of another CA waits before it is served:
	// Gatekeeper first has to see the changed Provider objects.
	authoritySettle = 5 * time.Second
	// authorityOverlap is how long Provider objects contain another CA in addition to the
	// leader's, so that each replica can change over at its own time.
	authorityOverlap = 10 * time.Minute

	// maxFormer bounds the CAs that Provider objects keep for an overlap.
	maxFormer = 256
	// addPause is how long a replica waits before it adds its CA again to Provider objects: the leader may remove it.
	addPause = 5 * time.Second
	// maxReplaced bounds the replaced client CAs of a Secret that are trusted for an overlap. Applying
	// Gatekeeper's manifest empties its Secret, and Gatekeeper then creates another CA.
	maxReplaced = 16
	// overlapAgain is how long after its overlap a CA that was added again begins another one.
	overlapAgain = time.Minute
	// servedPause is how often to check for a certificate in force.
	servedPause = time.Second
	// othersWait is how long a replica waits for Provider objects for it that others manage, such as the operator,
	// which reads the CA each minute.
	othersWait = 2 * time.Minute

	// promptly is the number of certificates that are issued without a pause. pacing is the first pause afterwards,
	// which doubles up to maxPacing, and paceMemory how long after the last one they are forgotten.
	promptly   = 2
	pacing     = 10 * time.Second
	maxPacing  = 5 * time.Minute
	paceMemory = 3 * maxPacing

	// maxNames bounds the names of the certificate.
	maxNames = 100

	// The lifetimes of Rotation's certificates. Nobody has to install the CA by hand, so a long
	// life saves changes of CA and costs nothing.
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore leaves three months to notice that a renewal fails.
	renewBefore = 90 * 24 * time.Hour
	// backdate allows for slow clocks.
	backdate = time.Hour

	// firstRetry is the first and maxRetry the longest pause after a failed rotation. It fails
	// while Gatekeeper's webhook, which reviews Provider objects, is down; once it is back, pods
	// are denied for the rest of that pause.
	firstRetry = 2 * time.Second
	maxRetry   = 10 * time.Second
	// callTimeout bounds one call to the API server.
	callTimeout = 10 * time.Second
)
