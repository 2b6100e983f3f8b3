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
	namespaces, tenants []string
	most                time.Duration
}

// covers reports whether a delegation is for a namespace of a Tenant, which may be "".
func (d *delegation) covers(namespace verify.Namespace, tenant string) bool {
	return slices.Contains(d.namespaces, string(namespace)) || tenant != "" && slices.Contains(d.tenants, tenant)
}

// delegate fills in what a ClusterException delegates.
func (x *exception) delegate(spec v1beta1.ExceptionSpec, limits ExceptionLimits) error {
	d := &delegation{namespaces: spec.Delegate.Namespaces, tenants: spec.Delegate.Tenants, most: limits.max()}
	switch {
	case spec.OverrideMandatory:
		return errors.New("spec.overrideMandatory is for images: nobody can delegate what mandatory policies deny; remove it")
	case len(spec.Namespaces) > 0:
		return errors.New("spec.namespaces is for images; name the namespaces of a delegation in spec.delegate")
	case len(d.namespaces) == 0 && len(d.tenants) == 0:
		return errors.New("spec.delegate.namespaces and spec.delegate.tenants are empty, so the delegation is for nobody")
	}
	if err := areNamespaces("spec.delegate.namespaces", d.namespaces); err != nil {
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
	x.delegates = d
	return err
}

// grantsOf returns what delegations grant. What depends on the exception is left to the Engine,
// so that all of a namespace share the list.
func grantsOf(delegations []*exception) *verify.Grants {
	grants := make(verify.Grants, len(delegations))
	for i, by := range delegations {
		grants[i] = verify.Grant{Within: by.delegates.images, Until: by.until, Most: by.delegates.most}
	}
	return &grants
}

// fitsAny reports whether one of the delegations lets x last as long as it does.
func (x *exception) fitsAny(delegations []*exception) bool {
	return slices.ContainsFunc(delegations, func(by *exception) bool { return x.fits(by.delegates) })
}

// fits reports whether d lets x last as long as it does.
func (x *exception) fits(d *delegation) bool { return !x.until.After(x.created.Add(d.most)) }

// delegatedBy returns those delegations that let x count in its namespace. It fails if there
// is none.
func (x *exception) delegatedBy(delegations []*exception, namespace verify.Namespace) (found []*exception, err error) {
	err = resource.Reasoned(policy.ReasonNotDelegated, fmt.Errorf("no ClusterException delegates exceptions to namespace %s; ask a cluster admin for one", namespace))
	steps := maxDelegationSteps
	for _, by := range delegations {
		if !x.fits(by.delegates) {
			if len(found) == 0 {
				err = x.lasts(by.delegates.most, by.source.String()+" lets an exception")
			}
			continue
		}
		if x.apart(by.delegates, &steps) {
			if len(found) == 0 && resource.ReasonOf(err) == policy.ReasonNotDelegated {
				err = resource.Reasoned(policy.ReasonNotDelegated, fmt.Errorf("%s delegates none of spec.images to namespace %s; ask a cluster admin to add them there", by.source, namespace))
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
func (x *exception) apart(d *delegation, steps *int) bool {
	// A delegated digest may be named by a pod, so only patterns can be compared here.
	if len(x.exact) == 0 || len(d.images.Pinned) > 0 {
		return false
	}
	cost := costOf(d.images.Patterns)
	return !slices.ContainsFunc(x.exact, func(ref image.Reference) bool {
		*steps -= cost
		return *steps < 0 || d.images.Has(ref)
	})
}
