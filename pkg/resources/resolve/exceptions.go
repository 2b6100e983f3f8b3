package resolve

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// undelegated returns a problem for each of the namespace's own exceptions that is not
// delegated to it.
func (s *Snapshot) undelegated(v *View) []resource.Problem {
	if s.delegationsUnread() || len(v.Own.Exceptions) == 0 {
		return nil // a ClusterException that this person cannot read may delegate them: the condition Ready says so
	}
	var problems []resource.Problem
	namespace := v.Own.Objects.Namespace
	by := s.Delegations(namespace, namespace, v.Tenant)
	for _, x := range v.Own.Exceptions {
		if _, err := x.DelegatedBy(by, namespace); err != nil {
			problems = append(problems, resource.Problem{Source: x.Source, Reason: resource.ReasonOf(err), Message: compile.Cut(err.Error())})
		}
	}
	return problems
}

// delegationsUnread reports whether a person cannot read the ClusterExceptions, which delegate.
func (s *Snapshot) delegationsUnread() bool {
	_, unreadable := s.cluster.Objects.unreadable[v1beta1.KindException]
	return unreadable
}

// Delegations returns the delegations of a namespace's exceptions to another namespace of the
// same Tenant, or to itself. A delegation must cover both.
func (s *Snapshot) Delegations(from, in verify.Namespace, tenant string) []*compile.Exception {
	var found []*compile.Exception
	for _, x := range s.cluster.Exceptions {
		d := x.Delegates
		if d == nil || !d.Covers(from, tenant) || !d.Covers(in, tenant) {
			continue
		}
		found = append(found, x)
	}
	return found
}

// exceptions compiles the exceptions of l. A broken exception allows nothing and has no other
// effect: its failure denies nothing.
func (outside Outside) exceptions(l *Level) {
	limit, steps, weight := maxExceptions, maxExceptionSteps, maxExceptionWeight
	if l.Objects.Namespace == verify.Cluster {
		limit, steps, weight = maxClusterExceptions, maxClusterExceptionSteps, maxClusterExceptionWeight
	}
	tooLarge, past := l.tooLarge(resource.Exceptions), l.refusedExceptions()
	for i, e := range EntriesOf[v1beta1.ExceptionSpec](l.Objects) {
		x, err := compile.NewException(e, outside.Exceptions)
		switch {
		case tooLarge != nil: // some of them are not even read
			err = resource.Reasoned(resource.ReasonOf(tooLarge), fmt.Errorf("it is not in force: %w", tooLarge))
		case err == nil:
			err = past
		}
		if err == nil {
			steps -= x.Cost()
			weight -= weightOf(e.Spec)
			if i >= limit || steps < 0 || weight < 0 {
				err = resource.Reasoned(policy.ReasonLimitExceeded,
					fmt.Errorf("it is not in force: %s too many exceptions or images in them, and those that are earlier by name come first; delete some",
						map[bool]string{true: "the cluster has", false: "the namespace has"}[l.Objects.Namespace == verify.Cluster]))
			}
		}
		if err != nil {
			l.problem(e.Source, err)
			continue
		}
		l.Exceptions = append(l.Exceptions, x)
	}
}

// addExceptions gives v the exceptions that count in it: the cluster's, then the delegated
// ones of its Tenant's home namespace and its own. It returns the problems of its own.
func (s *Snapshot) addExceptions(v *View) []resource.Problem {
	namespace := v.Own.Objects.Namespace
	if namespace == verify.Cluster {
		return nil // requests without a namespace have none: their pods are unknown
	}
	problems := s.undelegated(v)
	refused := func(x *compile.Exception) bool {
		return slices.ContainsFunc(problems, func(p resource.Problem) bool { return p.Source == x.Source })
	}
	var used []policy.ObjectRef
	for _, x := range s.cluster.Exceptions {
		if x.Delegates == nil && (x.Everywhere || slices.Contains(x.Namespaces, string(namespace))) {
			v.config.Exceptions = append(v.config.Exceptions, verify.ByCluster(x.Counting()))
			used = append(used, x.Source)
		}
	}
	if len(used) > 0 {
		v.choices = append(v.choices,
			v.choice(v.last(), v1beta1.KindClusterException, used, "images that an exception lists are allowed until it expires"))
	}
	for i, l := range v.nearer {
		if v.Broken != nil || len(l.Exceptions) == 0 {
			continue // if a namespace is broken, it is unknown whose exceptions count
		}
		by := s.Delegations(l.Objects.Namespace, namespace, v.Tenant)
		grants := compile.GrantsOf(by)
		var used []policy.ObjectRef
		for _, x := range l.Exceptions {
			if slices.ContainsFunc(by, func(by *compile.Exception) bool { return x.Fits(by.Delegates) }) && !refused(x) {
				v.config.Exceptions = append(v.config.Exceptions, verify.ByDelegation(x.Counting(), grants))
				used = append(used, x.Source)
			}
		}
		why := "images that an exception lists are allowed until it expires, if a ClusterException delegates them"
		if len(used) == 0 && s.delegationsUnread() {
			used = compile.MapSlice(l.Exceptions, func(x *compile.Exception) policy.ObjectRef { return x.Source })
			why += ", which you cannot read"
		}
		if len(used) > 0 {
			v.choices = append(v.choices, v.choice(i, v1beta1.KindException, used, why))
		}
	}
	return problems
}
