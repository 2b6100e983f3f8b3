// Package resource holds resources between reading and compiling: objects from an API server
// or from files, objects that could not be read, and the problems that their owners should
// fix. It does no I/O.
package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// Objects holds all configuration that verdicts depend on. The order within a slice
// has no meaning.
type Objects struct {
	Namespaces []corev1.Namespace
	Secrets    []corev1.Secret
	ConfigMaps []corev1.ConfigMap
	// ServiceAccounts are the accounts whose pull secrets Stores use.
	ServiceAccounts []corev1.ServiceAccount
	// Resources are objects of the kinds in [v1beta1.Kinds].
	Resources []v1beta1.Object
	// Broken holds objects that exist but could not be read. They deny where they
	// would have applied.
	Broken []Broken
	// Unreadable lists objects that the person who read the others has no permission for, and Person
	// says that a person did, on a machine that may not reach external sources. Both are empty in the
	// cluster and for files.
	Unreadable []Unreadable
	Person     bool
	// ClusterResourceNamespace is the namespace of the Secrets, ConfigMaps and ServiceAccounts
	// that cluster resources reference; empty is [DefaultClusterResourceNamespace].
	ClusterResourceNamespace string
}

// DefaultClusterResourceNamespace is the default namespace of objects that cluster resources
// reference: the default name of Landwaiter's own namespace.
const DefaultClusterResourceNamespace = "landwaiter-system"

// ForCluster returns the namespace of the objects that cluster resources reference.
func (o *Objects) ForCluster() string {
	return cmp.Or(o.ClusterResourceNamespace, DefaultClusterResourceNamespace)
}

// Add adds objects of the kinds above. It returns an error for other kinds.
func (o *Objects) Add(objects ...runtime.Object) error {
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.Namespace:
			o.Namespaces = append(o.Namespaces, *object)
		case *corev1.Secret:
			o.Secrets = append(o.Secrets, *object)
		case *corev1.ConfigMap:
			o.ConfigMaps = append(o.ConfigMaps, *object)
		case *corev1.ServiceAccount:
			o.ServiceAccounts = append(o.ServiceAccounts, *object)
		case v1beta1.Object:
			o.Resources = append(o.Resources, object)
		default:
			return fmt.Errorf("objects of type %T are not read", object)
		}
	}
	return nil
}

// CountResources returns the number of resources of landwaiter.dev, including broken ones.
func (o *Objects) CountResources() int {
	n := len(o.Resources)
	for _, b := range o.Broken {
		if _, ours := v1beta1.KindNamed(b.Source.Kind); ours {
			n++
		}
	}
	return n
}

// InNamespaces returns the names of namespaces that are among the objects, or that contain
// any, sorted.
func (o *Objects) InNamespaces() []string {
	names := map[string]bool{}
	for _, n := range o.Namespaces {
		names[n.Name] = true
	}
	for _, s := range o.Secrets {
		names[s.Namespace] = true
	}
	for _, c := range o.ConfigMaps {
		names[c.Namespace] = true
	}
	for _, a := range o.ServiceAccounts {
		names[a.Namespace] = true
	}
	for _, r := range o.Resources {
		names[r.GetNamespace()] = true
	}
	for _, b := range o.Broken {
		names[b.Source.Namespace] = true
		if b.Source.Kind == "Namespace" {
			names[b.Source.Name] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// RefOf returns the kind, namespace and name of a resource.
func RefOf(object v1beta1.Object) policy.ObjectRef {
	return policy.ObjectRef{Kind: v1beta1.KindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
}

// SpecOf returns a pointer to the spec of a resource, which every kind has.
func SpecOf(object v1beta1.Object) any { return field(object, "Spec").Addr().Interface() }

// Broken is an object whose kind, namespace and name are known, but not its content. Secrets,
// ConfigMaps, ServiceAccounts and Namespaces may be broken too. Reason is the reason of the resulting
// problems; it defaults to [policy.ReasonInvalid].
type Broken struct {
	Source policy.ObjectRef
	Reason policy.Reason
	Err    error
}

// Problem describes something that the owner of a resource should fix.
type Problem struct {
	Source  policy.ObjectRef
	Reason  policy.Reason
	Message string
}

// IsIgnored reports whether the problem is only that Landwaiter does not use the kind of the
// object.
func (p Problem) IsIgnored() bool { return p.Reason == policy.ReasonIgnored }

// NotFetched is in the message of each problem that only exists because the caller does not
// fetch external data: the resource may be right.
const NotFetched = "is not fetched here"

// Reasoned attaches a reason to err, for [ReasonOf].
func Reasoned(reason policy.Reason, err error) error { return reasoned{reason: reason, error: err} }

type reasoned struct {
	reason policy.Reason
	error
}

func (r reasoned) Unwrap() error { return r.error }

// Outside marks err as caused by something outside the resource, with the advice for [policy.OutsideOf]. Its reason
// is [policy.ReasonUnreadable].
func Outside(remedy string, err error) error {
	return outside{error: Reasoned(policy.ReasonUnreadable, err), remedy: remedy}
}

type outside struct {
	error
	remedy string
}

func (o outside) Unwrap() error { return o.error }

// Outside implements the interface of [policy.OutsideOf].
func (o outside) Outside() string { return o.remedy }

// Unread marks err as something that only a person on a machine of their own cannot read. The cluster may have it, so it
// is unknown what the resource does.
func Unread(err error) error { return unread{Reasoned(policy.ReasonUnreadable, err)} }

// IsUnread reports whether an error in the chain of err is one of [Unread].
func IsUnread(err error) bool {
	_, is := errors.AsType[unread](err)
	return is
}

type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

// grantedBy is the beginning of the last part of a message about a missing permission.
const grantedBy = "; grant it with: "

// Ungranted returns err for a missing permission, followed by the command that grants it.
func Ungranted(err error, command string) error { return ungranted{error: err, command: command} }

type ungranted struct {
	error
	command string
}

func (u ungranted) Error() string { return u.error.Error() + grantedBy + u.command }

func (u ungranted) Unwrap() error { return u.error }

// CutGrant splits message into the text and the command that err names at its end. The command
// is "" if err has another cause or message is cut.
func CutGrant(message string, err error) (before, command string) {
	var missing ungranted
	if errors.As(err, &missing) {
		if before, ok := strings.CutSuffix(message, grantedBy+missing.command); ok {
			return before, missing.command
		}
	}
	return message, ""
}

// ReasonOf returns the reason attached to an error in the chain of err, [policy.ReasonInvalid]
// without one.
func ReasonOf(err error) policy.Reason {
	if r, ok := errors.AsType[reasoned](err); ok && r.reason != "" {
		return r.reason
	}
	return policy.ReasonInvalid
}

// Unreadable is an object that a person cannot read or, without a name, a kind that a person cannot
// list in a namespace or in the cluster. The object may exist, and may be broken.
type Unreadable struct {
	Source policy.ObjectRef
	Why    string // the missing permission, in one clause
}

// refusedBecause is the annotation of a resource that this version's schema refuses, with the
// reason. No API server accepts its key, so no stored object has it.
const refusedBecause = v1beta1.Group + "/refused because"

// AndDenies begins the last part of the condition Ready of an unusable policy, which says whose
// images are denied because of it.
const AndDenies = "; Landwaiter denies "

// RefusedBySchema begins the error of a resource that a cluster stored and this version's schema
// refuses.
const RefusedBySchema = "this version's CRD refuses it: "

// Schemas returns why an API server with this version's CRDs refuses a resource, nil if it does
// not.
type Schemas interface {
	Refuses(ctx context.Context, object metav1.Object) error
}

// Refuse replaces an object that the cluster stored, but that this version's schema refuses. The
// result is broken: it has the identity, the status and the size of the object, but no spec, so
// that nothing that the spec names is read. It only keeps the fields that determine whose images it
// denies, so that it denies no others: of a Tenant its spec, of a policy its scope,
// enforcementAction and tags, and of a Store its registries. A ClusterStore also keeps its proxy,
// which no Store of a namespace may bypass.
func Refuse(object v1beta1.Object, why error) v1beta1.Object {
	made, _ := object.DeepCopyObject().(v1beta1.Object)
	annotations := map[string]string{refusedBecause: RefusedBySchema + why.Error(), withheldBytes: strconv.Itoa(Size(object))}
	switch made := made.(type) {
	case *v1beta1.Tenant:
	case *v1beta1.ClusterStore:
		made.Spec = v1beta1.StoreSpec{Registries: made.Spec.Registries, Proxy: made.Spec.Proxy}
	case *v1beta1.Store:
		made.Spec = v1beta1.StoreSpec{Registries: made.Spec.Registries}
	case *v1beta1.ClusterVerificationPolicy:
		made.Spec = reachOf(made.Spec)
	case *v1beta1.VerificationPolicy:
		made.Spec = reachOf(made.Spec)
	default:
		field(made, "Spec").SetZero()
	}
	made.SetAnnotations(annotations)
	return made
}

// reachOf returns the parts of a policy that say where it applies and whether it denies.
func reachOf(spec v1beta1.VerificationPolicySpec) v1beta1.VerificationPolicySpec {
	return v1beta1.VerificationPolicySpec{Scope: spec.Scope, EnforcementAction: spec.EnforcementAction, Tags: spec.Tags}
}

// Refused returns why the schema refuses a resource, as recorded by [Refuse]; nil if it does
// not.
func Refused(object v1beta1.Object) error {
	why, noted := object.GetAnnotations()[refusedBecause]
	if !noted {
		return nil
	}
	return Reasoned(policy.ReasonInvalid, errors.New(why))
}
