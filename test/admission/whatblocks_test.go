//go:build e2e

package admission

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func TestADeveloperLearnsAtOnceOfEveryPolicyThatBlocksAndWhomToAsk(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	pushed, err := w.Registry.PushImage(suite.Within(t), "blocked/app", "v1")
	require.NoError(t, err)
	image := w.Registry.Host() + "/blocked/app:v1"
	sign := func(key *fixture.CosignKey) {
		_, err := w.Registry.SignCosign(suite.Within(t), pushed, key, fixture.CosignOptions{})
		require.NoError(t, err)
	}
	w.apply(t, trustStore(ns, "keys", w.teamA)+verifier(ns, "release", "keys")+
		policy(ns, "release", `{contact: "#team-a on chat.example.com", rules: [{images: ["**"], require: [{anyOf: [release]}]}]}`))
	w.during(t, header("", "VerificationPolicy", "e2e-blocks")+`spec: {scope: Mandatory, contact: security@example.com, defaultAction: Allow, rules: [{images: ["`+
		pattern(image)+`"], require: [{anyOf: [platform-signature]}]}]}`)
	own, mandatory := "VerificationPolicy "+ns+"/release requires a valid signature for release",
		"mandatory ClusterVerificationPolicy e2e-blocks requires a valid signature for platform-signature"

	// One denial says both, each with whom to ask and the command.
	w.denied(t, ns, image, own, "Ask: #team-a on chat.example.com", mandatory, "Ask: security@example.com")
	text := w.try(suite.Within(t), ns, image).Error()
	require.Less(t, strings.Index(text, own), strings.Index(text, mandatory), "the first that denies comes first")
	require.Equal(t, 1, strings.Count(text, "To fix, if your build made it: cosign sign --key KEY-FOR-release "), text)
	require.Equal(t, 1, strings.Count(text, " && cosign sign --key KEY-FOR-e2e-blocks "), text)
	lines := strings.Split(text, "\n")
	require.Len(t, lines, 2, text)
	require.Regexp(t, "To fix, if your build made it: cosign sign .* "+regexp.QuoteMeta(pattern(image))+"@sha256:[0-9a-f]{64}$", lines[0],
		"the command ends its line, so that it can be copied")
	require.Regexp(t, `^\[verified-images\] traceID [0-9a-f]{32}$`, lines[1])

	// A developer who signed for one of them learns what is left. The image is admitted with both signatures.
	sign(w.teamA)
	w.denied(t, ns, image, "in namespace "+ns+": "+mandatory)
	require.NotContains(t, w.try(suite.Within(t), ns, image).Error(), own)
	sign(w.platform)
	w.admitted(t, ns, image)
}

func TestTheContactOfATenantIsShownInItsNamespacesAlone(t *testing.T) {
	w := installed(t)
	home, web, other := w.namespace(t), w.namespace(t), w.namespace(t)
	w.during(t,
		fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: Tenant, metadata: {name: e2e-asked}, spec: {homeNamespace: %s, namespaces: [%s], contact: '#asked'}}",
			home, web))
	w.apply(t, own(home, w.teamA)+own(other, w.teamA))
	w.denied(t, web, w.unsigned, "VerificationPolicy "+home+"/release", "Ask: #asked")
	w.denied(t, other, w.unsigned, "VerificationPolicy "+other+"/release")
	require.NotContains(t, w.try(suite.Within(t), other, w.unsigned).Error(), "#asked")
	// It is shown for a policy of the cluster that names nobody, too.
	w.during(t, header("", "VerificationPolicy", "e2e-silent")+`spec: {scope: Mandatory, defaultAction: Allow, rules: [{images: ["`+pattern(w.unsigned)+
		`"], require: [{anyOf: [platform-signature]}]}]}`)
	w.denied(t, web, w.unsigned, "ClusterVerificationPolicy e2e-silent")
	require.Equal(t, 2, strings.Count(w.try(suite.Within(t), web, w.unsigned).Error(), "Ask: #asked"))
	w.denied(t, other, w.unsigned, "ClusterVerificationPolicy e2e-silent")
	require.NotContains(t, w.try(suite.Within(t), other, w.unsigned).Error(), "#asked")
	for _, contact := range []string{"two\\nlines", "", strings.Repeat("x", 257)} {
		err := w.Client.Patch(suite.Within(t), &v1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "e2e-asked"}},
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"contact":"`+contact+`"}}`)))
		require.ErrorContains(t, err, "spec.contact", contact)
	}
}

func TestAnExceptionUnderAMandatoryPolicySaysThatItNeedsOverrideMandatory(t *testing.T) {
	w := installed(t)
	ns := w.namespace(t)
	image, err := w.push(suite.Within(t), "excepted/app")
	require.NoError(t, err)
	until := time.Now().Add(time.Hour)
	w.denied(t, ns, image, "ClusterVerificationPolicy signed requires")
	w.clusterException(t, "e2e-lifts", until, fmt.Sprintf("images: [%s], namespaces: [%s]", pattern(image), ns))
	w.admitted(t, ns, image)

	mandatory := func(rule string) string {
		return header("", "VerificationPolicy", "e2e-holds") + `spec: {scope: Mandatory, defaultAction: Allow, rules: [{images: ["` + pattern(image) +
			`"], ` + rule + `}]}`
	}
	w.during(t, mandatory("require: [{anyOf: [platform-signature]}]"))
	w.denied(t, ns, image, "in namespace "+ns+": mandatory ClusterVerificationPolicy e2e-holds requires",
		"To fix, if your build made it: ClusterException e2e-lifts covers the image, but it needs overrideMandatory: ask a cluster admin to set it; or run the "+
			"command. Command: cosign sign --key KEY ")
	said := w.effective(t, &v1beta1.ClusterException{}, "", "e2e-lifts", metav1.ConditionTrue, "MandatoryHolds")
	require.Contains(t, said.Message, "ClusterVerificationPolicy e2e-holds")
	require.Contains(t, said.Message, "it needs overrideMandatory")
	w.apply(t, mandatory("action: Deny"))
	said = w.effective(t, &v1beta1.ClusterException{}, "", "e2e-lifts", metav1.ConditionFalse, "MandatoryHolds")
	require.Contains(t, said.Message, "it allows nothing")

	// A team cannot help itself, and is told so.
	team := w.namespace(t)
	w.clusterException(t, "e2e-team-may", until, fmt.Sprintf("delegate: {images: [%s], namespaces: [%s]}", pattern(image), team))
	w.apply(t,
		fmt.Sprintf("{apiVersion: landwaiter.dev/v1beta1, kind: Exception, metadata: {name: mine, namespace: %s}, spec: {until: %q, reason: r, images: [%s]}}", team,
			until.UTC().Format(time.RFC3339), pattern(image)))
	w.denied(t, team, image, "covers the image, but it needs overrideMandatory, which only a ClusterException can have: ask a cluster admin for one")
	w.effective(t, &v1beta1.Exception{}, team, "mine", metav1.ConditionFalse, "MandatoryHolds")

	w.clusterException(t, "e2e-overrides", until, fmt.Sprintf("images: [%s], namespaces: [%s], overrideMandatory: true", pattern(image), ns))
	w.admitted(t, ns, image)
	w.effective(t, &v1beta1.ClusterException{}, "", "e2e-overrides", metav1.ConditionTrue, "InForce")
}
