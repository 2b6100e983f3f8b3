package prefetch

import "time"

const (
	// defaultMaxKeys is the number of keys of one owner: each costs a goroutine, and often a
	// connection.
	defaultMaxKeys = 64
	// defaultFirstWait is how long an owner waits for the first answer of a key.
	defaultFirstWait = 2 * time.Second
	// firstRestart and lastRestart are the pauses before restarting a Follow that panicked or
	// returned, doubled each time.
	firstRestart = time.Second
	lastRestart  = time.Minute
	// sweepsPerIdle is the number of sweeps for idle keys within Options.Idle.
	sweepsPerIdle = 24

	// The defaults of PollOptions.
	defaultRefresh            = 5 * time.Minute
	defaultFirstRetry         = time.Second
	defaultLastRetry          = time.Minute
	defaultMaxFetches         = 64
	defaultMaxFetchesPerOwner = 2
)
