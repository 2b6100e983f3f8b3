package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Server is the known state of the account that reads Secrets, ConfigMaps and ServiceAccounts
// for the cluster's verdicts.
type Server struct {
	Namespace, Account string
	// ReferenceReaderRole is the ClusterRole that a namespace binds to the account.
	ReferenceReaderRole string
	// Guessed says that the account is assumed to have its usual name.
	Guessed bool
}

// grant is the command that lets the account read references in a namespace.
func (s Server) grant(namespace string) string {
	return fmt.Sprintf("kubectl create rolebinding %s --namespace=%s --clusterrole=%s --serviceaccount=%s:%s", s.ReferenceReaderRole,
		namespace, s.ReferenceReaderRole, s.Namespace, s.Account)
}

// ReadableBy marks the objects that the server may not read as broken in states, as the server
// does, and as unreadable if the person cannot find out. The first of the states is the current
// cluster: only its conditions count.
func (p *Person) ReadableBy(ctx context.Context, server Server, states ...*State) error {
	q := &readable{person: p, server: server, verdicts: map[policy.ObjectRef]readability{}}
	q.fromConditions(states[0].Objects)
	for _, state := range states {
		o := &state.Objects
		o.Broken, o.Unreadable = slices.Clone(o.Broken), slices.Clone(o.Unreadable)
		unread := map[policy.ObjectRef]bool{}
		for _, u := range o.Unreadable {
			unread[u.Source] = true
		}
		present := presentIn(*o)
		for _, sources := range resolve.References(*o) {
			for _, source := range sources {
				// Objects that do not exist, or that the person cannot see, are not allowed anyway.
				if _, said := q.verdicts[source]; !said && (!present[source] || unread[source]) {
					continue
				}
				found, err := q.ask(ctx, source)
				switch {
				case err != nil:
					return err
				case found.unknown != "":
					o.Unreadable = append(o.Unreadable, resource.Unreadable{Source: source, Why: found.unknown})
				case found.refused != nil:
					o.Unreadable = slices.DeleteFunc(o.Unreadable, func(u resource.Unreadable) bool { return u.Source == source })
					o.Broken = append(o.Broken, resource.Broken{Source: source, Reason: policy.ReasonAccessDenied, Err: found.refused})
				}
			}
		}
	}
	return nil
}

// readable determines what the server may read, once for each object.
type readable struct {
	person   *Person
	server   Server
	verdicts map[policy.ObjectRef]readability
}

// readability says whether the server can read an object. In the zero value it can.
type readability struct {
	refused error  // why it cannot
	unknown string // why the person cannot find out
}

func (q *readable) refused(source policy.ObjectRef) readability {
	return readability{refused: errors.New("landwaiter has no permission to read it; grant it with: " + q.server.grant(source.Namespace))}
}

// fromConditions uses the server's own statements: a resource that it finds ready has
// readable references. A refusal overrides that, because it is newer.
func (q *readable) fromConditions(o resource.Objects) {
	for _, refusing := range []bool{false, true} {
		for _, object := range o.Resources {
			ready := meta.FindStatusCondition(object.CommonStatus().Conditions, v1beta1.ConditionReady)
			if ready == nil || ready.ObservedGeneration != object.GetGeneration() {
				continue
			}
			refuses := ready.Status == metav1.ConditionFalse && ready.Reason == string(policy.ReasonAccessDenied)
			if refuses != refusing || !refuses && ready.Status != metav1.ConditionTrue {
				continue
			}
			for _, sources := range resolve.References(resource.Objects{Resources: []v1beta1.Object{object}, ServiceAccounts: o.ServiceAccounts,
				ClusterResourceNamespace: o.ClusterResourceNamespace}) {
				for _, source := range sources {
					switch {
					case !refuses:
						q.verdicts[source] = readability{}
					case names(ready.Message, source):
						q.verdicts[source] = q.refused(source)
					}
				}
			}
		}
	}
}

// names reports whether a message names an object, and not only one with a longer name.
func names(message string, source policy.ObjectRef) bool {
	for rest, found := message, true; found; {
		if _, rest, found = strings.Cut(rest, source.String()); found && (rest == "" || strings.ContainsAny(rest[:1], " :;,)\"'")) {
			return true
		}
	}
	return false
}

// ask asks the API server for the account's permission, unless it is known already.
func (q *readable) ask(ctx context.Context, source policy.ObjectRef) (found readability, err error) {
	if found, said := q.verdicts[source]; said {
		return found, nil
	}
	allowed, err := q.review(ctx, source)
	unknown := fmt.Sprintf("it is unknown whether Landwaiter may read %s: ", source)
	account := fmt.Sprintf("ServiceAccount %s/%s", q.server.Namespace, q.server.Account)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		found.unknown = unknown +
			fmt.Sprintf("no resource with this reference is ready yet, and you cannot create localsubjectaccessreviews.authorization.k8s.io in "+
				"namespace %s; ask an admin of the namespace, and if it cannot: %s",
				source.Namespace, q.server.grant(source.Namespace))
	case err != nil:
		return readability{}, fmt.Errorf("ask whether %s may read %s: %w", account, source, err)
	case allowed:
	case q.server.Guessed:
		found.unknown = unknown +
			fmt.Sprintf("%s cannot do so, and you cannot read which ServiceAccount Landwaiter's Deployment has; if it is this one: %s", account,
				q.server.grant(source.Namespace))
	default:
		found = q.refused(source)
	}
	q.verdicts[source] = found
	return found, nil
}

// review asks for the verbs with which the server reads an object. The API server does not
// store reviews.
func (q *readable) review(ctx context.Context, source policy.ObjectRef) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace}}
		review.Spec.User = "system:serviceaccount:" + q.server.Namespace + ":" + q.server.Account
		review.Spec.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + q.server.Namespace, "system:authenticated"}
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: source.Namespace, Verb: verb, Version: "v1",
			Resource: strings.ToLower(source.Kind) + "s", Name: source.Name}
		if err := q.person.client.Create(ctx, review); err != nil || !review.Status.Allowed {
			return false, err
		}
	}
	return true, nil
}
