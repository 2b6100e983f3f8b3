//go:build e2e

package evidence

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/test/kit/suite"
)

func request(seconds int64, audiences ...string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}
}

// try asks for a token of the account puller as somebody who has permission to it.
func try(t *testing.T, config *rest.Config, namespace string, spec authenticationv1.TokenRequestSpec) error {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = clients.CoreV1().ServiceAccounts(namespace).CreateToken(suite.Within(t), "puller", &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	return err
}

// What somebody gets who has taken over Landwaiter's account.
func TestTheGuardrailLeavesLandwaiterTokensForCloudsAlone(t *testing.T) {
	w := connected(t)
	team := w.team(t, "team-guard")
	w.puller(t, team)
	own := w.As("system:serviceaccount:"+suite.System+":landwaiter", "system:serviceaccounts", "system:serviceaccounts:"+suite.System)
	bound := request(600, "sts.amazonaws.com")
	suite.Apply(t, w.Cluster, "{apiVersion: v1, kind: Secret, metadata: {namespace: "+team+", name: bound}}")
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
		err := try(t, own, team, c.spec)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "landwaiter-tokens", name)
	}
	// Others are not concerned.
	require.NoError(t, try(t, w.Config, team, request(7200, issuer)))

	// Nor does a permission help that names no account, in the cluster or in the namespace.
	remove := "kubectl delete --ignore-not-found clusterrolebinding,clusterrole every-token"
	t.Cleanup(func() { w.kubectl(t, remove) })
	w.kubectl(t, "kubectl create clusterrole every-token --verb=create --resource=serviceaccounts/token")
	w.kubectl(t, "kubectl create clusterrolebinding every-token --clusterrole=every-token --serviceaccount="+suite.System+":landwaiter")
	var refused error
	suite.Eventually(t, func(context.Context) error {
		if refused = try(t, own, team, request(600, "sts.amazonaws.com")); refused == nil || !apierrors.IsForbidden(refused) {
			return fmt.Errorf("not refused: %w", refused)
		}
		return nil
	})
	require.ErrorContains(t, refused, "Landwaiter may get the tokens of every account in namespace "+team)
	w.kubectl(t, remove)
	suite.Eventually(t, func(context.Context) error { return try(t, own, team, request(600, "sts.amazonaws.com")) })
}
