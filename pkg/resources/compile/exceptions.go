package compile

import (
	"fmt"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// undelegated returns a problem for each of the namespace's own exceptions that is not
// delegated to it.
func (s *Snapshot) undelegated(v *view) []resource.Problem {
	if len(v.own.exceptions) == 0 {
		return nil
	}
	var problems []resource.Problem
	namespace := v.own.objects.namespace
	by := s.delegations(namespace, namespace, v.tenant)
	for _, x := range v.own.exceptions {
		if _, err := x.delegatedBy(by, namespace); err != nil {
			problems = append(problems, resource.Problem{Source: x.source, Reason: resource.ReasonOf(err), Message: cut(err.Error())})
		}
	}
	return problems
}

// delegations returns what delegates exceptions of a namespace to another one of the same
// Tenant or the same one: it must be for both.
func (s *Snapshot) delegations(from, in verify.Namespace, tenant string) []*exception {
	var found []*exception
	for _, x := range s.cluster.exceptions {
		d := x.delegates
		if d == nil || !d.covers(from, tenant) || !d.covers(in, tenant) {
			continue
		}
		found = append(found, x)
	}
	return found
}

// exceptions compiles the exceptions of l. A broken one allows nothing and has no other
// effect: it is not among the resources whose failure denies.
func (c *compiler) exceptions(l *level) {
	limit, steps, weight := maxExceptions, maxExceptionSteps, maxExceptionWeight
	if l.objects.namespace == verify.Cluster {
		limit, steps, weight = maxClusterExceptions, maxClusterExceptionSteps, maxClusterExceptionWeight
	}
	tooMany, past := l.objects.excess(true), l.excess.refusalOfExceptions()
	for i, e := range l.objects.exceptions {
		x, err := compileException(e, c.outside.Exceptions)
		switch {
		case tooMany != nil: // some of them are not even read
			err = resource.Reasoned(resource.ReasonOf(tooMany), fmt.Errorf("it is not in force: %w", tooMany))
		case err == nil, l.excess.past[exceptionSpecsKept]:
			err = past
		}
		if err == nil {
			steps -= x.cost()
			weight -= weightOf(e.spec)
			if i >= limit || steps < 0 || weight < 0 {
				err = resource.Reasoned(policy.ReasonLimitExceeded, fmt.Errorf("it is not in force: %s too many exceptions or images in them, and those that are earlier by name come first; delete some",
					map[bool]string{true: "the cluster has", false: "the namespace has"}[l.objects.namespace == verify.Cluster]))
			}
		}
		if err != nil {
			l.problem(e.source, err)
			continue
		}
		l.exceptions = append(l.exceptions, x)
	}
}

// addExceptions gives v the exceptions that count in it: the cluster's, then those of its
// Tenant's home and its own as far as they are delegated. It returns the problems of its own.
func (s *Snapshot) addExceptions(v *view) []resource.Problem {
	namespace := v.own.objects.namespace
	if namespace == verify.Cluster {
		return nil // requests without a namespace have none: nobody named their pods
	}
	problems := s.undelegated(v)
	refused := func(x *exception) bool {
		return slices.ContainsFunc(problems, func(p resource.Problem) bool { return p.Source == x.source })
	}
	var used []policy.ObjectRef
	for _, x := range s.cluster.exceptions {
		if x.delegates == nil && (x.everywhere || slices.Contains(x.namespaces, string(namespace))) {
			v.config.Exceptions = append(v.config.Exceptions, verify.ByCluster(x.counting()))
			used = append(used, x.source)
		}
	}
	if len(used) > 0 {
		v.choices = append(v.choices, v.choice(v.last(), v1beta1.KindClusterException, used, "each allows its images until it ends"))
	}
	for i, l := range v.chain[:v.last()] {
		if v.broken != nil || len(l.exceptions) == 0 {
			continue // of a namespace that is broken it is not known whose exceptions count
		}
		by := s.delegations(l.objects.namespace, namespace, v.tenant)
		grants := grantsOf(by)
		var used []policy.ObjectRef
		for _, x := range l.exceptions {
			if x.fitsAny(by) && !refused(x) {
				v.config.Exceptions = append(v.config.Exceptions, verify.ByDelegation(x.counting(), grants))
				used = append(used, x.source)
			}
		}
		if len(used) > 0 {
			v.choices = append(v.choices, v.choice(i, v1beta1.KindException, used, "each allows its images, as far as a ClusterException delegates them, until it ends"))
		}
	}
	return problems
}
