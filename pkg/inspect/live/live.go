// Package live reads a cluster as one person: Landwaiter's resources, the Secrets and the
// like that they name, and the images of pods and workloads. It writes nothing, except for
// access reviews that ask what Landwaiter's account may read, and uses only the person's
// permissions. Objects that the person cannot read are [resource.Unreadable].
package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Person reads a cluster with one person's permissions. It is safe for concurrent use.
type Person struct {
	client  client.Client
	reports reportPages
	schemas resource.Schemas
}

// New returns the cluster of config with the permissions of its user. Objects that schemas
// refuse deny.
func New(config *rest.Config, schemas resource.Schemas) (*Person, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register types: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	config.WarningHandler = rest.NoWarnings{}
	by, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	made, err := client.New(config, client.Options{HTTPClient: by, Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	reports, err := newReportPages(config, by, made.RESTMapper())
	if err != nil {
		return nil, fmt.Errorf("connect to the Kubernetes API: %w", err)
	}
	return &Person{client: made, reports: reports, schemas: schemas}, nil
}

// Client returns the person's client, for reads that this package has no method for.
func (p *Person) Client() client.Reader { return p.client }

// Decider decides about images by the objects of a [State].
type Decider interface {
	Verify(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result
	// Unproven decides by rules and exceptions alone, as if the image had no evidence.
	Unproven(ctx context.Context, namespace verify.Namespace, ref image.Reference) verify.Result
}

// Judging returns a decider, as far as the person can read the rules.
func (s State) Judging(by Decider) Judge {
	return func(ctx context.Context, use Use, ref image.Reference) verify.Result {
		if use.Untagged {
			return s.known(by.Unproven(ctx, use.Namespace, ref))
		}
		return s.known(by.Verify(ctx, use.Namespace, ref))
	}
}

// WithoutBreakGlass removes break-glass from s if it is unknown whether the server accepts it;
// why is the reason. Where it would be in force now, a denial says so.
func (s *State) WithoutBreakGlass(why string, now time.Time) {
	s.unsure = map[verify.Namespace]string{}
	s.Objects.Namespaces = slices.Clone(s.Objects.Namespaces)
	for i := range s.Objects.Namespaces {
		n := &s.Objects.Namespaces[i]
		if breakGlassOf(n, Limit{Why: why}, now).Opens() {
			s.unsure[verify.Namespace(n.Name)] = why
		}
		n.Annotations = maps.Clone(n.Annotations)
		for _, key := range resolve.BreakGlassAnnotations() {
			delete(n.Annotations, key)
		}
	}
}

// known adds to a result what the person cannot know: an exception might lift a denial. Break-glass is an
// annotation of the Namespace, and counts if the server accepts it.
func (s State) known(result verify.Result) verify.Result {
	if result.Verdict.Outcome() != policy.Denied {
		return result
	}
	if unknown, ok := s.delegated(result); ok {
		return unknown
	}
	result.Verdict = s.outweighed(result)
	switch {
	case s.unsure[result.Namespace] != "":
		result.Verdict.Reason = "denied, unless Landwaiter runs with --break-glass, which you cannot read: " + result.Verdict.Reason
	case slices.ContainsFunc(s.Objects.Unreadable, func(u resource.Unreadable) bool { return lifts(u.Source, result.Namespace) }):
		result.Verdict.Reason = "denied, unless an exception that you cannot read applies: " + result.Verdict.Reason
	}
	return result
}

// lifts reports whether objects of this source can lift a denial in a namespace.
func lifts(source policy.ObjectRef, namespace verify.Namespace) bool {
	switch {
	case namespace == verify.Cluster:
		return strings.HasPrefix(source.Kind, "ClusterException")
	case source.Kind == "Namespace":
		return source.Name == string(namespace)
	}
	return strings.HasPrefix(source.Kind, "ClusterException") || strings.HasPrefix(source.Kind, "Exception")
}

// ClusterRoles of the chart, with their names for a release named landwaiter. ReaderRole reads a
// namespace's rules and what runs there, but no Secrets; admins of the namespace have all of
// these permissions, so they may bind it. ClusterReaderRole reads the cluster's rules that name
// no team, and TenantReaderRole Tenants and the other rules. ReportReaderRole reads reports, as
// the roles view, edit and admin do.
const (
	ReaderRole        = "landwaiter-reader"
	ClusterReaderRole = "landwaiter-cluster-reader"
	TenantReaderRole  = "landwaiter-tenant-reader"
	ReportReaderRole  = "landwaiter-report-reader"
)

// Right is a missing permission of the person.
type Right struct {
	Verb      string
	Resource  schema.GroupResource
	Namespace string // "" for resources of the cluster, and for those of all namespaces
	Name      string // "" for all
}

// String says that the permission is missing, and how to get it.
func (r Right) String() string {
	object, where := r.Resource.String(), ""
	if r.Name != "" {
		object += "/" + r.Name
	}
	if r.Namespace != "" {
		where = " in namespace " + r.Namespace
	}
	return fmt.Sprintf("you cannot %s %s%s; %s", r.Verb, object, where, r.Remedy())
}

// Remedy says who can grant the permission, and how.
func (r Right) Remedy() string {
	switch r.Resource.Resource {
	case "secrets", "configmaps", "serviceaccounts":
		return fmt.Sprintf("landwaiter status shows the last verdict without it; an admin of the namespace grants it for this one: kubectl "+
			"create role NAME -n %s --verb=get --resource=%s --resource-name=%s, and a RoleBinding", r.Namespace, r.Resource, r.Name)
	}
	if r.Resource.Resource == tenantsPlural && r.Name != "" {
		return "ask a cluster admin to run landwaiter tenant add " + r.Name + ", which lets a team read its own Tenant"
	}
	if r.namesTeams() {
		return "only people who may know every team can, with ClusterRole " + TenantReaderRole
	}
	role := ReaderRole
	if r.Resource.Group == v1beta1.ReportGroup {
		role = ReportReaderRole
	} else if r.Resource.Group == v1beta1.GroupVersion.Group &&
		slices.ContainsFunc(v1beta1.Kinds(), func(k v1beta1.Kind) bool { return k.Plural == r.Resource.Resource && !k.Namespaced }) {
		role = ClusterReaderRole
	}
	if role == ReaderRole && r.within() != "" {
		return "ask an admin of the namespace to bind ClusterRole " + ReaderRole + " there"
	}
	if role == ReaderRole && r.Name == "" {
		return "name a namespace of yours with --namespace; those who may read all teams' rules get ClusterRole " + role + " from a cluster admin"
	}
	return "ask a cluster admin to bind ClusterRole " + role
}

// within returns the namespace in which a RoleBinding grants the permission, "" if none does. The binding also lets
// people get the Namespace itself.
func (r Right) within() string {
	if r.Resource.Group == "" && r.Resource.Resource == "namespaces" {
		return r.Name
	}
	return r.Namespace
}

// namesTeams reports whether the permission shows other teams or their namespaces. No team needs it.
func (r Right) namesTeams() bool {
	return r.Resource.Group == v1beta1.GroupVersion.Group && r.Name == "" &&
		slices.Contains([]string{tenantsPlural, "clusterexceptions", "clusterquotas"}, r.Resource.Resource)
}

// MissingError is the error of a read without which there is no answer.
type MissingError struct{ Right Right }

// Error says which permission is missing, and how to get it.
func (e MissingError) Error() string { return e.Right.String() }
