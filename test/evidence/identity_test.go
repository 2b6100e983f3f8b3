//go:build e2e

package evidence

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// What a team needs for each cloud, with the names that its stand-in trusts.
var (
	forAWS    = "aws: {roleARN: '" + roleARN + "', region: eu-central-1}"
	forAzure  = "azure: {tenantID: " + entra + ", clientID: " + clientID + "}"
	forGoogle = "google: {provider: " + pool + ", serviceAccount: " + email + "}"
)

// identified is a Store that logs in as the ServiceAccount puller.
func identified(namespace, name, host, provider, federation string) *unstructured.Unstructured {
	return suite.Resource("Store", namespace, name,
		fmt.Sprintf("{registries: [%s], identity: {provider: %s, serviceAccount: {name: puller, %s}}}", host, provider, federation))
}

func registries(namespace string) map[string]*unstructured.Unstructured {
	return map[string]*unstructured.Unstructured{ecrHost: identified(namespace, "ecr", ecrHost, "ECR", forAWS),
		acrHost: identified(namespace, "acr", acrHost, "ACR", forAzure), garHost: identified(namespace, "gar", garHost, "GAR", forGoogle)}
}

func trustStores(namespace string) map[string]*unstructured.Unstructured {
	sources := map[string]string{
		"vault":  "vault: {address: 'https://" + vaultHost + "', path: transit/keys/release, serviceAccount: {name: puller, role: release}}",
		"aws":    "kms: {uri: 'awskms:///alias/release', serviceAccount: {name: puller, " + forAWS + "}}",
		"azure":  "kms: {uri: 'azurekms://team.vault.azure.net/release', serviceAccount: {name: puller, " + forAzure + "}}",
		"google": "kms: {uri: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k/versions/1', serviceAccount: {name: puller, " + forGoogle + "}}",
	}
	all := map[string]*unstructured.Unstructured{}
	for name, source := range sources {
		all[name] = suite.Resource("TrustStore", namespace, name, "{type: PublicKeys, source: {"+source+"}}")
	}
	return all
}

func TestATeamUsesEachCloudAsItsServiceAccountAndAnotherTeamCannot(t *testing.T) {
	w := connected(t)
	pushed(t, w.clouds.registry, "team/app", w.key)
	a, b := w.team(t, "team-a"), w.team(t, "team-b")
	w.clouds.trust(a)
	for _, team := range []string{a, b} {
		w.puller(t, team)
		require.NoError(t, w.Apply(suite.Within(t), slices.AppendSeq(slices.Collect(maps.Values(registries(team))), maps.Values(trustStores(team)))...))
	}
	for host, object := range registries(a) {
		w.becomes(t, "Store", a, object.GetName(), "True", "")
		w.server.requireVerdict(t, gatekeeper.Allowed, a, host+"/team/app:v1")
	}
	for name := range trustStores(a) {
		w.becomes(t, "TrustStore", a, name, "True", "")
		object := suite.Resource("TrustStore", a, name, "{}")
		require.NoError(t, w.Client.Get(suite.Within(t), client.ObjectKeyFromObject(object), object))
		prints, _, _ := unstructured.NestedStringSlice(object.Object, "status", "fingerprints")
		require.Len(t, prints, 1, name)
	}
	// The same words in another namespace are another account, which nobody trusts.
	for host, object := range registries(b) {
		w.becomes(t, "Store", b, object.GetName(), "False", map[string]string{
			ecrHost: "AWS's token server does not let ServiceAccount " + b + "/puller assume the role (403)",
			acrHost: "Azure's token server refuses the credentials (403)",
			garHost: "Google's credentials service refuses the credentials (403)"}[host])
		w.server.requireVerdict(t, gatekeeper.Denied, b, host+"/team/app:v1", "Store "+b+"/"+object.GetName()+" cannot be used")
	}
	for name := range trustStores(b) {
		w.becomes(t, "TrustStore", b, name, "False", "")
	}
	_, asked := w.clouds.seen()
	all := strings.Join(asked, "\n")
	for _, refusal := range []string{"sts.eu-central-1.amazonaws.com/ no trust in system:serviceaccount:" + b + ":puller",
		"/oauth2/v2.0/token no trust in system:serviceaccount:" + b + ":puller",
		":generateAccessToken may not impersonate", "/v1/auth/kubernetes/login no trust in system:serviceaccount:" + b + ":puller"} {
		require.Contains(t, all, refusal)
	}
	require.NotContains(t, all, "audience is")
	require.NotContains(t, all, "lives for")
	require.NotContains(t, all, "signature")
	require.Contains(t, all, "/v1/auth/token/revoke-self <nil>", "Vault keeps no token")
}

func TestATokenThatLeftIsOfNoUseAtTheAPIServerAndInNoLog(t *testing.T) {
	w := connected(t)
	team := w.team(t, "team-a")
	w.clouds.trust(team)
	w.puller(t, team)
	for _, object := range registries(team) {
		require.NoError(t, w.Apply(suite.Within(t), object))
		w.becomes(t, "Store", team, object.GetName(), "True", "")
	}
	tokens, _ := w.clouds.seen()
	require.NotEmpty(t, tokens)
	log, err := os.ReadFile(w.log)
	require.NoError(t, err)
	for _, token := range tokens {
		config := rest.AnonymousClientConfig(w.Config)
		config.BearerToken = token
		clients, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = clients.AuthenticationV1().SelfSubjectReviews().Create(suite.Within(t), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.True(t, apierrors.IsUnauthorized(err), err)
		require.NotContains(t, string(log), token[strings.LastIndex(token, ".")+1:])
	}
	w.clouds.mu.Lock()
	defer w.clouds.mu.Unlock()
	for secret, what := range w.clouds.given {
		require.NotContains(t, string(log), secret, what)
	}
}

func TestWithoutTheRightTheMessageHasTheCommandsThatGiveIt(t *testing.T) {
	w := connected(t)
	team := w.team(t, "team-late")
	suite.Apply(t, w.Cluster, pullerAccount(team))
	require.NoError(t, w.Apply(suite.Within(t), identified(team, "gar", garHost, "GAR", "google: {provider: "+pool+"}")))
	said := w.becomes(t, "Store", team, "gar", "False", "AccessDenied: ")
	require.Contains(t, said, "ServiceAccount "+team+"/puller: landwaiter has no permission to get its tokens; grant it with: kubectl create role")
	_, commands, ok := strings.Cut(said, "grant it with: ")
	require.True(t, ok)
	commands, _, _ = strings.Cut(commands, "; ")
	for line := range strings.SplitSeq(commands, " && ") {
		w.kubectl(t, line)
	}
	w.becomes(t, "Store", team, "gar", "True", "")
}

func TestAMissingServiceAccountIsNamed(t *testing.T) {
	w := connected(t)
	team := w.team(t, "team-late")
	require.NoError(t, w.Apply(suite.Within(t), suite.Resource("TrustStore", team, "gone",
		"{type: PublicKeys, source: {vault: {address: 'https://"+vaultHost+"', path: transit/keys/release, serviceAccount: {name: gone, role: release}}}}")))
	w.kubectl(t, "kubectl create role landwaiter-token-gone --namespace="+team+" --verb=create --resource=serviceaccounts/token --resource-name=gone")
	w.kubectl(t, "kubectl create rolebinding landwaiter-token-gone --namespace="+team+" --role=landwaiter-token-gone --serviceaccount="+suite.System+":landwaiter")
	w.becomes(t, "TrustStore", team, "gone", "False", "ServiceAccount "+team+"/gone does not exist")
}

func TestARightForEveryAccountIsRefused(t *testing.T) {
	w := connected(t)
	team := w.team(t, "team-wide")
	suite.Apply(t, w.Cluster, pullerAccount(team))
	require.NoError(t, w.Apply(suite.Within(t), identified(team, "ecr", ecrHost, "ECR", forAWS)))
	w.kubectl(t, "kubectl create role wide --namespace="+team+" --verb=create --resource=serviceaccounts/token")
	w.kubectl(t, "kubectl create rolebinding wide --namespace="+team+" --role=wide --serviceaccount="+suite.System+":landwaiter")
	w.becomes(t, "Store", team, "ecr", "False", "Landwaiter may get the tokens of every account in namespace "+team)
}

func TestATeamPullsFromGitHubAsAnApp(t *testing.T) {
	w := connected(t)
	team := w.team(t, "team-github")
	pushed(t, w.clouds.registry, "team/packages", w.key)
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(w.clouds.app)})
	app := func(id string) *unstructured.Unstructured {
		return suite.Object("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: app}\nstringData: {appID: '%s', installationID: '42', privateKey: %q}",
			team, id, private)
	}
	require.NoError(t,
		w.Apply(suite.Within(t), app("4711"), suite.Resource("Store", team, "ghcr", "{registries: [ghcr.io], identity: {provider: GHCR, secretRef: {name: app}}}")))
	w.becomes(t, "Store", team, "ghcr", "True", "")
	w.server.requireVerdict(t, gatekeeper.Allowed, team, "ghcr.io/team/packages:v1")
	require.NoError(t, w.Apply(suite.Within(t), app("4712")))
	w.becomes(t, "Store", team, "ghcr", "False", "GitHub refuses the credentials (403)")
}
