//go:build e2e || nightly

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

const account = "system:serviceaccount:" + suite.System + ":landwaiter"

// bind gives a user a ClusterRole, in a namespace or (empty) everywhere.
func (w *world) bind(t *testing.T, namespace, role, user string) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	to := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	name := metav1.ObjectMeta{Name: fmt.Sprintf("e2e-%d", w.names.Add(1)), Namespace: namespace}
	var object client.Object = &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: to}
	if namespace == "" {
		object = &rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: to}
	}
	require.NoError(t, w.Client.Create(suite.Within(t), object))
	t.Cleanup(func() {
		if err := w.Client.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete binding: %v", err)
		}
	})
}

// everybody is the group that authentication puts everybody in.
func everybody() []string { return []string{"system:authenticated"} }

// may asks the API server what a user may do.
func (w *world) may(ctx context.Context, user string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	return reviewed(ctx, w.Client, user, attributes)
}

func reviewed(ctx context.Context, c client.Client, user string, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: everybody(), ResourceAttributes: &attributes}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// question is one cell of the table of who may do what with resources.
type question struct {
	user  string
	asked authorizationv1.ResourceAttributes
	want  bool
}

// questions binds people to roles, waits until the roles are aggregated, and returns the table.
func (w *world) questions(t *testing.T) (all []question) {
	t.Helper()
	own, other := w.namespace(t), w.namespace(t)
	w.bind(t, own, "admin", "team-admin")
	w.bind(t, own, "edit", "editor")
	w.bind(t, own, "view", "onlooker")
	w.bind(t, own, "landwaiter-reader", "reader")
	w.bind(t, "", "landwaiter-cluster-reader", "cluster-reader")
	w.bind(t, "", "landwaiter-cluster-admin", "platform-admin")
	suite.Eventually(t, func(ctx context.Context) error {
		ok, err := w.may(ctx, "team-admin", authorizationv1.ResourceAttributes{Namespace: own, Verb: "create", Group: v1beta1.Group, Resource: "verifiers"})
		if !ok {
			err = errors.Join(err, errors.New("the role admin has not been aggregated"))
		}
		return err
	})

	read := []string{"get", "list", "watch"}
	write := []string{"create", "update", "patch", "delete", "deletecollection"}
	namespaced := []string{"verifiers", "stores", "truststores", "verificationpolicies", "exceptions"}
	clusterWide := []string{"clusterverifiers", "clusterstores", "clustertruststores", "clusterverificationpolicies", "clusterexceptions", "clusterquotas"}
	naming := []string{"clusterexceptions", "clusterquotas"} // name other teams
	// What is not listed here must be refused.
	type scope struct{ where, kinds string }
	granted := map[string]map[scope][]string{
		"team-admin":     {{own, "namespaced"}: append(slices.Clone(read), write...)},
		"editor":         {},
		"onlooker":       {},
		"reader":         {{own, "namespaced"}: read},
		"cluster-reader": {{"", "cluster-wide"}: read},
		"platform-admin": {
			{own, "namespaced"}: append(slices.Clone(read), write...), {other, "namespaced"}: append(slices.Clone(read), write...),
			{"", "namespaced"}: append(slices.Clone(read), write...), {"", "cluster-wide"}: append(slices.Clone(read), write...),
		},
		"stranger": {},
		account:    {{own, "namespaced"}: read, {other, "namespaced"}: read, {"", "namespaced"}: read, {"", "cluster-wide"}: read},
	}
	add := func(user, where, resource, subresource, verb string, want bool) {
		all = append(all,
			question{user, authorizationv1.ResourceAttributes{Namespace: where, Verb: verb, Group: v1beta1.Group, Resource: resource, Subresource: subresource}, want})
	}
	for user, grants := range granted {
		for _, verb := range append(slices.Clone(read), write...) {
			for _, where := range []string{own, other, ""} {
				for _, resource := range namespaced {
					add(user, where, resource, "", verb, slices.Contains(grants[scope{where, "namespaced"}], verb))
					writesStatus := user == account && (verb == "update" || verb == "patch")
					add(user, where, resource, "status", verb, writesStatus)
				}
			}
			for _, resource := range clusterWide {
				add(user, "", resource, "", verb, slices.Contains(grants[scope{"", "cluster-wide"}], verb) &&
					(user != "cluster-reader" || !slices.Contains(naming, resource)))
				add(user, "", resource, "status", verb, user == account && (verb == "update" || verb == "patch"))
			}
		}
	}
	return all
}

// byRole binds somebody to each role of the chart in a namespace, and somebody else everywhere,
// and returns the table of roles for them.
func (w *world) byRole(t *testing.T) (all []question) {
	t.Helper()
	own, other := w.namespace(t), w.namespace(t)
	bound := map[string]bool{}
	for _, cell := range rbac.Table() {
		there, everywhere := "there-"+cell.Role, "everywhere-"+cell.Role
		if !bound[cell.Role] {
			bound[cell.Role] = true
			w.bind(t, own, cell.Role, there)
			w.bind(t, "", cell.Role, everywhere)
		}
		add := func(user, where string, want bool) {
			asked := cell.Asked
			asked.Namespace = where
			all = append(all, question{user, asked, want})
		}
		add(there, own, cell.Want)
		add(everywhere, "", cell.Want)
		if cell.Want {
			add(there, other, false)
			add(there, "", false)
			add(everywhere, other, true)
		}
	}
	return all
}

// inMemory answers questions from the roles that the API server has, which are read once. The
// server is asked too, for each person and each kind of question once.
func (w *world) inMemory(t *testing.T, all []question) {
	t.Helper()
	w.sampled(t, all)
	roles, err := rbac.Read(suite.Within(t), w.Client)
	require.NoError(t, err)
	for _, q := range all {
		require.Equal(t, q.want, roles.May(q.user, everybody(), q.asked), "%+v", q)
	}
	t.Logf("%d questions", len(all))
}

// sampled asks the server each kind of question once. After it, the server knows all bindings.
func (w *world) sampled(t *testing.T, all []question) {
	t.Helper()
	asked := map[string]bool{}
	for _, q := range all {
		kind := fmt.Sprint(q.user, q.asked.Namespace == "", q.asked.Subresource, q.want)
		if !asked[kind] {
			asked[kind] = true
			w.answers(t, q)
		}
	}
	t.Logf("%d questions for the server", len(asked))
}

// answers asks the API server. Bindings take it a moment.
func (w *world) answers(t *testing.T, q question) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		got, err := w.may(ctx, q.user, q.asked)
		if err == nil && got != q.want {
			err = fmt.Errorf("%+v, but %v", q, got)
		}
		return err
	})
}
