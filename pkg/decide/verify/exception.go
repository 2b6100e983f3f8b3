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

// Exception allows images for a time although policies deny them. No two are ever added
// up: one alone must match the image and be enough. Only [ByCluster] and [ByDelegation] make one
// that is ever in force.
type Exception struct {
	Source policy.ObjectRef
	// Why is what its author says of it.
	Why string
	// Created is when it was made. Only Grants ask for it.
	Created time.Time
	// It is in force from From on and before Until.
	From, Until time.Time
	// Images are those that it is for. Nil is none; break-glass, which is for every image, has no list.
	Images *ImageList
	// OverrideMandatory says that it is enough although a mandatory policy denies.
	OverrideMandatory bool

	unlimited bool    // it needs no grant
	grants    *Grants // one of them must have the image, too
}

// ByCluster returns x as the cluster's admins make it: it is for all of its images.
func ByCluster(x Exception) Exception {
	x.unlimited, x.grants = true, nil
	return x
}

// ByDelegation returns x as a namespace makes it: it is for those of its images that grants have,
// none if they are nil.
func ByDelegation(x Exception, grants *Grants) Exception {
	x.unlimited, x.grants = false, grants
	return x
}

// Grants are what is delegated to a namespace. All exceptions that need them share one list,
// so that an exception takes the same memory however many there are. An empty list grants
// nothing.
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
	// Pinned are images by their digest. They never match an image that is named by a tag:
	// what a tag stands for is known from servers that a tenant may choose.
	Pinned []image.Reference
	// Hash is over what the list was made of: lists with different images have different ones.
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

// inForce reports whether x counts at a moment, for whatever images.
func (x *Exception) inForce(now time.Time) bool {
	if !x.unlimited && (x.grants == nil || !slices.ContainsFunc(*x.grants, func(g Grant) bool { return g.lets(x, now) })) {
		return false
	}
	return !now.Before(x.From) && now.Before(x.Until)
}

// lets reports whether g lets x count at a moment.
func (g *Grant) lets(x *Exception, now time.Time) bool {
	return now.Before(g.Until) && !x.Until.After(x.Created.Add(g.Most))
}

// granted returns x, which is in force, as the first of its grants that has an image lets it count,
// nil if none does: it ends no later than the grant.
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

// liftable reports whether an exception or break-glass might allow what the verdict does not.
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

// enough reports whether x alone allows an image, without a look at the mandatory policies of c.
func (c *Config) enough(x *Exception) bool { return x.OverrideMandatory || !c.hasMandatory() }

// lift returns the exception that allows an image without a look at mandatory policies, or the first
// that does if they allow it; both may be nil. Break-glass comes last, so that an
// exception that was made for the image is named.
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

// errLate is why exceptions could not be looked at.
var errLate = errors.New("its exceptions were not looked at in time, try again")

// except overrides a result that does not allow, if an exception or break-glass allows the image.
// The end of each is compared with the clock every time, and what comes out is never cached. asked
// is the image as it was asked for, and tasks are its plan. If how never waits, false says that
// Verify has to be asked.
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
			// A denial would be kept, although an exception may be there.
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
		// What is undecided takes no turn: the mandatory policies are the platform's, and so is
		// break-glass. If turns are taken, Verify would ask the registry first.
		mandatory, known := e.recall(config.mandatory(), result.pinned(asked), result.Decided())
		if !known {
			return Result{}, false
		}
		return unlessMandatory.within(result, mandatory), true
	}
	mandatory, _ := e.verify(ctx, config.mandatory(), result.pinned(asked), mandatoryOf(tasks), how)
	return unlessMandatory.within(result, mandatory), true
}

// pinned returns the image that a result is about: as it was asked for if the verdict needed
// no digest.
func (r Result) pinned(asked image.Reference) image.Reference {
	if r.Digest == "" {
		return asked
	}
	return r.Reference
}

// within returns result as x makes it, if the mandatory policies allow the same image.
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
	lacks, fix := x.shortfall()
	result.Verdict.Reason += "; " + lacks
	result.Verdict = result.Verdict.Advised(fix)
	return result
}

// shortfall says what x lacks to lift what a mandatory policy denies, and what to do about it. A long reason is cut, so
// the advice names what is lacking too, early.
func (x *Exception) shortfall() (lacks, fix string) {
	const covers, still = " is for this image, but does not override mandatory policies: ", "an exception covers the image, but "
	switch {
	case x.Source.Kind == kindNamespace:
		const needs = "it needs the annotation landwaiter.dev/break-glass-override-mandatory"
		return x.describe() + " does not override mandatory policies: " + needs, "break-glass is open, but " + needs + ": ask a cluster admin to set it"
	case x.Source.Namespace != "":
		const needs = "it needs overrideMandatory, which only a ClusterException can have"
		return x.describe() + covers + needs, still + needs + ": ask a cluster admin for one"
	}
	const needs = "it needs overrideMandatory"
	return x.describe() + covers + needs, still + needs + ": ask a cluster admin to set it in " + x.describe()
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

// describe names x in a sentence. Break-glass is no object of its own.
func (x *Exception) describe() string {
	if x.Source.Kind == kindNamespace {
		return "break-glass of " + x.Source.String()
	}
	return x.Source.String()
}

// kindNamespace is the kind of the source of break-glass.
const kindNamespace = "Namespace"

// hint tells the author of a pod with a tag that an exception is for the digest of the tag.
func (c *Config) hint(asked image.Reference, result Result, now time.Time) Result {
	if asked.Digest != "" || result.Digest == "" {
		return result
	}
	for i := range c.Exceptions {
		x := &c.Exceptions[i]
		if x.inForce(now) && x.Images != nil && x.Images.pins(asked, result.Digest) {
			result.Verdict.Reason += fmt.Sprintf("; %s is for its digest alone", x.Source)
			result.Verdict = result.Verdict.Advised(fmt.Sprintf("name the image by its digest: %s@%s", asked.Name(), result.Digest))
			return result
		}
	}
	return result
}

// Revision names all that answers about images follow from: the generation of config, and its
// exceptions and break-glass that are in force now. Another one may give other answers, also
// where Generation is the same and cached verdicts hold. It is only known to this Engine.
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

// hash is the Hash of a list that may be nil.
func (x *ImageList) hash() string {
	if x == nil {
		return ""
	}
	return x.Hash
}
