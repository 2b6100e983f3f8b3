package verify

import (
	"context"
	"fmt"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// open answers for an image that is not in memory, if break-glass allows it whatever its
// policies say. In an outage the registry would take every caller's whole time, and requests
// that wait keep others out. It never blocks. False says that Verify has to be asked.
func (e *Engine) open(config *Config, asked image.Reference) (Result, bool) {
	glass := config.BreakGlass
	if !glass.counts(e.now()) {
		return Result{}, false
	}
	result := Result{Namespace: config.Namespace, Reference: asked, Digest: asked.Digest,
		Verdict: policy.NotDecided(policy.ObjectRef{}, fmt.Sprintf("%s was not verified yet", asked))}
	if config.enough(glass) {
		e.verifyLater(config, asked)
		return glass.allow(result), true
	}
	mandatory, known := e.remembered(config.Mandatory, asked)
	if !known {
		// It takes no turn: the mandatory policies are the platform's, and so is break-glass. If turns are
		// taken, Verify would ask the registry first.
		mandatory, known = config.Mandatory.follows(asked)
	}
	if !known || mandatory.Verdict.Outcome() != policy.Allowed {
		return Result{}, false // an exception may still lift the mandatory policy, which only Verify knows
	}
	e.verifyLater(config, asked)
	return glass.within(result, mandatory), true
}

// verifyLater verifies an image in the background at low priority, so that the next answer
// about it is that of its policies. It does nothing if enough images are verified so already.
func (e *Engine) verifyLater(config *Config, ref image.Reference) {
	select {
	case e.later <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-e.later }()
		defer func() { _ = recover() }() // it must not end the process; without break-glass the caller logs it
		ctx, cancel := context.WithTimeout(context.Background(), e.options.WorkTimeout)
		defer cancel()
		e.verify(ctx, config, ref, mode{lowPriority: true})
	}()
}
