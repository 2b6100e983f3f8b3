package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Exception is a compiled, valid Exception or ClusterException.
type Exception struct {
	Source            policy.ObjectRef
	Created           time.Time
	Until             time.Time
	why               string
	images            *verify.ImageList
	exact             []image.Reference // the entries of images without a wildcard
	wild              []image.Pattern   // the others
	Everywhere        bool
	Namespaces        []string
	OverrideMandatory bool
	Delegates         *delegation // set instead of images
}

// Cost bounds the steps to compare an image with x.
func (x *Exception) Cost() int {
	list := x.images
	if x.Delegates != nil {
		list = x.Delegates.images
	}
	return CostOf(list.Patterns) + len(list.Pinned)
}

// NewException compiles an Exception or a ClusterException. If it returns an error, the
// exception allows nothing.
func NewException(e Entry[v1beta1.ExceptionSpec], limits resource.ExceptionLimits) (*Exception, error) {
	if err := e.Err(); err != nil {
		return nil, err
	}
	spec, cluster := e.Spec, e.Source.Namespace == ""
	x := &Exception{Source: e.Source, Created: e.Created, why: why(spec), OverrideMandatory: cluster && spec.OverrideMandatory}
	if cluster && spec.Delegate != nil {
		late := x.ends(spec.Until, limits.LongestDelegation(), "--max-delegation lets a delegation")
		return x, errors.Join(late, x.delegate(spec, limits))
	}
	late := x.ends(spec.Until, limits.Longest(), "--max-exception lets an exception")
	var wrong error
	x.images, x.exact, x.wild, wrong = exceptionImages("spec.images", spec.Images)
	x.Namespaces, x.Everywhere = spec.Namespaces, slices.Equal(spec.Namespaces, []string{v1beta1.EveryNamespace})
	return x, errors.Join(late, wrong)
}

// ends sets when x ends, no later than most after its creation; by names the limit.
func (x *Exception) ends(until string, most time.Duration, by string) (err error) {
	if x.Until, err = time.Parse(time.RFC3339, until); err != nil {
		return fmt.Errorf("spec.until is %.40q, it must be a time of the form YYYY-MM-DDThh:mm:ssZ", until)
	}
	return x.lasts(most, by)
}

// lasts returns an error if x ends later than most after its creation. by names the limit.
func (x *Exception) lasts(most time.Duration, by string) error {
	if x.Created.IsZero() {
		return errors.New("metadata.creationTimestamp is missing, so it is unknown whether spec.until is too late; apply it to a cluster, or " +
			"write the time of its creation into the file")
	}
	if last := x.Created.Add(most); x.Until.After(last) {
		return resource.Reasoned(policy.ReasonTooLong,
			fmt.Errorf("spec.until is %s, and %s of %s last until %s (%s): write that or an earlier time, or create it again when it is needed",
				x.Until.UTC().Format(time.RFC3339), by, x.Created.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339), most))
	}
	return nil
}

// exceptionImages parses the images of an exception: patterns, and references with a digest. exact lists those without
// a wildcard, and wild the others.
func exceptionImages(field string, list []string) (found *verify.ImageList, exact []image.Reference, wild []image.Pattern, err error) {
	found = &verify.ImageList{Hash: DigestOf(list)}
	var wrong []error
	for i, text := range list {
		pattern, pinned, err := image.ParseSelection(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s[%d]: %w", field, i, err))
			continue
		}
		if pinned.Digest != "" {
			found.Pinned, exact = append(found.Pinned, pinned), append(exact, pinned)
			continue
		}
		found.Patterns = append(found.Patterns, pattern)
		if ref, err := image.Parse(text); err == nil && !strings.Contains(text, "*") {
			exact = append(exact, ref)
		} else {
			wild = append(wild, pattern)
		}
	}
	if len(wrong) > 0 {
		return nil, nil, nil, errors.Join(wrong...)
	}
	return found, exact, wild, nil
}

// why returns the reason that an exception states, bounded: in files it can have any length.
func why(spec v1beta1.ExceptionSpec) string {
	text := policy.Cut(strings.TrimSpace(spec.Reason), maxExceptionReason)
	if spec.Ticket != "" {
		text += ", " + policy.Cut(spec.Ticket, maxExceptionTicket)
	}
	return text
}

// Counting returns x in the form that the Engine evaluates.
func (x *Exception) Counting() verify.Exception {
	return verify.Exception{Source: x.Source, Created: x.Created, Why: x.why, Until: x.Until, Images: x.images,
		OverrideMandatory: x.OverrideMandatory}
}

// delegation defines which namespaces may write Exceptions.
type delegation struct {
	images              *verify.ImageList
	Namespaces, Tenants []string
	most                time.Duration
}

// Covers reports whether a delegation is for a namespace of a Tenant, which may be "".
func (d *delegation) Covers(namespace verify.Namespace, tenant string) bool {
	return slices.Contains(d.Namespaces, string(namespace)) || tenant != "" && slices.Contains(d.Tenants, tenant)
}

// delegate reads the delegation of a ClusterException.
func (x *Exception) delegate(spec v1beta1.ExceptionSpec, limits resource.ExceptionLimits) error {
	d := &delegation{Namespaces: spec.Delegate.Namespaces, Tenants: spec.Delegate.Tenants, most: limits.Longest()}
	if text := spec.Delegate.MaxDuration; text != "" {
		most, err := text.Parse()
		if err != nil {
			return fieldError("spec.delegate.maxDuration", err)
		}
		d.most = min(d.most, most)
	}
	var err error
	d.images, _, _, err = exceptionImages("spec.delegate.images", spec.Delegate.Images)
	x.Delegates = d
	return err
}

// GrantsOf returns the grants of delegations. The Engine checks everything that depends on the
// exception, so that all exceptions of a namespace share the list.
func GrantsOf(delegations []*Exception) *verify.Grants {
	grants := make(verify.Grants, len(delegations))
	for i, by := range delegations {
		grants[i] = verify.Grant{Within: by.Delegates.images, Until: by.Until, Most: by.Delegates.most}
	}
	return &grants
}

// Fits reports whether d permits the duration of x.
func (x *Exception) Fits(d *delegation) bool { return !x.Until.After(x.Created.Add(d.most)) }

// DelegatedBy returns the delegations that permit x in its namespace. It fails if there is
// none.
func (x *Exception) DelegatedBy(delegations []*Exception, namespace verify.Namespace) (found []*Exception, err error) {
	err = resource.Reasoned(policy.ReasonNotDelegated,
		fmt.Errorf("no ClusterException delegates exceptions to namespace %s; ask a cluster admin for one", namespace))
	steps := maxDelegationSteps
	for _, by := range delegations {
		if !x.Fits(by.Delegates) {
			if len(found) == 0 {
				err = x.lasts(by.Delegates.most, by.Source.String()+" lets an exception")
			}
			continue
		}
		if x.apart(by.Delegates, &steps) {
			if len(found) == 0 && resource.ReasonOf(err) == policy.ReasonNotDelegated {
				err = resource.Reasoned(policy.ReasonNotDelegated,
					fmt.Errorf("%s delegates none of spec.images to namespace %s; ask a cluster admin to add them there", by.Source, namespace))
			}
			continue
		}
		found = append(found, by)
	}
	if len(found) > 0 {
		return found, nil
	}
	return nil, err
}

// apart reports whether d delegates none of the images of x. It decrements steps and returns
// false once there are none left.
func (x *Exception) apart(d *delegation, steps *int) bool {
	cost := CostOf(d.images.Patterns) + len(d.images.Pinned)
	exact := func(ref image.Reference) bool {
		*steps -= cost
		// A pod may name a delegated digest.
		pinned := func(p image.Reference) bool {
			return ref.Digest == "" && p.Host == ref.Host && p.Repository == ref.Repository
		}
		return *steps < 0 || d.images.Has(ref) || slices.ContainsFunc(d.images.Pinned, pinned)
	}
	wild := func(p image.Pattern) bool {
		*steps -= cost
		meets := func(q image.Pattern) bool { return !p.Apart(q) }
		return *steps < 0 || slices.ContainsFunc(d.images.Patterns, meets) || slices.ContainsFunc(d.images.Pinned, p.Match)
	}
	return !slices.ContainsFunc(x.exact, exact) && !slices.ContainsFunc(x.wild, wild)
}

// NewBreakGlass compiles break-glass of a namespace, which lasts no longer than most.
func NewBreakGlass(source policy.ObjectRef, annotations map[string]string, most time.Duration) (*verify.Exception, error) {
	if most <= 0 {
		return nil, errors.New("serve runs without --break-glass; ask a cluster admin")
	}
	from, err := moment(annotations, v1beta1.AnnotationBreakGlassFrom)
	if err != nil {
		return nil, err
	}
	until, err := moment(annotations, v1beta1.AnnotationBreakGlassUntil)
	if err != nil {
		return nil, err
	}
	reason := strings.TrimSpace(annotations[v1beta1.AnnotationBreakGlassReason])
	mandatory := annotations[v1beta1.AnnotationBreakGlassOverrideMandatory]
	switch {
	case reason == "":
		return nil, fmt.Errorf("annotation %s is missing; say why", v1beta1.AnnotationBreakGlassReason)
	case mandatory != "" && mandatory != "true" && mandatory != "false":
		return nil, fmt.Errorf("annotation %s is %.40q, it must be true or false", v1beta1.AnnotationBreakGlassOverrideMandatory, mandatory)
	case !from.Before(until):
		return nil, fmt.Errorf("it expires at %s, before it begins at %s", until.UTC().Format(time.RFC3339), from.UTC().Format(time.RFC3339))
	case until.Sub(from) > most:
		return nil,
			resource.Reasoned(policy.ReasonTooLong, fmt.Errorf("it lasts %s, and --break-glass is %s; let it end earlier", until.Sub(from), most))
	}
	made := verify.ByCluster(verify.Exception{Source: source, Why: policy.Cut(reason, maxExceptionReason), From: from, Until: until,
		OverrideMandatory: mandatory == "true"})
	return &made, nil
}

func moment(annotations map[string]string, key string) (time.Time, error) {
	text, ok := annotations[key]
	if !ok {
		return time.Time{}, fmt.Errorf("annotation %s is missing; write a time of the form YYYY-MM-DDThh:mm:ssZ", key)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s is %.40q, it must be a time of the form YYYY-MM-DDThh:mm:ssZ", key, text)
	}
	return at, nil
}
