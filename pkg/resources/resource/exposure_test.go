package resource_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// object decodes a resource of a kind from its spec.
func object(t *testing.T, kind, namespace, name, spec string) v1beta1.Object {
	t.Helper()
	row, ok := v1beta1.KindNamed(kind)
	require.True(t, ok, kind)
	made := row.New()
	require.NoError(t, yaml.UnmarshalStrict([]byte("spec: "+spec), made), spec)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

func TestFindsEveryFieldThroughWhichTheRoleEditDecidesWhatIsTrusted(t *testing.T) {
	const key = "{name: it, key: k}"
	type said struct{ field, object, allows string }
	for name, c := range map[string]struct {
		kind, spec string
		want       []said
	}{
		"keys in a Secret": {"TrustStore", "{type: PublicKeys, source: {secretKeyRef: " + key + "}}",
			[]said{{"spec.source.secretKeyRef", "Secret team-a/it", "replace the keys"}}},
		"keys in a ConfigMap": {"TrustStore", "{type: PublicKeys, source: {configMapKeyRef: " + key + "}}",
			[]said{{"spec.source.configMapKeyRef", "ConfigMap team-a/it", "replace the keys"}}},
		"certificates in a ConfigMap": {"TrustStore", "{type: Certificates, source: {configMapKeyRef: " + key + "}}",
			[]said{{"spec.source.configMapKeyRef", "ConfigMap team-a/it", "replace the certificates"}}},
		"authorities in a Secret": {"TrustStore", "{type: TimestampAuthorities, source: {secretKeyRef: " + key + "}}",
			[]said{{"spec.source.secretKeyRef", "Secret team-a/it", "replace the timestamp authorities"}}},
		"a root in a ConfigMap": {"TrustStore", "{type: SigstoreRoot, source: {configMapKeyRef: " + key + "}}",
			[]said{{"spec.source.configMapKeyRef", "ConfigMap team-a/it", "replace the trusted root"}}},
		"an AWS alias of whose account": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'awskms:///alias/release', secretRef: {name: it}}}}",
			[]said{{"spec.source.kms.secretRef", "Secret team-a/it", "choose the account"}}},
		"who may answer as Vault": {"TrustStore", "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, tokenSecretKeyRef: " + key +
			", caBundle: {configMapKeyRef: " + key + "}}}}", []said{{"spec.source.vault.caBundle.configMapKeyRef", "ConfigMap team-a/it", "traffic to https://v"}}},
		"who may answer as the registry": {"Store", "{registries: [r], caBundle: {secretKeyRef: " + key + "}}",
			[]said{{"spec.caBundle.secretKeyRef", "Secret team-a/it", "what a tag names"}}},
		"keys in the resource": {"TrustStore", "{type: PublicKeys, source: {inline: x}}", nil},
		"an AWS key with its account": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'awskms:///arn:aws:kms:eu-west-1:123456789012:key/k', " +
			"secretRef: {name: it}}}}", nil},
		"a key of a project of Google": {"TrustStore", "{type: PublicKeys, source: {kms: {uri: 'gcpkms://projects/P/k', secretRef: {name: it}}}}", nil},
		"a token that only opens Vault": {"TrustStore", "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, tokenSecretKeyRef: " +
			key + "}}}", nil},
		"a mirror whose content is signed": {"TrustStore", "{type: SigstoreRoot, source: {tuf: {mirror: 'https://m', root: x, caBundle: {configMapKeyRef: " +
			key + "}}}}", nil},
		"pull secrets":               {"Store", "{registries: [r], imagePullSecrets: [{name: it}]}", nil},
		"a cloud login":              {"Store", "{registries: [r], identity: {provider: ECR, secretRef: {name: it}}}", nil},
		"a certificate in the Store": {"Store", "{registries: [r], caBundle: {inline: x}}", nil},
		"a Verifier": {"Verifier", "{type: Cosign, cosign: {keys: {trustStoreRefs: [{name: it}], " +
			"insecureIgnoreTransparencyLog: true}}}", nil},
		"a policy":                         {"VerificationPolicy", "{rules: [{images: ['**'], require: [{anyOf: [it]}]}]}", nil},
		"keys where a cluster admin said":  {"ClusterTrustStore", "{type: PublicKeys, source: {secretKeyRef: {name: it, key: k}}}", nil},
		"certificates where an admin said": {"ClusterStore", "{registries: [r], caBundle: {secretKeyRef: {name: it, key: k}}}", nil},
		"a quota, which refers to nothing": {"ClusterQuota", "{namespaces: [team-a], maxInFlight: 64}", nil},
		"a trust store of a type not yet here": {"TrustStore", "{type: Other, source: {secretKeyRef: " + key + "}}",
			[]said{{"spec.source.secretKeyRef", "Secret team-a/it", "replace the trust material"}}},
	} {
		t.Run(name, func(t *testing.T) {
			row, _ := v1beta1.KindNamed(c.kind)
			namespace := ""
			if row.Namespaced {
				namespace = "team-a"
			}
			found := resource.Exposures(object(t, c.kind, namespace, "res", c.spec))
			require.Len(t, found, len(c.want))
			for i, want := range c.want {
				require.Equal(t, policy.ObjectRef{Kind: c.kind, Namespace: namespace, Name: "res"}, found[i].Resource)
				require.Equal(t, want.field, found[i].Field)
				require.Equal(t, want.object, found[i].Object.String())
				require.Contains(t, found[i].Allows, want.allows)
				require.NotEmpty(t, found[i].Fix)
				for _, word := range []string{want.field, want.object, want.allows, found[i].Fix, "role edit"} {
					require.Contains(t, found[i].String(), word)
				}
			}
		})
	}
}

func TestListsFindingsInOneOrder(t *testing.T) {
	in := func(name string) v1beta1.Object {
		return &v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
			Spec: v1beta1.TrustStoreSpec{Source: v1beta1.TrustSource{SecretKeyRef: &v1beta1.KeyReference{Name: "s", Key: "k"}}}}
	}
	found := resource.Exposures(in("b"), in("a"), in("c"))
	require.Equal(t, resource.Exposures(in("c"), in("b"), in("a")), found)
	require.Equal(t, "TrustStore team-a/a", found[0].Resource.String())
}
