package doctor

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Serve is how landwaiter serve runs in a cluster, as far as its Deployment says.
type Serve struct{ program *program }

// ReadServe reads the Deployment in Landwaiter's namespace with the permissions of c. Where none
// says how serve runs, or the person may not read it, it returns nil and why. An error means
// that the API server did not answer.
func ReadServe(ctx context.Context, c client.Reader, namespace string) (serve *Serve, why string, err error) {
	r := &reader{client: c, ctx: ctx, into: &Inventory{Unread: map[Source]Unread{}}}
	list(r, SourceLandwaiter, "deployments.apps", namespace, &appsv1.DeploymentList{}, func(l *appsv1.DeploymentList) {
		r.into.Landwaiters = append(r.into.Landwaiters, l.Items...)
	})
	if err := cmp.Or(r.failed, ctx.Err()); err != nil {
		return nil, "", err
	}
	if unread, ok := r.into.Unread[SourceLandwaiter]; ok {
		return nil, unread.Why, nil
	}
	p := serveOf(r.into.Landwaiters)
	if p == nil {
		return nil, "no Deployment in namespace " + namespace + " runs landwaiter serve", nil
	}
	return &Serve{p}, "", nil
}

// Flag returns the value of a flag that counts, and false if serve has its default.
func (s *Serve) Flag(name string) (string, bool) {
	all := s.program.flags(name)
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1].value, true
}

// Account returns the ServiceAccount that serve runs as, in its namespace.
func (s *Serve) Account() string { return s.program.account }
