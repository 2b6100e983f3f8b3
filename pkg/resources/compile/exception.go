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

// Exception is a compiled Exception or ClusterException that is sound.
type Exception struct {
	Source            policy.ObjectRef
	Created           time.Time
	Until             time.Time
	why               string
	images            *verify.Excepted
	exact             []image.Reference // what images has, if none of them is a wildcard
	Everywhere        bool
	Namespaces        []string
	OverrideMandatory bool
	Delegates         *delegation // set instead of images
}

// Cost bounds the steps to compare an image with x.
func (x *Exception) Cost() int {
	cost := 0
	for _, list := range []*verify.Excepted{x.images, x.delegated()} {
		if list != nil {
			cost += CostOf(list.Patterns) + len(list.Pinned)
		}
	}
	return cost
}

func (x *Exception) delegated() *verify.Excepted {
	if x.Delegates == nil {
		return nil
	}
	return x.Delegates.images
}

// NewException compiles an Exception or a ClusterException. With an error it allows nothing.
func NewException(e Entry[v1beta1.ExceptionSpec], limits resource.ExceptionLimits) (*Exception, error) {
	x := &Exception{Source: e.Source, Created: e.Created, OverrideMandatory: e.Spec.OverrideMandatory}
	spec := e.Spec
	switch {
	case e.Err() != nil:
		return nil, e.Err()
	case spec.Until == "":
		return nil, errors.New("spec.until is missing: an exception has to end; write a time such as 2026-12-31T18:00:00Z")
	case strings.TrimSpace(spec.Reason) == "":
		return nil, errors.New("spec.reason is empty; say why the exception is needed")
	case policy.OneLine(spec.Reason) != spec.Reason:
		return nil, errors.New("spec.reason must be one line of printable characters")
	case policy.OneLine(spec.Ticket) != spec.Ticket:
		return nil, errors.New("spec.ticket must be one line of printable characters")
	case e.Source.Namespace != "" && (spec.Delegate != nil || spec.OverrideMandatory || len(spec.Namespaces) > 0):
		return nil, errors.New("only a ClusterException can have spec.delegate, spec.overrideMandatory and spec.namespaces; remove them")
	}
	if err := exactlyOne("spec", member{"images", len(spec.Images) > 0}, member{"delegate", spec.Delegate != nil}); err != nil {
		return nil, err
	}
	x.why = why(spec)
	if spec.Delegate != nil {
		late := x.ends(spec.Until, limits.LongestDelegation(), "--max-delegation lets a delegation")
		return x, errors.Join(late, x.delegate(spec, limits))
	}
	late := x.ends(spec.Until, limits.Longest(), "--max-exception lets an exception")
	var wrong, nowhere error
	x.images, x.exact, wrong = excepted("spec.images", spec.Images)
	if e.Source.Namespace == "" {
		nowhere = x.places(spec.Namespaces)
	}
	return x, errors.Join(late, wrong, nowhere)
}

// ends sets when x ends, at most so long after its creation; by is who lets it last.
func (x *Exception) ends(until string, most time.Duration, by string) (err error) {
	if x.Until, err = time.Parse(time.RFC3339, until); err != nil {
		return fmt.Errorf("spec.until is %.40q, it must be a time such as 2026-12-31T18:00:00Z", until)
	}
	return x.lasts(most, by)
}

// lasts returns an error if x ends later than most after its creation. by is who lets it last.
func (x *Exception) lasts(most time.Duration, by string) error {
	if x.Created.IsZero() {
		return errors.New("metadata.creationTimestamp is missing, so it is unknown whether spec.until is too late; apply it to a cluster, or write the time of its creation into the file")
	}
	if last := x.Created.Add(most); x.Until.After(last) {
		return resource.Reasoned(policy.ReasonTooLong, fmt.Errorf("spec.until is %s, and %s of %s last until %s (%s): write that or an earlier time, or create it again when it is needed",
			x.Until.UTC().Format(time.RFC3339), by, x.Created.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339), most))
	}
	return nil
}

// places fills in the namespaces of a ClusterException.
func (x *Exception) places(namespaces []string) error {
	switch {
	case len(namespaces) == 0:
		return errors.New(`spec.namespaces is empty; name the namespaces, or write "*" for every one`)
	case slices.Contains(namespaces, v1beta1.EveryNamespace):
		if len(namespaces) > 1 {
			return errors.New(`spec.namespaces has "*" and others; "*" is every namespace, so it must be the only entry`)
		}
		x.Everywhere = true
		return nil
	}
	x.Namespaces = namespaces
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
	if len(list) == 0 || len(list) > MaxExceptionImages {
		return nil, nil, fmt.Errorf("%s has %d entries, it must have 1 to %d", field, len(list), MaxExceptionImages)
	}
	found = &verify.Excepted{Hash: DigestOf(list)}
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

// Counting returns x as the Engine weighs it.
func (x *Exception) Counting() verify.Exception {
	return verify.Exception{Source: x.Source, Created: x.Created, Why: x.why, Until: x.Until, Images: x.images, OverrideMandatory: x.OverrideMandatory}
}
