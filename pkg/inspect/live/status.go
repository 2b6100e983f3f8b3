package live

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Status is the state of images in some namespaces, as far as a person may read it.
type Status struct {
	Namespaces []NamespaceStatus
	// Resources of the cluster that need attention.
	Resources []Attention
	// Missing are namespaces that do not exist.
	Missing []verify.Namespace
	// Rights are the missing permissions: the Status lacks what they would show.
	Rights []Right
	// OtherTeams are the kinds of objects that are missing in a namespace's Status because they name other teams: no
	// team needs the permission.
	OtherTeams []string
	// Ends are the expiries of trust, exceptions and break-glass, the next one first.
	Ends []End
	// Stopped is from the [Scope], and At is when the Status was read.
	Stopped, At time.Time
	// Unwatched is from the [Scope].
	Unwatched string
	// NoReports says that the cluster has no reports, which are written by serve --reports.
	NoReports bool
	// SomeExempt says that further namespaces may be exempt from Gatekeeper, because the person may not read its
	// constraints. It is only set if the scope is all namespaces.
	SomeExempt bool
}

// NamespaceStatus is the Status of one namespace. Its times are UTC in RFC 3339, "" if a report
// has none.
type NamespaceStatus struct {
	Namespace verify.Namespace `json:"namespace"`
	// Counts are the numbers of running containers, by result.
	Counts map[string]int `json:"counts"`
	// Running are the containers that do not pass, the worst first.
	Running []Running `json:"running"`
	// Unverified are the containers whose images a rule allows without evidence, by image.
	Unverified []Running `json:"unverified"`
	// Undecided are the registries with undecided images in the last hour, the latest one first.
	Undecided []Undecided `json:"undecided"`
	// Denied are the images of new pods that failed verification in the last seven days, the latest
	// one first. Gatekeeper decides whether that stopped a pod.
	Denied []Denial `json:"denied"`
	// Exceptions are those that allow running images.
	Exceptions []ExceptionUse `json:"exceptions"`
	// Resources of the namespace that need attention.
	Resources []Attention `json:"resources"`
	// Rules name the level that decides about each kind. Mandatory policies always apply.
	Rules     []Choice `json:"rules"`
	Mandatory []string `json:"mandatory"`
	// Contacts are the contacts of the Tenant and of the policies that apply.
	Contacts []Contact `json:"contacts"`
	// Unreadable are the kinds that the person cannot list, so that Rules and Mandatory are
	// incomplete.
	Unreadable []string `json:"unreadable"`
	// Gatekeeper is its action on pods whose images are not allowed: deny, warn, dryrun or "not asked",
	// and "" if the person may not read constraints. Exempt says that the namespace is exempt on purpose,
	// and ExemptImages is the number of entries of exemptImages that are admitted without verification.
	Gatekeeper   string `json:"gatekeeper,omitempty"`
	Exempt       bool   `json:"exempt"`
	ExemptImages int    `json:"exemptImages,omitempty"`
	// BreakGlass opens the namespace, nil if it does not.
	BreakGlass *BreakGlass `json:"breakGlass,omitempty"`
	// Ignored is the number of reports that look like Landwaiter's but were changed by others,
	// and LeftOut the number of results that did not fit into its reports.
	Ignored, LeftOut int `json:"-"`
	// Reported says that there is a report, Unread that the reports could not be read, and Cut
	// that only some of them were read: there are more than Landwaiter ever writes.
	Reported, Unread, Cut bool `json:"-"`
	// Tenant holds the namespace, "" if none does or if that is unknown, and Levels are the possible
	// sources of its rules, the nearest first. All are the running containers, including those that
	// pass.
	Tenant string    `json:"-"`
	Levels []Level   `json:"-"`
	All    []Running `json:"-"`

	// Written is when the reports were last written, zero if they do not say.
	Written time.Time `json:"-"`

	// home says that resources here also decide in other namespaces of the Tenant.
	home bool
	// exempted are the entries of exemptImages.
	exempted []string
	// allowed has, for allowed images by their normalised names, since when they run.
	allowed map[string]string
}

// Choice is a [resolve.Choice] in JSON: the level from which the resources of one kind apply.
type Choice struct {
	Kind    string             `json:"kind"`
	Level   string             `json:"level"`
	Tenant  string             `json:"tenant,omitempty"` // whose home namespace the level is
	Applied []policy.ObjectRef `json:"applied"`
	Why     string             `json:"why"`
	Denies  policy.ObjectRef   `json:"-"` // Why names it
}

// Contact is the contact of a Tenant or a policy.
type Contact struct {
	Of      policy.ObjectRef `json:"of"`
	Contact string           `json:"contact"`
}

// Running is an image of a workload whose result is not a plain pass.
type Running struct {
	Workload    string `json:"workload"`
	Container   string `json:"container"`
	Image       string `json:"image"`
	Digest      string `json:"digest,omitempty"`
	Result      string `json:"result"`
	Policy      string `json:"policy"`
	Reason      string `json:"reason"`
	Remediation string `json:"remediation,omitempty"`
	Command     string `json:"command,omitempty"`
	Contact     string `json:"contact,omitempty"`
	Since       string `json:"since,omitempty"`
	// Looked is when Landwaiter last looked for evidence of an image that fails: the report does not reflect later
	// evidence.
	Looked string `json:"looked,omitempty"`
	// ExemptImage is the entry of a constraint's exemptImages for which Gatekeeper admits the image although it fails.
	ExemptImage string `json:"exemptImage,omitempty"`
	// Signers names those whose signatures or attestations were verified, "" if the report does not.
	Signers string `json:"-"`
	// Exception allows the image although a policy denies it, "" if none does, and ExceptionEnds is
	// until when.
	Exception     string `json:"-"`
	ExceptionEnds string `json:"-"`
}

// Denial is an image of a new pod that failed verification.
type Denial struct {
	Image       string   `json:"image"`
	Count       int      `json:"count"`
	First       string   `json:"first"`
	Last        string   `json:"last"`
	Policy      string   `json:"policy"`
	Reason      string   `json:"reason"`
	Remediation string   `json:"remediation,omitempty"`
	Command     string   `json:"command,omitempty"`
	Contact     string   `json:"contact,omitempty"`
	TraceID     string   `json:"traceID,omitempty"`
	Workloads   []string `json:"workloads"`
	Matched     string   `json:"matched,omitempty"`
	Note        string   `json:"note,omitempty"`
	// Allowed is since when the image is allowed again and runs, "" if unknown.
	Allowed string `json:"allowed,omitempty"`
}

// ExceptionUse is an exception that allows a running image.
type ExceptionUse struct {
	Exception string `json:"exception"`
	Image     string `json:"image"`
	Workload  string `json:"workload"`
	Ends      string `json:"ends,omitempty"`
}

// Attention is a resource with a condition that needs attention.
type Attention struct {
	Source    policy.ObjectRef `json:"source"`
	Condition string           `json:"condition"` // Ready, Effective, ExpiresSoon, NeedsReview or Provisioned
	Reason    string           `json:"reason"`
	Message   string           `json:"message"`
	// Partly says that the resource is effective, but not for all of its images.
	Partly bool `json:"partly,omitempty"`
}

// NeedsAttention reports whether somebody must act: an unused resource is fine, but not an exception that
// allows nothing.
func (a Attention) NeedsAttention() bool {
	if a.Condition == v1beta1.ConditionNeedsReview && resource.ReviewSeverity(a.Source, policy.Reason(a.Reason)) == resource.Note {
		return false
	}
	return a.Reason == string(policy.ReasonMandatoryHolds) || a.Condition != v1beta1.ConditionEffective ||
		a.Reason == string(policy.ReasonDenies) || a.Reason == string(policy.ReasonUnsatisfiable)
}

// NeedsAttention reports whether anything in the Status needs attention.
func (s Status) NeedsAttention() bool {
	return slices.ContainsFunc(s.Resources, Attention.NeedsAttention) || slices.ContainsFunc(s.Namespaces, NamespaceStatus.NeedsAttention)
}

// NeedsAttention reports whether anything in the namespace needs attention. In a namespace that is
// exempt from Gatekeeper, nothing was or will be stopped, so only resources that decide elsewhere
// count.
func (n NamespaceStatus) NeedsAttention() bool {
	denies := slices.ContainsFunc(n.Resources, Attention.NeedsAttention)
	if n.Exempt {
		return n.home && denies
	}
	denied := func(d Denial) bool { return d.Allowed == "" }
	lasts := func(u Undecided) bool { return !u.Over }
	return denies || len(n.Running)+n.Ignored > 0 || slices.ContainsFunc(n.Denied, denied) || slices.ContainsFunc(n.Undecided, lasts) ||
		n.BreakGlass != nil && n.BreakGlass.State != BreakGlassPlanned
}

// Unknown reports whether something could not be read.
func (s Status) Unknown() bool {
	return len(s.Rights) > 0 || slices.Contains(s.OtherTeams, tenantsPlural) || !s.Stopped.IsZero() ||
		slices.ContainsFunc(s.Namespaces, func(n NamespaceStatus) bool { return n.Cut })
}

// Status returns the state of images in the namespaces of scope, as far as the person may
// read it. It reads no Secrets. It fails if the API server does not answer.
func (p *Person) Status(ctx context.Context, scope Scope, now time.Time) (Status, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &reading{client: p.client, schemas: p.schemas, objects: resource.Objects{Person: true}}
	reports := newReportReader(p.reports, now)
	var beside errgroup.Group
	if scope.All {
		beside.Go(func() error { return caught(func() error { return reports.read(ctx, verify.Cluster) }) })
	}
	err := r.rules(ctx, scope)
	if err != nil {
		cancel()
	}
	if failed := beside.Wait(); err == nil {
		err = failed
	}
	if err != nil {
		return Status{}, err
	}
	ruled := newRuled(r.objects)
	found := attention(r.objects, now)
	s := Status{Missing: r.missing, Resources: slices.Concat([]Attention{}, found[verify.Cluster]), Ends: ruled.ends(now, scope.BreakGlass)}
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
		n.Resources = append(n.Resources, found[name]...)
		ruled.describe(n)
		if len(n.Levels) > 2 && !slices.Contains(r.scope, n.Levels[1].Namespace) { // otherwise the home namespace shows them
			n.Resources = append(n.Resources, found[n.Levels[1].Namespace]...)
		}
		if at := slices.IndexFunc(r.objects.Namespaces, func(o corev1.Namespace) bool { return o.Name == string(name) }); at >= 0 {
			of := &r.objects.Namespaces[at]
			if n.BreakGlass = breakGlassOf(of, scope.BreakGlass, now); scope.Action != nil {
				var left []string
				n.Gatekeeper, n.Exempt, left = scope.Action(of.Name, of.Labels)
				n.exemptImages(left, scope.LeftOut)
				s.SomeExempt = s.SomeExempt || scope.All && n.Gatekeeper == "" && !n.Exempt
			}
		}
		n.finish()
		s.Namespaces = append(s.Namespaces, *n)
	}
	for _, right := range reports.rights {
		r.lacks(right)
	}
	if !scope.All {
		for _, right := range r.rights {
			if right.namesTeams() {
				s.OtherTeams = append(s.OtherTeams, right.Resource.Resource)
			}
		}
		r.rights = slices.DeleteFunc(r.rights, Right.namesTeams)
	}
	s.NoReports, s.Rights, s.Stopped, s.Unwatched, s.At = reports.none, r.rights, scope.Stopped, scope.Unwatched, now
	return s, nil
}

// rules reads the resources that decide in the namespaces of scope, without their references.
func (r *reading) rules(ctx context.Context, scope Scope) error {
	if err := r.kinds(ctx, verify.Cluster, false); err != nil {
		return err
	}
	if scope.All {
		return r.everything(ctx)
	}
	return r.namespaces(ctx, scope.Namespaces, Change{})
}

// mandatory names the policies that apply in every namespace, including those of unknown scope.
func mandatory(s *resolve.Snapshot) []string {
	names := []string{}
	for _, p := range s.Cluster().Mandatory {
		names = append(names, p.Source.Name)
	}
	slices.Sort(names)
	return names
}

// unreadableIn names the kinds that may decide in a namespace and that the person cannot list.
func unreadableIn(o resource.Objects, namespace verify.Namespace) []string {
	kinds := []string{}
	for _, u := range o.Unreadable {
		if u.Source.Namespace == "" || u.Source.Namespace == string(namespace) {
			if !slices.Contains(kinds, u.Source.Kind) {
				kinds = append(kinds, u.Source.Kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// finish sorts the data, and marks the denials of images that run now.
func (n *NamespaceStatus) finish() {
	for i := range n.Denied {
		d := &n.Denied[i]
		if since := n.allowed[Normalised(d.Image)]; since > d.Last {
			d.Allowed = since
		}
	}
	slices.SortStableFunc(n.Running, func(a, b Running) int {
		return cmp.Or(cmp.Compare(resultOrder(a.Result), resultOrder(b.Result)), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Container, b.Container))
	})
	slices.SortStableFunc(n.Unverified, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Container, b.Container))
	})
	slices.SortStableFunc(n.Denied, func(a, b Denial) int { return cmp.Compare(b.Last, a.Last) })
	slices.SortStableFunc(n.Undecided, func(a, b Undecided) int { return cmp.Compare(b.Last, a.Last) })
	slices.SortStableFunc(n.Exceptions, func(a, b ExceptionUse) int { return cmp.Compare(a.Ends, b.Ends) })
}

// Normalised returns the name of an image as in denials; pods have it as it was written.
func Normalised(name string) string {
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

// number parses a count in a report.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// moment returns a time in a report in a form that sorts, "" if there is none.
func moment(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
