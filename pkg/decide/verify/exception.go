package verify

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// Exception allows images for a time although policies deny them. Exceptions do not add up: one
// alone must match the image and be sufficient. Only [ByCluster] and [ByDelegation] make one
// that can be in force.
type Exception struct {
	Source policy.ObjectRef
	// Why is the reason that its author gives.
	Why string
	// Created is the time of its creation. Only Grants use it.
	Created time.Time
	// It is in force from From on and before Until.
	From, Until time.Time
	// Images are the images that it allows. Nil means none; break-glass, which is for every image, has
	// no list.
	Images *ImageList
	// OverrideMandatory says that it also overrides mandatory policies.
	OverrideMandatory bool

	unlimited bool    // it needs no grant
	grants    *Grants // one of them must also have the image
}

// ByCluster returns x as an exception of the cluster's admins: it applies to all of its
// images.
func ByCluster(x Exception) Exception {
	x.unlimited, x.grants = true, nil
	return x
}

// ByDelegation returns x as an exception of a namespace: it applies to the images that grants
// also have, to none if grants is nil.
func ByDelegation(x Exception, grants *Grants) Exception {
	x.unlimited, x.grants = false, grants
	return x
}

// Grants are the images that are delegated to a namespace. All exceptions that need them
// share one list, so the memory of an exception does not depend on their number. An empty
// list grants nothing.
type Grants []Grant

// Grant delegates images before Until, to exceptions that end at most Most after their creation.
type Grant struct {
	Within *ImageList
	Until  time.Time
	Most   time.Duration
}

// ImageList is a list of images.
type ImageList struct {
	Patterns []image.Pattern
	// Pinned are images by their digest. They never match an image with a tag: servers that a
	// tenant may choose resolve the tag.
	Pinned []image.Reference
	// Hash is a hash of the entries of the list.
	Hash string
}

// Has reports whether an image is on the list.
func (x *ImageList) Has(ref image.Reference) bool {
	return matchesAny(x.Patterns, ref) || x.pins(ref, ref.Digest)
}

// pins reports whether the list has the image of ref with a digest.
func (x *ImageList) pins(ref image.Reference, digest digest.Digest) bool {
	return digest != "" && slices.ContainsFunc(x.Pinned, func(p image.Reference) bool {
		return p.Host == ref.Host && p.Repository == ref.Repository && p.Digest == digest
	})
}

// inForce reports whether x is in force at a moment, for any images.
func (x *Exception) inForce(now time.Time) bool {
	if !x.unlimited && (x.grants == nil || !slices.ContainsFunc(*x.grants, func(g Grant) bool { return g.lets(x, now) })) {
		return false
	}
	return !now.Before(x.From) && now.Before(x.Until)
}

// lets reports whether g permits x at a moment.
func (g *Grant) lets(x *Exception, now time.Time) bool {
	return now.Before(g.Until) && !x.Until.After(x.Created.Add(g.Most))
}

// granted returns x, which is in force, limited by the first of its grants that has an image and
// permits it. It ends no later than the grant. granted returns nil if there is no such grant.
func (x *Exception) granted(now time.Time, has func(*ImageList) bool) *Exception {
	if x.unlimited {
		return x
	}
	for _, g := range *x.grants {
		if g.Within == nil || !g.lets(x, now) || !has(g.Within) {
			continue
		}
		if !g.Until.Before(x.Until) {
			return x
		}
		sooner := *x
		sooner.Until = g.Until
		return &sooner
	}
	return nil
}

// matching returns the exceptions in force that match ref, in their order. Each list of
// images is compared once, however many exceptions and grants share it.
func (c *Config) matching(ref image.Reference, now time.Time) []*Exception {
	known := map[*ImageList]bool{}
	has := func(list *ImageList) bool {
		found, compared := known[list]
		if !compared {
			found = list.Has(ref)
			known[list] = found
		}
		return found
	}
	var found []*Exception
	for i := range c.Exceptions {
		if x := &c.Exceptions[i]; x.inForce(now) && x.Images != nil && has(x.Images) {
			if x = x.granted(now, has); x != nil {
				found = append(found, x)
			}
		}
	}
	return found
}

// liftable reports whether an exception or break-glass might allow an image that the verdict
// does not allow.
func (c *Config) liftable(verdict policy.Verdict, now time.Time) bool {
	switch verdict.Outcome() {
	case policy.Denied:
		return c.BreakGlass.counts(now) || slices.ContainsFunc(c.Exceptions, func(x Exception) bool { return x.inForce(now) })
	case policy.Undecided:
		return c.BreakGlass.counts(now)
	case policy.Allowed:
	}
	return false
}

// counts is inForce of an exception that may be nil.
func (x *Exception) counts(now time.Time) bool { return x != nil && x.inForce(now) }

// enough reports whether x alone allows an image, ignoring the mandatory policies of c.
func (c *Config) enough(x *Exception) bool { return x.OverrideMandatory || !c.hasMandatory() }

// lift returns the first exception that allows an image ignoring mandatory policies, and the first
// that allows it if they are considered; both may be nil. Break-glass comes last, so that an
// exception for the image is named instead.
func (c *Config) lift(matching []*Exception, now time.Time) (enough, unlessMandatory *Exception) {
	if c.BreakGlass.counts(now) {
		matching = append(slices.Clip(matching), c.BreakGlass)
	}
	for _, x := range matching {
		if c.enough(x) {
			return x, nil
		}
	}
	if len(matching) > 0 {
		unlessMandatory = matching[0]
	}
	return nil, unlessMandatory
}

// errLate is why exceptions could not be evaluated.
var errLate = errors.New("its exceptions were not looked at in time, try again")

// except overrides a result that does not allow, if an exception or break-glass allows the image.
// It compares the end of each with the clock every time, and its result is never cached. asked is
// the requested image, and tasks are its plan. If how never waits, false means that the caller
// must call Verify.
func (e *Engine) except(ctx context.Context, config *Config, asked image.Reference, result Result, tasks []task, how mode) (Result, bool) {
	if result.Verdict.Outcome() == policy.Allowed {
		return result, true
	}
	now := e.now()
	if !config.liftable(result.Verdict, now) {
		return result, true
	}
	var matching []*Exception
	if result.Verdict.Outcome() == policy.Denied && len(config.Exceptions) > 0 {
		err := e.compute(ctx, config, how, func() { matching = config.matching(asked, now) })
		switch {
		case err == nil:
		case how.recall:
			return Result{}, false
		case !config.BreakGlass.counts(now):
			// A denial would be cached, although an exception may exist.
			result.Verdict = failure(fmt.Errorf("%s: %w", asked, errLate))
			return result, true
		}
	}
	enough, unlessMandatory := config.lift(matching, now)
	switch {
	case enough != nil:
		return enough.allow(result), true
	case unlessMandatory == nil:
		return config.hint(asked, result, now), true
	case how.recall:
		// An undecided result takes no turn: only the platform writes mandatory policies and
		// break-glass. If it took a turn, Verify would ask the registry first.
		mandatory, known := e.recall(config.mandatory(), result.pinned(asked), result.Decided())
		if !known {
			return Result{}, false
		}
		return unlessMandatory.within(result, mandatory), true
	}
	mandatory, _ := e.verify(ctx, config.mandatory(), result.pinned(asked), mandatoryOf(tasks), how)
	return unlessMandatory.within(result, mandatory), true
}

// pinned returns the image that a result is about: the requested one if the verdict needed no
// digest.
func (r Result) pinned(asked image.Reference) image.Reference {
	if r.Digest == "" {
		return asked
	}
	return r.Reference
}

// within returns result as changed by x, if the mandatory policies allow the same image.
func (x *Exception) within(result, mandatory Result) Result {
	if result.Digest == "" {
		result.Reference, result.Digest = mandatory.Reference, mandatory.Digest
	}
	result.Stages = append(slices.Clip(result.Stages), mandatory.Stages...)
	result.Overloaded = result.Overloaded || mandatory.Overloaded
	result.Cached = result.Cached && mandatory.Cached
	switch mandatory.Verdict.Outcome() {
	case policy.Allowed:
		return x.allow(result)
	case policy.Undecided:
		result.Verdict = mandatory.Verdict
		return result
	case policy.Denied:
	}
	if result.Verdict.Policy != mandatory.Verdict.Policy || result.Verdict.Outcome() != policy.Denied {
		result.Findings = append(slices.Clip(result.Findings), mandatory.Findings...)
		result.Verdict = mandatory.Verdict // x lifts what the others deny
	}
	result.Verdict = x.Outweighed(result.Verdict)
	return result
}

// Outweighed returns the denial of a mandatory policy with what x, which is for the image, lacks to override it. It
// reads only the Source of x.
func (x *Exception) Outweighed(denied policy.Verdict) policy.Verdict {
	lacks, fix := x.shortfall()
	denied.Reason += "; " + lacks
	return denied.Advised(fix)
}

// shortfall says what x lacks to override a mandatory policy's denial, and what to do about it. Long reasons are cut,
// so the advice also names it, early.
func (x *Exception) shortfall() (lacks, fix string) {
	const covers = " is for this image, but does not override mandatory policies: it needs "
	still := x.describe() + " covers the image" + policy.Outweighed
	switch {
	case x.Source.Kind == kindNamespace:
		const needs = "the annotation landwaiter.dev/break-glass-override-mandatory"
		return x.describe() + " does not override mandatory policies: it needs " + needs,
			"break-glass is open" + policy.Outweighed + needs + ": ask a cluster admin to set it"
	case x.Source.Namespace != "":
		const needs = "overrideMandatory, which only a ClusterException can have"
		return x.describe() + covers + needs, still + needs + ": ask a cluster admin for one"
	}
	const needs = "overrideMandatory"
	return x.describe() + covers + needs, still + needs + ": ask a cluster admin to set it"
}

// allow returns result as allowed by x.
func (x *Exception) allow(result Result) Result {
	was := result.Verdict
	until := x.Until.UTC().Format(time.RFC3339)
	result.Verdict = policy.AllowedByException(was,
		fmt.Sprintf("%s allows it until %s (%s) although: %s", x.describe(), until, x.Why, was.Reason),
		fmt.Sprintf("%s allows it until %s (%s); after that: %s", x.describe(), until, x.Why, was.Text()))
	result.Exception, result.ExceptionEnds = x.Source, x.Until
	return result
}

// describe names x in a sentence. Break-glass is not an object of its own.
func (x *Exception) describe() string {
	if x.Source.Kind == kindNamespace {
		return "break-glass of " + x.Source.String()
	}
	return x.Source.String()
}

// kindNamespace is the kind of the source of break-glass.
const kindNamespace = "Namespace"

// hint tells the author of a pod with a tag that an exception covers the digest of the tag.
func (c *Config) hint(asked image.Reference, result Result, now time.Time) Result {
	if asked.Digest != "" || result.Digest == "" {
		return result
	}
	named := asked
	named.Tag, named.Digest = "", result.Digest
	for i := range c.Exceptions {
		x := &c.Exceptions[i]
		has := func(list *ImageList) bool { return list.Has(named) }
		if x.inForce(now) && x.Images != nil && x.Images.pins(asked, result.Digest) && x.granted(now, has) != nil {
			result.Verdict.Reason += fmt.Sprintf("; %s is for its digest alone", x.Source)
			result.Verdict = result.Verdict.Advised(fmt.Sprintf("name the image by its digest: %s@%s", asked.Name(), result.Digest))
			return result
		}
	}
	return result
}

// Revision identifies everything that answers about images depend on: the generation of
// config, and its exceptions and break-glass that are in force now. Another revision may give
// other answers, even if Generation is the same and cached verdicts hold. It is only
// meaningful to this Engine.
func (e *Engine) Revision(config *Config) string {
	if len(config.Exceptions) == 0 && config.BreakGlass == nil {
		return config.Generation
	}
	var hash maphash.Hash
	hash.SetSeed(e.seed)
	now, sums := e.now(), map[*Grants]uint64{}
	add := func(x *Exception) {
		for _, part := range []string{x.Source.Kind, x.Source.Namespace, x.Source.Name, x.Why, x.Images.hash()} {
			_, _ = hash.WriteString(part) // it never fails
			_ = hash.WriteByte(0)
		}
		if _, known := sums[x.grants]; !known {
			sums[x.grants] = x.grants.sum(e.seed, now)
		}
		maphash.WriteComparable(&hash, sums[x.grants])
		maphash.WriteComparable(&hash, [3]int64{x.Created.UnixNano(), x.From.UnixNano(), x.Until.UnixNano()})
		maphash.WriteComparable(&hash, [2]bool{x.OverrideMandatory, x.unlimited})
	}
	for i := range config.Exceptions {
		if x := &config.Exceptions[i]; x.inForce(now) {
			add(x)
		}
	}
	if config.BreakGlass.counts(now) {
		add(config.BreakGlass)
	}
	return config.Generation + " " + strconv.FormatUint(hash.Sum64(), 16)
}

// sum hashes the grants that have not ended. g may be nil.
func (g *Grants) sum(seed maphash.Seed, now time.Time) uint64 {
	if g == nil {
		return 0
	}
	var hash maphash.Hash
	hash.SetSeed(seed)
	for _, grant := range *g {
		if now.Before(grant.Until) {
			_, _ = hash.WriteString(grant.Within.hash()) // it never fails
			_ = hash.WriteByte(0)
			maphash.WriteComparable(&hash, [2]int64{grant.Until.UnixNano(), int64(grant.Most)})
		}
	}
	return hash.Sum64()
}

// hash is the Hash of a list, which may be nil.
func (x *ImageList) hash() string {
	if x == nil {
		return ""
	}
	return x.Hash
}
