package compile_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

func TestNoSpecOfANamespaceYieldsThePodsIdentity(t *testing.T) {
	for _, environment := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_ID",
		"AZURE_TENANT_ID", "AZURE_CLIENT_SECRET"} {
		t.Setenv(environment, "of-the-pod")
	}
	specs := map[string]string{
		"TrustStore of AWS":    "type: PublicKeys\nsource: {kms: {uri: 'awskms:///alias/release'%s}}",
		"TrustStore of Google": "type: PublicKeys\nsource: {kms: {uri: 'gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k'%s}}",
		"TrustStore of Azure":  "type: PublicKeys\nsource: {kms: {uri: 'azurekms://v.vault.azure.net/k'%s}}",
		"Store of ECR":         "registries: [123456789012.dkr.ecr.eu-west-1.amazonaws.com]\nidentity: {provider: ECR%s}",
		"Store of ACR":         "registries: [team.azurecr.io]\nidentity: {provider: ACR%s}",
		"Store of GAR":         "registries: [europe-docker.pkg.dev]\nidentity: {provider: GAR%s}",
		"Store of GHCR":        "registries: [ghcr.io]\nidentity: {provider: GHCR%s}",
	}
	refs := map[string]string{
		"no secretRef": "", "an empty secretRef": ", secretRef: {}", "an empty name": ", secretRef: {name: ''}",
		"a Secret that is not there": ", secretRef: {name: gone}",
		"an empty Secret":            ", secretRef: {name: creds}", "a Secret of blanks": ", secretRef: {name: blanks}",
	}
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		s := &corev1.Secret{Data: data}
		s.Namespace, s.Name = "team-a", name
		return s
	}
	for what, spec := range specs {
		kind := map[bool]string{true: "TrustStore", false: "Store"}[what[0] == 'T']
		for which, ref := range refs {
			o := written.Objects(t, written.Namespace("team-a", "1"), written.Object(kind, "team-a", "own", fmt.Sprintf(spec, ref)))
			o.Secrets = append(o.Secrets, *secret("creds", nil), *secret("blanks", map[string][]byte{"accessKeyID": []byte(" \n"), "credentials.json": nil}))
			require.Empty(t, resolve.Group(o).Externals()["team-a"], "%s with %s", what, which)
			_, problems := written.Compiled(o)
			require.NotEmpty(t, problems, "%s with %s", what, which)
			require.Contains(t, problems[0].Message, "secretRef", "%s with %s", what, which)
		}
	}
	o := written.Objects(t, written.Namespace("team-a", "1"),
		written.Object("TrustStore", "team-a", "own", fmt.Sprintf(specs["TrustStore of AWS"], ", secretRef: {name: creds}")))
	o.Secrets = append(o.Secrets, *secret("creds", map[string][]byte{"accessKeyID": []byte("AKID")}))
	require.Equal(t, "AKID", resolve.Group(o).Externals()["team-a"][0].Credential("accessKeyID"))
	cluster := written.Objects(t, written.Object("ClusterTrustStore", "", "own", fmt.Sprintf(specs["TrustStore of AWS"], "")))
	require.Len(t, resolve.Group(cluster).Externals()[verify.Cluster], 1, "only the cluster may")
	for _, ref := range []string{", secretRef: {name: creds}", ", secretRef: {name: gone}"} {
		cluster = written.Objects(t, written.Object("ClusterTrustStore", "", "own", fmt.Sprintf(specs["TrustStore of AWS"], ref)))
		cluster.Secrets = append(cluster.Secrets, *secret("creds", nil))
		require.Empty(t, resolve.Group(cluster).Externals(), "a Secret that is named and empty is a mistake there too")
	}
}

func TestAServiceAccountIsOneOfTheResourcesOwnNamespace(t *testing.T) {
	const role = "aws: {roleARN: 'arn:aws:iam::123456789012:role/r', region: eu-west-1}"
	specs := map[string]string{
		"TrustStore of AWS":   "type: PublicKeys\nsource: {kms: {uri: 'awskms:///alias/release', serviceAccount: {%s, " + role + "}}}",
		"TrustStore of Vault": "type: PublicKeys\nsource: {vault: {address: 'https://v', path: p, serviceAccount: {%s, role: r}}}",
		"Store of ECR":        "registries: [123456789012.dkr.ecr.eu-west-1.amazonaws.com]\nidentity: {provider: ECR, serviceAccount: {%s, " + role + "}}",
	}
	for what, spec := range specs {
		kind := map[bool]string{true: "TrustStore", false: "Store"}[what[0] == 'T']
		own := func(owner verify.Namespace, account string) external.Source {
			o := written.Objects(t,
				written.Object(map[bool]string{true: "Cluster" + kind, false: kind}[owner == verify.Cluster], string(owner), "own", fmt.Sprintf(spec, account)))
			found := resolve.Group(o).Externals()[owner]
			require.Len(t, found, 1, what)
			return found[0]
		}
		a, b := own("team-a", "name: puller"), own("team-b", "name: puller")
		require.NotEqual(t, a.As, b.As, "%s: the same words are another account in another namespace", what)
		require.NotEqual(t, a.As, own("team-a", "name: other").As, what)
		require.Equal(t, own("landwaiter-system", "name: puller").As, own(verify.Cluster, "name: puller").As, "%s: the cluster's accounts are in one namespace", what)
	}
}
