//go:build e2e

package identity

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
)

// What a team needs for each cloud, with the names that its stand-in trusts.
var (
	forAWS    = "awsRoleARN: '" + roleARN + "', awsRegion: eu-central-1"
	forAzure  = "azureTenantID: " + entra + ", azureClientID: " + clientID
	forGoogle = "googleProvider: " + pool + ", googleServiceAccount: " + email
)

func store(namespace, name, host, provider, federation string) *unstructured.Unstructured {
	return own("Store", namespace, name, fmt.Sprintf("{registries: [%s], identity: {provider: %s, serviceAccount: {name: puller, %s}}}", host, provider, federation))
}

// image pushes a signed image, which every registry has.
func image(t *testing.T, repository string) fixture.Image {
	t.Helper()
	pushed, err := w.clouds.registry.PushImage(t.Context(), repository, "v1")
	require.NoError(t, err)
	_, err = w.clouds.registry.SignCosign(t.Context(), pushed, w.key, fixture.CosignOptions{})
	require.NoError(t, err)
	return pushed
}

func registries(namespace string) map[string]*unstructured.Unstructured {
	return map[string]*unstructured.Unstructured{ecrHost: store(namespace, "ecr", ecrHost, "ECR", forAWS), acrHost: store(namespace, "acr", acrHost, "ACR", forAzure), garHost: store(namespace, "gar", garHost, "GAR", forGoogle)}
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
		all[name] = own("TrustStore", namespace, name, "{type: PublicKeys, source: {"+source+"}}")
	}
	return all
}

func TestATeamUsesEachCloudAsItsServiceAccountAndAnotherTeamCannot(t *testing.T) {
	image(t, "team/app")
	for _, team := range []string{"team-a", "team-b"} {
		puller(t, team)
		verifier(t, team)
		for _, objects := range []map[string]*unstructured.Unstructured{registries(team), trustStores(team)} {
			for _, object := range objects {
				apply(t, object)
			}
		}
	}
	for host, object := range registries("team-a") {
		becomes(t, "Store", "team-a", object.GetName(), "True", "")
		verdict(t, "team-a", host+"/team/app:v1", gatekeeper.Allowed, "")
	}
	for name := range trustStores("team-a") {
		becomes(t, "TrustStore", "team-a", name, "True", "")
		object := own("TrustStore", "team-a", name, "{}")
		require.NoError(t, w.Client.Get(within(t), clientKey(object), object))
		prints, _, _ := unstructured.NestedStringSlice(object.Object, "status", "fingerprints")
		require.Len(t, prints, 1, name)
	}
	// The same words in another namespace are another account, which nobody trusts.
	for host, object := range registries("team-b") {
		becomes(t, "Store", "team-b", object.GetName(), "False", map[string]string{
			ecrHost: "AWS's token server does not let ServiceAccount team-b/puller assume the role (403)", acrHost: "Azure's token server refuses the credentials (403)",
			garHost: "Google's credentials service refuses the credentials (403)"}[host])
		verdict(t, "team-b", host+"/team/app:v1", gatekeeper.Denied, "Store team-b/"+object.GetName()+" cannot be used")
	}
	for name := range trustStores("team-b") {
		becomes(t, "TrustStore", "team-b", name, "False", "")
	}
	_, asked := w.clouds.seen()
	all := strings.Join(asked, "\n")
	for _, refusal := range []string{"sts.eu-central-1.amazonaws.com/ no trust in system:serviceaccount:team-b:puller", "/oauth2/v2.0/token no trust in system:serviceaccount:team-b:puller",
		":generateAccessToken may not impersonate", "/v1/auth/kubernetes/login no trust in system:serviceaccount:team-b:puller"} {
		require.Contains(t, all, refusal)
	}
	require.NotContains(t, all, "audience is")
	require.NotContains(t, all, "lives for")
	require.NotContains(t, all, "signature")
	require.Contains(t, all, "/v1/auth/token/revoke-self <nil>", "Vault keeps no token")
}

func TestATokenThatLeftIsOfNoUseAtTheAPIServerAndInNoLog(t *testing.T) {
	tokens, _ := w.clouds.seen()
	require.NotEmpty(t, tokens, "after the test of the clouds")
	log, err := os.ReadFile(filepath.Join(w.LogDir(), "landwaiter.log"))
	require.NoError(t, err)
	for _, token := range tokens {
		config := rest.AnonymousClientConfig(w.Config)
		config.BearerToken = token
		clients, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = clients.AuthenticationV1().SelfSubjectReviews().Create(within(t), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
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
	verifier(t, "team-late")
	apply(t, of("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: team-late, name: puller}}"), store("team-late", "gar", garHost, "GAR", "googleProvider: "+pool))
	said := becomes(t, "Store", "team-late", "gar", "False", "AccessDenied: ")
	require.Contains(t, said, "ServiceAccount team-late/puller: landwaiter has no right to get its tokens; grant it with: kubectl create role")
	_, commands, ok := strings.Cut(said, "grant it with: ")
	require.True(t, ok)
	commands, _, _ = strings.Cut(commands, "; ")
	for line := range strings.SplitSeq(commands, " && ") {
		kubectl(t, line)
	}
	becomes(t, "Store", "team-late", "gar", "True", "")
}

func TestAMissingServiceAccountIsNamed(t *testing.T) {
	apply(t, own("TrustStore", "team-late", "gone", "{type: PublicKeys, source: {vault: {address: 'https://"+vaultHost+"', path: transit/keys/release, serviceAccount: {name: gone, role: release}}}}"))
	kubectl(t, "kubectl create role landwaiter-token-gone --namespace=team-late --verb=create --resource=serviceaccounts/token --resource-name=gone")
	kubectl(t, "kubectl create rolebinding landwaiter-token-gone --namespace=team-late --role=landwaiter-token-gone --serviceaccount="+system+":landwaiter")
	becomes(t, "TrustStore", "team-late", "gone", "False", "ServiceAccount team-late/gone does not exist")
}

func TestARightForEveryAccountIsRefused(t *testing.T) {
	apply(t, of("{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: team-wide, name: puller}}"), store("team-wide", "ecr", ecrHost, "ECR", forAWS))
	kubectl(t, "kubectl create role wide --namespace=team-wide --verb=create --resource=serviceaccounts/token")
	kubectl(t, "kubectl create rolebinding wide --namespace=team-wide --role=wide --serviceaccount="+system+":landwaiter")
	becomes(t, "Store", "team-wide", "ecr", "False", "Landwaiter may get the tokens of every account in namespace team-wide")
}

func TestATeamPullsFromGitHubAsAnApp(t *testing.T) {
	image(t, "team/packages")
	verifier(t, "team-github")
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(w.clouds.app)})
	apply(t, of("apiVersion: v1\nkind: Secret\nmetadata: {namespace: team-github, name: app}\nstringData: {appID: '4711', installationID: '42', privateKey: %q}", private),
		own("Store", "team-github", "ghcr", "{registries: [ghcr.io], identity: {provider: GHCR, secretRef: {name: app}}}"))
	becomes(t, "Store", "team-github", "ghcr", "True", "")
	verdict(t, "team-github", "ghcr.io/team/packages:v1", gatekeeper.Allowed, "")
	apply(t, of("apiVersion: v1\nkind: Secret\nmetadata: {namespace: team-github, name: app}\nstringData: {appID: '4712', installationID: '42', privateKey: %q}", private))
	becomes(t, "Store", "team-github", "ghcr", "False", "GitHub refuses the credentials (403)")
}
