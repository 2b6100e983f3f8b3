package v1beta1_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// fieldsOf are the names of an object's fields.
func fieldsOf(s *apiextensions.JSONSchemaProps) []string {
	return slices.Sorted(maps.Keys(s.Properties))
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// login is what a reference to a ServiceAccount has besides the account: how its
// tokens are used.
type login struct{ required, optional []string }

// logins are the places of references to ServiceAccounts.
func logins() map[string]login {
	cloud := login{optional: []string{"aws", "azure", "google"}}
	return map[string]login{
		"spec.imagePullSecretsFrom": {}, // no token: the account's list of Secrets
		"spec.identity":             cloud,
		"spec.awsSigner":            cloud,
		"spec.source.kms":           cloud,
		"spec.source.vault":         {required: []string{"role"}, optional: []string{"mount"}},
	}
}

// References name objects alone: where these are follows from the scope of the kind.
func TestReferencesHaveNoNamespace(t *testing.T) {
	found := map[string]bool{}
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			name := path[strings.LastIndex(path, ".")+1:]
			lower := strings.ToLower(name)
			var fields, required []string
			switch {
			case s.Type == "array":
				return // its entries follow
			case strings.HasPrefix(path, "spec.access."):
				return // subjects, as in a RoleBinding
			case strings.HasSuffix(lower, "truststoreref"), strings.HasSuffix(lower, "truststorerefs[]"):
				fields, required = []string{"kind", "name"}, []string{"name"}
			case strings.HasSuffix(lower, "keyref"):
				fields, required = []string{"key", "name"}, []string{"key", "name"}
			case strings.HasSuffix(lower, "secretref"), name == "imagePullSecrets[]":
				fields, required = []string{"name"}, []string{"name"}
			// a Tenant makes its account, Google has others
			case name == "serviceAccount" && !strings.HasPrefix(path, "spec.reconciler.") && !strings.HasSuffix(path, ".google.serviceAccount"):
				login, ok := logins()[strings.TrimSuffix(path, ".serviceAccount")]
				require.True(t, ok, "%s %s: what does the account log in to?", kind, path)
				fields, required = sorted(append([]string{"name"}, slices.Concat(login.optional, login.required)...)), sorted(append([]string{"name"}, login.required...))
			default:
				require.NotContains(t, s.Properties, "namespace", "%s %s is no reference by its name", kind, path)
				require.NotContains(t, s.Properties, "name", "%s %s is no reference by its name", kind, path)
				require.False(t, strings.HasSuffix(lower, "ref") || strings.HasSuffix(lower, "refs[]"), "%s %s is none of the known references", kind, path)
				return
			}
			require.Equal(t, fields, fieldsOf(s), "%s %s", kind, path)
			require.Equal(t, required, sorted(s.Required), "%s %s", kind, path)
			found[kind] = true
		})
	}
	for _, kind := range slices.Concat(both("Verifier"), both("Store"), both("TrustStore")) {
		require.True(t, found[kind], "%s has no reference", kind)
	}
}

// What only one of them may have is refused by rules beside the specification.
func TestTwinsHaveTheSameSpecification(t *testing.T) {
	all := crds(t)
	for _, kind := range []string{"Verifier", "Store", "TrustStore", "VerificationPolicy", "Exception"} {
		require.Equal(t, all[kind].schema.Properties["spec"], all["Cluster"+kind].schema.Properties["spec"], kind)
	}
}

func TestWhatWeakensSaysSo(t *testing.T) {
	// In an enumeration these words let something pass. The Notary Project's own words
	// keep their place, and Ignore of revocation is what its specification has.
	notary := []string{"spec.notation.level", "spec.notation.awsSigner.revocation", "spec.notation.revocation", "spec.notation.overrides.expiry",
		"spec.notation.overrides.authenticTimestamp", "spec.notation.overrides.revocation"}
	insecure := map[string]bool{}
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			name := path[strings.LastIndex(path, ".")+1:]
			lower := strings.ToLower(name)
			if strings.Contains(lower, "ignore") || strings.Contains(lower, "skip") || strings.Contains(lower, "plain") || strings.Contains(lower, "unsafe") {
				require.True(t, strings.HasPrefix(name, "insecure"), "%s %s weakens and does not begin with insecure", kind, path)
			}
			if strings.HasPrefix(name, "insecure") {
				require.Equal(t, "boolean", s.Type, "%s %s", kind, path)
				insecure[name] = true
			}
			for _, value := range words(s.Enum) {
				if slices.Contains([]string{"Ignore", "Skip", "Log", "Permissive", "None", "Off"}, value) {
					require.Contains(t, notary, path, "%s %s: %s weakens without an insecure name", kind, path, value)
				}
			}
		})
	}
	require.Equal(t, map[string]bool{"insecureIgnoreTransparencyLog": true, "insecureIgnoreSCT": true, "insecureAllowAnySubject": true,
		"insecureIgnoreIssuer": true, "insecurePlainHTTP": true}, insecure)
}
