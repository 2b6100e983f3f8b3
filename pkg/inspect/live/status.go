package live

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// Status is what a person may know of how images fare in some namespaces.
type Status struct {
	Namespaces []NamespaceStatus
	// Resources of the cluster that need attention.
	Resources []Attention
	// Missing are namespaces that do not exist.
	Missing []verify.Namespace
	// Rights are the missing permissions: what they would show is not in the Status.
	Rights []Right
	// NoReports says that the cluster has no reports, which are written by serve --reports.
	NoReports bool
}

// NamespaceStatus is the Status of one namespace.
type NamespaceStatus struct {
	Namespace verify.Namespace
	// Counts are the containers that run, by result.
	Counts map[string]int
	// Running are those that do not pass, the worst first.
	Running []Running
	// Denied are the denials of the last seven days, the last one first.
	Denied []Denial
	// Exceptions are those that allow something that runs.
	Exceptions []ExceptionUse
	// Resources of the namespace that need attention.
	Resources []Attention
	// Rules say which level decides about each kind, and mandatory policies hold in any case.
	Rules     []resolve.Choice
	Mandatory []string
	// Hidden are the kinds of which the person may not read all that may apply, so that
	// Rules and mandatory policies are incomplete.
	Hidden []string
	// Ignored is how many reports look like Landwaiter's and were changed by others, and
	// LeftOut how many results its reports had no room for.
	Ignored, LeftOut int
	// Reported says that there is a report.
	Reported bool
	// Unread says that the reports could not be read, and Cut that only some of them were:
	// there are more than Landwaiter ever writes.
	Unread, Cut bool

	// allowed is since when images run that are allowed, by their normalised names.
	allowed map[string]time.Time
}

// Running is an image of a workload that is not simply allowed.
type Running struct {
	Workload, Container, Image, Digest, Result, Policy, Reason, Remediation string
	Since                                                                   time.Time
}

// Denial is an image that was denied.
type Denial struct {
	Image, Policy, Reason, Remediation, TraceID string
	Workloads                                   []string
	Matched, Note                               string
	Count                                       int
	First, Last                                 time.Time
	// Allowed is since when the image is allowed again and runs, zero if that is not known.
	Allowed time.Time
}

// ExceptionUse is an exception that allows an image that runs.
type ExceptionUse struct {
	Exception, Image, Workload string
	Ends                       time.Time
}

// Attention is a resource with a condition that somebody should look at.
type Attention struct {
	Source policy.ObjectRef
	// Condition is Ready, Effective, ExpiresSoon or Provisioned.
	Condition, Reason, Message string
}

// NeedsAttention reports whether anything in the Status is not as it should be.
func (s Status) NeedsAttention() bool {
	bad := func(a []Attention) bool {
		return slices.ContainsFunc(a, func(a Attention) bool { return a.Condition != v1beta1.ConditionEffective })
	}
	denied := func(d Denial) bool { return d.Allowed.IsZero() }
	return bad(s.Resources) || slices.ContainsFunc(s.Namespaces, func(n NamespaceStatus) bool {
		return len(n.Running)+n.Ignored > 0 || slices.ContainsFunc(n.Denied, denied) || bad(n.Resources)
	})
}

// Unknown reports whether something could not be read.
func (s Status) Unknown() bool {
	return len(s.Rights) > 0 || slices.ContainsFunc(s.Namespaces, func(n NamespaceStatus) bool { return n.Cut })
}

// Status returns how images fare in the namespaces of scope, as far as the person may
// read. It reads no Secrets. It fails if the API server does not answer.
func (p *Person) Status(ctx context.Context, scope Scope, now time.Time) (Status, error) {
	r := &reading{client: p.client, schemas: schema.New(), objects: resource.Objects{Person: true}}
	err := r.kinds(ctx, verify.Cluster, false)
	if err != nil {
		return Status{}, err
	}
	if scope.All {
		err = r.everything(ctx)
	} else {
		err = r.namespaces(ctx, scope.Namespaces, Change{})
	}
	if err != nil {
		return Status{}, err
	}
	// Only levels are asked of it, so it needs neither Secrets nor registries.
	snapshot, _ := resolve.New(r.objects, nil, resolve.Nowhere())
	s := Status{Missing: r.missing}
	found := attention(r.objects)
	s.Resources = found[verify.Cluster]
	reports := &reportReader{reading: r, now: now, found: map[verify.Namespace]*NamespaceStatus{}, unread: map[verify.Namespace]bool{},
		looked: map[verify.Namespace]int{}, cut: map[verify.Namespace]bool{}}
	if scope.All {
		if err := reports.read(ctx, verify.Cluster); err != nil {
			return Status{}, err
		}
	}
	for _, name := range r.scope {
		if slices.Contains(r.missing, name) {
			continue
		}
		if !scope.All {
			if err := reports.read(ctx, name); err != nil {
				return Status{}, err
			}
		}
		n := reports.of(name)
		n.Resources, n.Rules, n.Mandatory, n.Hidden = found[name], snapshot.Explain(name), mandatory(r.objects), hiddenFrom(r.objects, name)
		n.finish()
		s.Namespaces = append(s.Namespaces, *n)
	}
	s.NoReports, s.Rights = reports.none, r.rights
	return s, nil
}

// attention returns the resources whose conditions somebody should look at, by namespace.
func attention(o resource.Objects) map[verify.Namespace][]Attention {
	found := map[verify.Namespace][]Attention{}
	for _, object := range o.Resources {
		for _, c := range object.CommonStatus().Conditions {
			wanted := metav1.ConditionTrue
			if c.Type == v1beta1.ConditionExpiresSoon {
				wanted = metav1.ConditionFalse
			}
			if c.Status == wanted {
				continue
			}
			at := verify.Namespace(object.GetNamespace())
			found[at] = append(found[at], Attention{Source: resource.RefOf(object), Condition: c.Type, Reason: shown(c.Reason), Message: shown(c.Message)})
		}
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b Attention) int {
			return cmp.Or(cmp.Compare(urgency(a.Condition), urgency(b.Condition)), cmp.Compare(a.Source.String(), b.Source.String()))
		})
	}
	return found
}

// urgency puts what denies first, and what merely takes no part last.
func urgency(condition string) int {
	return slices.Index([]string{v1beta1.ConditionReady, v1beta1.ConditionProvisioned, v1beta1.ConditionExpiresSoon, v1beta1.ConditionEffective}, condition)
}

// mandatory names the policies that hold in every namespace: also those whose scope is not known.
func mandatory(o resource.Objects) []string {
	names := []string{}
	for _, object := range o.Resources {
		if p, ok := object.(*v1beta1.ClusterVerificationPolicy); ok && (p.Spec.Scope == v1beta1.PolicyScopeMandatory || resource.Missing(p) != nil) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// hiddenFrom names the kinds that decide in a namespace and that the person may not read.
// Without Tenants it is not known whether one has the namespace.
func hiddenFrom(o resource.Objects, namespace verify.Namespace) []string {
	kinds := []string{}
	for _, h := range o.Hidden {
		if h.Source.Namespace == "" || h.Source.Namespace == string(namespace) {
			if !slices.Contains(kinds, h.Source.Kind) {
				kinds = append(kinds, h.Source.Kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// finish sorts what was read, and marks the denials of images that run by now.
func (n *NamespaceStatus) finish() {
	for i := range n.Denied {
		d := &n.Denied[i]
		if since := n.allowed[normalised(d.Image)]; since.After(d.Last) {
			d.Allowed = since
		}
	}
	slices.SortStableFunc(n.Running, func(a, b Running) int {
		return cmp.Or(cmp.Compare(resultOrder(a.Result), resultOrder(b.Result)), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Container, b.Container))
	})
	slices.SortStableFunc(n.Denied, func(a, b Denial) int { return b.Last.Compare(a.Last) })
	slices.SortStableFunc(n.Exceptions, func(a, b ExceptionUse) int { return a.Ends.Compare(b.Ends) })
}

// normalised returns the name of an image as denials have it; pods have it as it was written.
func normalised(name string) string {
	ref, err := image.Parse(name)
	if err != nil {
		return name
	}
	return ref.String()
}

func resultOrder(result string) int {
	return slices.Index([]string{v1beta1.ReportFail, v1beta1.ReportError, v1beta1.ReportWarn}, result)
}

// reportsResource is the resource of reports.
func reportsResource() runtimeschema.GroupResource {
	return runtimeschema.GroupResource{Group: v1beta1.ReportGroup, Resource: v1beta1.ReportResource}
}

// number parses a count that a report states.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// moment parses a time that a report states.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
