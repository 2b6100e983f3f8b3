//go:build e2e

package identity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pause is between two tries.
const pause = 100 * time.Millisecond

func clientKey(o *unstructured.Unstructured) client.ObjectKey { return client.ObjectKeyFromObject(o) }

func request(seconds int64, audiences ...string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}
}

// try asks for a token of team-guard/puller as somebody who has the right to it.
func try(t *testing.T, config *rest.Config, spec authenticationv1.TokenRequestSpec) error {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = clients.CoreV1().ServiceAccounts("team-guard").CreateToken(within(t), "puller", &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	return err
}

// What somebody gets who has taken over Landwaiter's account.
func TestTheGuardrailLeavesLandwaiterTokensForCloudsAlone(t *testing.T) {
	puller(t, "team-guard")
	own := w.As("system:serviceaccount:"+system+":landwaiter", "system:serviceaccounts", "system:serviceaccounts:"+system)
	bound := request(600, "sts.amazonaws.com")
	apply(t, of("{apiVersion: v1, kind: Secret, metadata: {namespace: team-guard, name: bound}}"))
	bound.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: "bound"}
	const only = "Landwaiter gets tokens for one service of a cloud or one Vault"
	for name, c := range map[string]struct {
		spec authenticationv1.TokenRequestSpec
		says string
	}{
		"AWS":                           {request(600, "sts.amazonaws.com"), ""},
		"Azure":                         {request(600, "api://AzureADTokenExchange"), ""},
		"Azure in China":                {request(600, "api://AzureADTokenExchangeChina"), ""},
		"Azure of the US government":    {request(600, "api://AzureADTokenExchangeUSGov"), ""},
		"Google":                        {request(3600, "https://iam.googleapis.com/"+pool), ""},
		"a Vault":                       {request(600, "vault://vault.example.com:8200"), ""},
		"the API server":                {request(600, issuer), only},
		"none, which is the API server": {request(600), only},
		"two":                           {request(600, "sts.amazonaws.com", "vault://vault.example.com"), only},
		"a cloud and the API server":    {request(600, "sts.amazonaws.com", issuer), only},
		"another service":               {request(600, "https://example.com"), only},
		"another address of Google":     {request(600, "https://iam.googleapis.com/projects/1"), only},
		"what begins like Google":       {request(600, "https://iam.googleapis.com.evil.example/"+pool), only},
		"what only looks like Google":   {request(600, "https://iamxgoogleapis.com/"+pool), only},
		"a Vault without a host":        {request(600, "vault://"), only},
		"a Vault with a path":           {request(600, "vault://vault.example.com/v1"), only},
		"two hours":                     {request(7200, "sts.amazonaws.com"), "that live for an hour at most"},
		"bound to a Secret":             {bound, "no tokens of pods, Secrets or nodes"},
	} {
		err := try(t, own, c.spec)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "landwaiter-tokens", name)
	}
	// Others are not concerned.
	require.NoError(t, try(t, w.Config, request(7200, issuer)))

	// Nor does a right help that names no account, in the cluster or in the namespace.
	kubectl(t, "kubectl create clusterrole every-token --verb=create --resource=serviceaccounts/token")
	kubectl(t, "kubectl create clusterrolebinding every-token --clusterrole=every-token --serviceaccount="+system+":landwaiter")
	require.Eventually(t, func() bool {
		err := try(t, own, request(600, "sts.amazonaws.com"))
		return err != nil && apierrors.IsForbidden(err)
	}, settle, pause)
	require.ErrorContains(t, try(t, own, request(600, "sts.amazonaws.com")), "Landwaiter may get the tokens of every account in namespace team-guard")
	kubectl(t, "kubectl delete clusterrolebinding every-token")
	require.Eventually(t, func() bool { return try(t, own, request(600, "sts.amazonaws.com")) == nil }, settle, pause)
}
