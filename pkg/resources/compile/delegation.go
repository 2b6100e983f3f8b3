package compile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// delegation says which namespaces may write Exceptions.
type delegation struct {
	images              *verify.Excepted
	Namespaces, Tenants []string
	most                time.Duration
}

// Covers reports whether a delegation is for a namespace of a Tenant, which may be "".
func (d *delegation) Covers(namespace verify.Namespace, tenant string) bool {
	return slices.Contains(d.Namespaces, string(namespace)) || tenant != "" && slices.Contains(d.Tenants, tenant)
}

// delegate fills in what a ClusterException delegates.
func (x *Exception) delegate(spec v1beta1.ExceptionSpec, limits resource.ExceptionLimits) error {
	d := &delegation{Namespaces: spec.Delegate.Namespaces, Tenants: spec.Delegate.Tenants, most: limits.Longest()}
	switch {
	case spec.OverrideMandatory:
		return errors.New("spec.overrideMandatory is for images: nobody can delegate what mandatory policies deny; remove it")
	case len(spec.Namespaces) > 0:
		return errors.New("spec.namespaces is for images; name the namespaces of a delegation in spec.delegate")
	case len(d.Namespaces) == 0 && len(d.Tenants) == 0:
		return errors.New("spec.delegate.namespaces and spec.delegate.tenants are empty, so the delegation is for nobody")
	}
	if err := areNamespaces("spec.delegate.namespaces", d.Namespaces); err != nil {
		return err
	}
	if text := spec.Delegate.MaxDuration; text != "" {
		most, err := text.Parse()
		if err != nil || most <= 0 {
			return fmt.Errorf("spec.delegate.maxDuration is %.40q, it must be a duration of more than 0, such as 168h", text)
		}
		d.most = min(d.most, most)
	}
	var err error
	d.images, _, err = excepted("spec.delegate.images", spec.Delegate.Images)
	x.Delegates = d
	return err
}

// GrantsOf returns what delegations grant. What depends on the exception is left to the Engine,
// so that all of a namespace share the list.
func GrantsOf(delegations []*Exception) *verify.Grants {
	grants := make(verify.Grants, len(delegations))
	for i, by := range delegations {
		grants[i] = verify.Grant{Within: by.Delegates.images, Until: by.Until, Most: by.Delegates.most}
	}
	return &grants
}

// FitsAny reports whether one of the delegations lets x last as long as it does.
func (x *Exception) FitsAny(delegations []*Exception) bool {
	return slices.ContainsFunc(delegations, func(by *Exception) bool { return x.Fits(by.Delegates) })
}

// Fits reports whether d lets x last as long as it does.
func (x *Exception) Fits(d *delegation) bool { return !x.Until.After(x.Created.Add(d.most)) }

// DelegatedBy returns those delegations that let x count in its namespace. It fails if there
// is none.
func (x *Exception) DelegatedBy(delegations []*Exception, namespace verify.Namespace) (found []*Exception, err error) {
	err = resource.Reasoned(policy.ReasonNotDelegated, fmt.Errorf("no ClusterException delegates exceptions to namespace %s; ask a cluster admin for one", namespace))
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
				err = resource.Reasoned(policy.ReasonNotDelegated, fmt.Errorf("%s delegates none of spec.images to namespace %s; ask a cluster admin to add them there", by.Source, namespace))
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

// apart reports whether d delegates none of the images of x. It takes as many steps as there
// are, and says no once there are none left.
func (x *Exception) apart(d *delegation, steps *int) bool {
	// A delegated digest may be named by a pod, so only patterns can be compared here.
	if len(x.exact) == 0 || len(d.images.Pinned) > 0 {
		return false
	}
	cost := CostOf(d.images.Patterns)
	return !slices.ContainsFunc(x.exact, func(ref image.Reference) bool {
		*steps -= cost
		return *steps < 0 || d.images.Has(ref)
	})
}
