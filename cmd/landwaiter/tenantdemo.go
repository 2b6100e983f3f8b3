package main

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
	"github.com/landwaiter/landwaiter/pkg/tenancy/operator"
)

// demoSource returns the source that the demo's bootstrap makes, to be copied into the
// home namespace of a Tenant: with Flux locked down, no namespace may use the source of another.
func demoSource(ctx context.Context, admin *adminFlags) (*v1beta1.TenantSource, error) {
	const where = onboard.DemoNamespace + "/" + onboard.DemoSource
	c, _, err := admin.connect(ctx, operator.Options{})
	if err != nil {
		return nil, err
	}
	repository := &unstructured.Unstructured{}
	repository.SetAPIVersion("source.toolkit.fluxcd.io/v1")
	repository.SetKind("GitRepository")
	err = c.Get(ctx, client.ObjectKey{Namespace: onboard.DemoNamespace, Name: onboard.DemoSource}, repository)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, fmt.Errorf("--git-url is missing, and there is no GitRepository %s to copy: name the repository of the Tenant", where)
	case err != nil:
		return nil, unavailable(fmt.Errorf("read GitRepository %s: %w", where, err))
	}
	url, _, _ := unstructured.NestedString(repository.Object, "spec", "url")
	branch, _, _ := unstructured.NestedString(repository.Object, "spec", "ref", "branch")
	_, private, _ := unstructured.NestedMap(repository.Object, "spec", "secretRef")
	if url == "" || branch == "" || private {
		return nil, fmt.Errorf("GitRepository %s cannot be copied, because it has a secretRef or names no branch: use --git-url, --git-branch and --git-secret", where)
	}
	return &v1beta1.TenantSource{URL: url, Branch: branch}, nil
}

// warnShared says what a shared source needs.
func warnShared(stderr io.Writer, tenant string) {
	say(stderr, "landwaiter: Tenant %s shares GitRepository %s/%s: this works only where kustomize-controller runs with --no-cross-namespace-refs=false, which lets every tenant apply the sources of all others",
		tenant, onboard.DemoNamespace, onboard.DemoSource)
}
