//go:build e2e

package admission

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// keylessBy is a Verifier of one identity of GitHub Actions.
func keylessBy(ns, name, identity string) string {
	return header(ns, "Verifier", name) + "spec: {type: Cosign, cosign: {keyless: {identities: [{issuer: 'https://token.actions.githubusercontent.com', " +
		identity + "}]}}}\n---\n"
}

// A team admin copies a rule that lets everybody in.
func TestAnIdentityForEverybodyIsRefusedAndABroadOneIsNamed(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	kubectl := w.kubectl(t, "")
	applied := kubectl.Run(t, keylessBy(ns, "everybody", "subjectRegExp: '.*'"), "apply", "--server-side", "--filename=-")
	require.NotZero(t, applied.Code)
	require.Contains(t, applied.Stderr, "signers who have nothing in common with you")
	require.Contains(t, applied.Stderr, "insecureAllowAnySubject")
	unreadable := kubectl.Run(t, keylessBy(ns, "unreadable", "subjectRegExp: '('"), "apply", "--server-side", "--filename=-")
	require.NotZero(t, unreadable.Code)
	require.Contains(t, unreadable.Stderr, "spec.cosign.keyless.identities[0]")

	w.apply(t, keylessBy(ns, "everybody", "subjectRegExp: '.*', insecureAllowAnySubject: true")+
		keylessBy(ns, "broad", `subjectRegExp: 'https://github\.com/acme.*/\.github/workflows/release\.yml@refs/tags/v.*'`)+
		keylessBy(ns, "nobody", "subject: 'https://github.com/acme/*'")+
		keylessBy(ns, "narrow", `subjectRegExp: 'https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*'`))
	for name, want := range map[string][2]string{
		"everybody": {"IdentityForAnyone", "any other owner (https://github.com/somebody-else/"},
		"broad":     {"IdentityForAnyone", "an owner with a similar name (https://github.com/acme-evil/"},
		"nobody":    {"IdentityMatchesNobody", "https://github.com/acme/REPOSITORY/.github/workflows/release.yml@refs/heads/main"},
	} {
		said := w.conditionOf(t, v1beta1.ConditionNeedsReview, &v1beta1.Verifier{}, ns, name, metav1.ConditionTrue, want[0])
		require.Contains(t, said.Message, want[1])
	}

	landwaiter := suite.Program{Path: suite.MustTool(t, suite.Landwaiter), Kubeconfig: w.Kubeconfig()}
	found := landwaiter.Run(t, "", "check")
	for _, name := range []string{"everybody", "broad", "nobody"} {
		require.Contains(t, found.Stdout, "Verifier "+ns+"/"+name)
	}
	require.Contains(t, found.Stdout, "IdentityForAnyone")
	shown := landwaiter.Run(t, "", "status", "--namespace", ns)
	require.Contains(t, shown.Stdout, "NeedsReview")

	w.apply(t, keylessBy(ns, "broad", `subjectRegExp: 'https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*'`))
	suite.Eventually(t, func(ctx context.Context) error {
		v := &v1beta1.Verifier{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "broad"}, v); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(v.Status.Conditions, v1beta1.ConditionNeedsReview); c != nil {
			return fmt.Errorf("the condition is still %s: %s", c.Reason, c.Message)
		}
		return nil
	})
}
