//go:build e2e

package teams

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestSettingsAddToATenantThatExists(t *testing.T) {
	w := installed(t)
	w.gone(t, "grown")
	w.add(t, "grown", "--set", "namespaces=grown-web", "--set", "namespacePrefix=grown-", "--set", "reconciler.createNamespaces=true", "--set",
		"reconciler.path=./apps")
	spec := func() v1beta1.TenantSpec {
		var tenant v1beta1.Tenant
		require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKey{Name: "grown"}, &tenant))
		return tenant.Spec
	}

	// By itself no Tenant could have developers, or a branch.
	w.add(t, "grown", "--set", "access.developers=[devs, {kind: User, name: ann}]", "--set", "namespaces=grown-api")
	require.Equal(t, []v1beta1.TenantSubject{{Kind: v1beta1.SubjectGroup, Name: "devs"}, {Kind: v1beta1.SubjectUser, Name: "ann"}}, spec().Access.Developers)
	require.Equal(t, []string{"grown-web", "grown-api"}, spec().Namespaces)
	require.Equal(t, "./apps", spec().Reconciler.Path, "what no setting mentions stays")
	w.add(t, "grown", "--set", "reconciler.createNamespaces=false")
	require.False(t, spec().Reconciler.CreateNamespaces, "false replaces true")

	refused := w.program.Run(t, "", "tenant", "add", "grown", "--set", "reconciler.source.branch=main")
	require.Equal(t, 64, refused.Code)
	require.Contains(t, refused.Stderr, "Tenant grown: spec.reconciler.source.url: begin the URL with https://")
	require.Nil(t, spec().Reconciler.Source, "nothing was written")
}

// The prefix alone does not tell which namespaces there are.
func TestExportPrintsWhatTheTenantOfTheClusterStandsFor(t *testing.T) {
	w := installed(t)
	w.gone(t, "printed")
	w.add(t, typical("printed")...)
	w.makeNamespace(t, "printed-extra", map[string]string{v1beta1.LabelTenant: "printed"})
	w.add(t, "printed")
	objects, err := cluster.Decode([]byte(w.program.Must(t, "tenant", "export", "printed")))
	require.NoError(t, err)
	var printed []string
	for _, object := range objects {
		if object.GetKind() != v1beta1.KindTenant {
			printed = append(printed, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
		}
	}
	var there []string
	for name := range w.objectsOf(t, "printed") {
		there = append(there, name)
	}
	require.ElementsMatch(t, there, printed)
	require.Contains(t, printed, "Namespace /printed-extra")
	require.Contains(t, w.program.Must(t, "tenant", "export", "printed", "--format=flux"), "gotk:printed:reconciler")
}
