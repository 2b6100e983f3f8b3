package live

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// A preview says what a server would: it denies what an older CRD let in.
func TestAStoredResourceThatTheSchemaRefusesIsBroken(t *testing.T) {
	p := &v1beta1.VerificationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "p"}}
	p.Spec.Rules = []v1beta1.PolicyRule{{Images: []string{}, Action: v1beta1.RuleActionAllow}, {Images: []string{"**"}, Action: "Perhaps"}}
	state, err := reader(t, p).Read(t.Context(), Scope{Namespaces: []verify.Namespace{team}})
	require.NoError(t, err)
	require.Len(t, state.Objects.Resources, 1)
	require.ErrorContains(t, resource.Missing(state.Objects.Resources[0]), "this version's CRD refuses it: spec.rules[")
}
