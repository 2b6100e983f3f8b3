package serving

import "time"

const (
	// maxFileBytes bounds certificate, key and CA files.
	maxFileBytes = 1 << 20
	// defaultFileInterval is how often files are read again: kubelet updates a
	// mounted Secret within a minute or so, which ten seconds hardly add to.
	defaultFileInterval = 10 * time.Second

	// authoritySettle is how long a certificate of another CA waits before
	// it is served: Gatekeeper has to learn of the changed Provider objects first.
	authoritySettle = 5 * time.Second
	// authorityOverlap is how long Provider objects hold another CA together
	// with that of the leader, so that each replica can change over in its own time.
	authorityOverlap = 10 * time.Minute

	// maxFormer bounds the CAs that Provider objects keep for an overlap.
	maxFormer = 256
	// addPause is how long a replica waits before it adds its CA again to Provider objects: one that leads may drop it.
	addPause = 5 * time.Second
	// maxReplaced bounds the client CAs of a Secret that are trusted for an overlap. Whoever applies Gatekeeper's
	// manifest empties its Secret, and Gatekeeper makes another CA each time.
	maxReplaced = 16
	// overlapAgain is how long after the end of its overlap a CA that somebody has added again begins another one.
	overlapAgain = time.Minute
	// servedPause is how often is looked whether there is a certificate in force.
	servedPause = time.Second
	// othersWait is how long a replica waits for Provider objects that others keep and that lead to it, such as the
	// operator, which reads the CA each minute.
	othersWait = 2 * time.Minute

	// promptly is how many certificates are issued without a pause, pacing the first pause after them, which doubles
	// up to maxPacing, and paceMemory how long after the last one they are forgotten.
	promptly   = 2
	pacing     = 10 * time.Second
	maxPacing  = 5 * time.Minute
	paceMemory = 3 * maxPacing

	// maxNames bounds the names of the certificate.
	maxNames = 100

	// The lifetimes of what Rotation makes. Nobody has to install the CA by
	// hand, so a long life saves changes of CA and costs nothing.
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// renewBefore leaves three months to notice that a renewal fails.
	renewBefore = 90 * 24 * time.Hour
	// backdate allows for clocks that are behind this one.
	backdate = time.Hour

	// firstRetry is the first and maxRetry the longest pause after a rotation that
	// failed. It fails while Gatekeeper is down, whose webhook sees Provider objects;
	// once Gatekeeper is back, pods are denied for the rest of that pause.
	firstRetry = 2 * time.Second
	maxRetry   = 10 * time.Second
	// callTimeout bounds one call to the API server.
	callTimeout = 10 * time.Second
)
