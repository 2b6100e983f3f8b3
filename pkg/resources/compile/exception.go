package compile

import (
	"cmp"
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

// ExceptionLimits are what an admin allows of exceptions, by flags.
type ExceptionLimits struct {
	// Max is how long after its creation an exception may end; zero means
	// [DefaultMaxException].
	Max time.Duration
	// Delegation is how long after its creation a delegation may end; zero means
	// [DefaultMaxDelegation].
	Delegation time.Duration
	// BreakGlass is how long break-glass of a namespace may last; zero means that there is
	// none.
	BreakGlass time.Duration
}

// max returns how long after its creation an exception may end.
func (l ExceptionLimits) max() time.Duration { return cmp.Or(l.Max, DefaultMaxException) }

// exception is a compiled Exception or ClusterException that is sound.
type exception struct {
	source            policy.ObjectRef
	created           time.Time
	until             time.Time
	why               string
	images            *verify.Excepted
	exact             []image.Reference // what images has, if none of them is a wildcard
	everywhere        bool
	namespaces        []string
	overrideMandatory bool
	delegates         *delegation // set instead of images
}

// cost bounds the steps to compare an image with x.
func (x *exception) cost() int {
	cost := 0
	for _, list := range []*verify.Excepted{x.images, x.delegated()} {
		if list != nil {
			cost += costOf(list.Patterns) + len(list.Pinned)
		}
	}
	return cost
}

func (x *exception) delegated() *verify.Excepted {
	if x.delegates == nil {
		return nil
	}
	return x.delegates.images
}

// compileException compiles an Exception or a ClusterException. With an error it allows nothing.
func compileException(e entry[v1beta1.ExceptionSpec], limits ExceptionLimits) (*exception, error) {
	x := &exception{source: e.source, created: e.created, overrideMandatory: e.spec.OverrideMandatory}
	spec := e.spec
	switch {
	case e.err() != nil:
		return nil, e.err()
	case spec.Until == "":
		return nil, errors.New("spec.until is missing: an exception has to end; write a time such as 2026-12-31T18:00:00Z")
	case strings.TrimSpace(spec.Reason) == "":
		return nil, errors.New("spec.reason is empty; say why the exception is needed")
	case policy.OneLine(spec.Reason) != spec.Reason:
		return nil, errors.New("spec.reason must be one line of printable characters")
	case policy.OneLine(spec.Ticket) != spec.Ticket:
		return nil, errors.New("spec.ticket must be one line of printable characters")
	case e.source.Namespace != "" && (spec.Delegate != nil || spec.OverrideMandatory || len(spec.Namespaces) > 0):
		return nil, errors.New("only a ClusterException can have spec.delegate, spec.overrideMandatory and spec.namespaces; remove them")
	}
	if err := exactlyOne("spec", member{"images", len(spec.Images) > 0}, member{"delegate", spec.Delegate != nil}); err != nil {
		return nil, err
	}
	x.why = why(spec)
	if spec.Delegate != nil {
		late := x.ends(spec.Until, cmp.Or(limits.Delegation, DefaultMaxDelegation), "--max-delegation lets a delegation")
		return x, errors.Join(late, x.delegate(spec, limits))
	}
	late := x.ends(spec.Until, limits.max(), "--max-exception lets an exception")
	var wrong, nowhere error
	x.images, x.exact, wrong = excepted("spec.images", spec.Images)
	if e.source.Namespace == "" {
		nowhere = x.places(spec.Namespaces)
	}
	return x, errors.Join(late, wrong, nowhere)
}

// ends sets when x ends, at most so long after its creation; by is who lets it last.
func (x *exception) ends(until string, most time.Duration, by string) (err error) {
	if x.until, err = time.Parse(time.RFC3339, until); err != nil {
		return fmt.Errorf("spec.until is %.40q, it must be a time such as 2026-12-31T18:00:00Z", until)
	}
	return x.lasts(most, by)
}

// lasts returns an error if x ends later than most after its creation. by is who lets it last.
func (x *exception) lasts(most time.Duration, by string) error {
	if x.created.IsZero() {
		return errors.New("metadata.creationTimestamp is missing, so it is unknown whether spec.until is too late; apply it to a cluster, or write the time of its creation into the file")
	}
	if last := x.created.Add(most); x.until.After(last) {
		return resource.Reasoned(policy.ReasonTooLong, fmt.Errorf("spec.until is %s, and %s of %s last until %s (%s): write that or an earlier time, or create it again when it is needed",
			x.until.UTC().Format(time.RFC3339), by, x.created.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339), most))
	}
	return nil
}

// places fills in the namespaces of a ClusterException.
func (x *exception) places(namespaces []string) error {
	switch {
	case len(namespaces) == 0:
		return errors.New(`spec.namespaces is empty; name the namespaces, or write "*" for every one`)
	case slices.Contains(namespaces, v1beta1.EveryNamespace):
		if len(namespaces) > 1 {
			return errors.New(`spec.namespaces has "*" and others; "*" is every namespace, so it must be the only entry`)
		}
		x.everywhere = true
		return nil
	}
	x.namespaces = namespaces
	return areNamespaces("spec.namespaces", namespaces)
}

func areNamespaces(field string, names []string) error {
	for i, name := range names {
		if _, err := verify.ParseNamespace(name); err != nil {
			return fmt.Errorf("%s[%d]: %w", field, i, err)
		}
	}
	return nil
}

// excepted parses the images of an exception: patterns, and references with a digest. exact
// are all of them, if none is a wildcard.
func excepted(field string, list []string) (found *verify.Excepted, exact []image.Reference, err error) {
	if len(list) == 0 || len(list) > maxExceptionImages {
		return nil, nil, fmt.Errorf("%s has %d entries, it must have 1 to %d", field, len(list), maxExceptionImages)
	}
	found = &verify.Excepted{Hash: digestOf(list)}
	wild := false
	var wrong []error
	for i, text := range list {
		if strings.Contains(text, "@") {
			ref, err := image.Parse(text)
			if err == nil && (ref.Tag != "" || ref.Digest == "") {
				err = fmt.Errorf("image %.80q must be host/repository@sha256:… without a tag", text)
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s[%d]: %w", field, i, err))
			}
			found.Pinned, exact = append(found.Pinned, ref), append(exact, ref)
			continue
		}
		pattern, err := image.ParsePattern(text)
		if err != nil && strings.Contains(text[strings.LastIndex(text, "/")+1:], ":") {
			err = fmt.Errorf("image %.80q has a tag; remove it, or name one digest as host/repository@sha256:…", text)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s[%d]: %w", field, i, err))
		}
		found.Patterns = append(found.Patterns, pattern)
		if ref, err := image.Parse(text); err == nil && !strings.Contains(text, "*") {
			exact = append(exact, ref)
		} else {
			wild = true
		}
	}
	if len(wrong) > 0 {
		return nil, nil, errors.Join(wrong...)
	}
	if wild {
		exact = nil
	}
	return found, exact, nil
}

// why returns what an exception says of itself, bounded: from files it may be of any length.
func why(spec v1beta1.ExceptionSpec) string {
	text := policy.Cut(strings.TrimSpace(spec.Reason), maxExceptionReason)
	if spec.Ticket != "" {
		text += ", " + policy.Cut(spec.Ticket, maxExceptionTicket)
	}
	return text
}

// counting returns x as the Engine weighs it.
func (x *exception) counting() verify.Exception {
	return verify.Exception{Source: x.source, Created: x.created, Why: x.why, Until: x.until, Images: x.images, OverrideMandatory: x.overrideMandatory}
}
