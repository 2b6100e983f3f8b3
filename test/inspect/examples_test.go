//go:build e2e

package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/example"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// examples is an API server with the resources of package example, the chart's roles for
// people, and pods that nobody verified. No test leaves the resources other than they were.
type examples struct {
	*cluster.Cluster
	*example.Example
}

var withExamples = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*examples, error) {
	w := &examples{}
	var err error
	if w.Example, err = example.Start(ctx, e.Path("resources")); err != nil {
		return nil, err
	}
	e.OnStop(func() { _ = w.Registry.Close() })
	if w.Cluster, err = e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true}); err != nil {
		return nil, err
	}
	definitions, err := suite.Definitions()
	if err != nil {
		return nil, err
	}
	roles, err := suite.Chart(ctx, "landwaiter", "--show-only", "templates/personas.yaml")
	if err != nil {
		return nil, err
	}
	if err := w.Apply(ctx, append(definitions, roles...)...); err != nil {
		return nil, err
	}
	for _, name := range []string{"cluster", "team-a", "team-b", "team-c"} {
		objects, err := cluster.DecodeFile(e.Path("resources", name+".yaml"))
		if err != nil {
			return nil, err
		}
		if err := w.Apply(ctx, objects...); err != nil {
			return nil, err
		}
	}
	for name, image := range map[string]string{"team-a/app": "shared/app:v1", "team-a/bad": "team-a/unsigned:v1", "team-b/web": "shared/web:v1",
		"team-c/base": "shared/base:v1"} {
		namespace, pod, _ := strings.Cut(name, "/")
		if err := w.runs(ctx, namespace, pod, w.image(image)); err != nil {
			return nil, err
		}
	}
	return w, nil
})

// image returns the name of an image in the registry.
func (w *examples) image(name string) string { return w.Registry.Host() + "/" + name }

// runs makes a pod, once its namespace has a ServiceAccount.
func (w *examples) runs(ctx context.Context, namespace, name, image string) error {
	return cluster.Until(ctx, func(ctx context.Context) error { return w.Client.Create(ctx, suite.Pod(namespace, name, image)) })
}

// somebody returns a person with ClusterRoles: bound for the whole cluster under "", or in a
// namespace.
func (w *examples) somebody(t *testing.T, name string, roles map[string][]string) person {
	t.Helper()
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}}
	for namespace, names := range roles {
		for _, role := range names {
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
			meta := metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + role}
			var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: ref}
			if namespace == "" {
				binding = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subject, RoleRef: ref}
			}
			require.NoError(t, w.Client.Create(t.Context(), binding))
			t.Cleanup(func() { _ = w.Client.Delete(context.Background(), binding) })
			w.granted(t, name, namespace, role)
		}
	}
	return as(t, w.Cluster, name, "default")
}

// readsEverything are the roles of somebody who previews in the whole cluster.
func readsEverything() map[string][]string {
	return map[string][]string{"": {"landwaiter-reader", "landwaiter-cluster-reader", "landwaiter-tenant-reader"}}
}

// granted waits until the API server has seen that somebody has a ClusterRole.
func (w *examples) granted(t *testing.T, user, namespace, name string) {
	t.Helper()
	suite.Eventually(t, func(ctx context.Context) error {
		var role rbacv1.ClusterRole
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, &role); err != nil {
			return err
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if len(rule.ResourceNames) > 0 {
					continue
				}
				resource, subresource, _ := strings.Cut(resource, "/")
				review := &authorizationv1.SubjectAccessReview{
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource}}}
				if err := w.Client.Create(ctx, review); err != nil || !review.Status.Allowed {
					return fmt.Errorf("%s may not yet %s %s: %w", user, rule.Verbs[0], resource, err)
				}
			}
		}
		return nil
	})
}

// previews runs preview with a change, and returns what would change as "namespace image:
// from -> to".
func (w *examples) previews(t *testing.T, who person, change string, args ...string) (preview, []string, suite.Result) {
	t.Helper()
	r := who.landwaiter.Run(t, change, append([]string{"preview", "-f", "-", "-o", "json"}, args...)...)
	var printed preview
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &printed), "%d %s%s", r.Code, r.Stdout, r.Stderr)
	rows := []string{}
	for _, row := range printed.Images {
		rows = append(rows, fmt.Sprintf("%s %s: %s -> %s", row.Namespace, strings.TrimPrefix(row.Image, w.Registry.Host()+"/"), row.From.Answer, row.To.Answer))
	}
	return printed, rows, r
}
