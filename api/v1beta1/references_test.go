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
	cloud := login{optional: []string{"awsRegion", "awsRoleARN", "azureClientID", "azureTenantID", "googleProvider", "googleServiceAccount"}}
	return map[string]login{
		"spec.imagePullSecretsFrom": {}, // no token: the account's list of Secrets
		"spec.identity":             cloud,
		"spec.awsSigner":            cloud,
		"spec.source.kms":           cloud,
		"spec.source.vault":         {required: []string{"role"}, optional: []string{"mount"}},
	}
}

// The type of a reference says whose object it names: one of a namespaced kind has
// no field for another namespace, and one of a cluster kind requires it.
func TestReferencesDifferByTypeOnly(t *testing.T) {
	found := map[string]bool{}
	for kind, c := range crds(t) {
		inCluster := strings.HasPrefix(kind, "Cluster")
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
			case name == "serviceAccount" && !strings.HasPrefix(path, "spec.reconciler."): // a Tenant makes its account
				login, ok := logins()[strings.TrimSuffix(path, ".serviceAccount")]
				require.True(t, ok, "%s %s: what does the account log in to?", kind, path)
				fields, required = sorted(append([]string{"name"}, slices.Concat(login.optional, login.required)...)), sorted(append([]string{"name"}, login.required...))
			default:
				require.NotContains(t, s.Properties, "namespace", "%s %s is no reference by its name", kind, path)
				require.NotContains(t, s.Properties, "name", "%s %s is no reference by its name", kind, path)
				require.False(t, strings.HasSuffix(lower, "ref") || strings.HasSuffix(lower, "refs[]"), "%s %s is none of the known references", kind, path)
				return
			}
			if inCluster && !strings.Contains(lower, "truststore") {
				fields, required = sorted(append(fields, "namespace")), sorted(append(required, "namespace"))
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

// stripped copies a schema without descriptions and without what a cluster kind's
// references have in addition.
func stripped(s apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
	made := *s.DeepCopy()
	made.Description = ""
	if _, reference := made.Properties["namespace"]; reference {
		delete(made.Properties, "namespace")
		made.Required = slices.DeleteFunc(made.Required, func(name string) bool { return name == "namespace" })
	}
	for name, property := range made.Properties {
		made.Properties[name] = stripped(property)
	}
	if made.Items != nil && made.Items.Schema != nil {
		inner := stripped(*made.Items.Schema)
		made.Items.Schema = &inner
	}
	return made
}

// without takes rules with these messages, which must be there, from a schema.
func without(t *testing.T, s *apiextensions.JSONSchemaProps, messages ...string) {
	t.Helper()
	for _, message := range messages {
		index := slices.IndexFunc(s.XValidations, func(r apiextensions.ValidationRule) bool { return r.Message == message })
		require.GreaterOrEqual(t, index, 0, message)
		s.XValidations = slices.Delete(s.XValidations, index, index+1)
	}
}

// inside does something to the schema of the object at path.
func inside(t *testing.T, s *apiextensions.JSONSchemaProps, do func(*apiextensions.JSONSchemaProps), path ...string) {
	t.Helper()
	if len(path) == 0 {
		do(s)
		return
	}
	inner, ok := s.Properties[path[0]]
	require.True(t, ok, path[0])
	inside(t, &inner, do, path[1:]...)
	s.Properties[path[0]] = inner
}

// A namespaced kind and its Cluster twin have the same fields with the same rules.
// Besides references, this is all in which they differ.
func TestTwinsShareWhatTheyHaveInCommon(t *testing.T) {
	all := crds(t)
	// Only a cluster admin may say these.
	extra := map[string][]string{"Verifier": nil, "Store": {"insecurePlainHTTP", "proxy"}, "TrustStore": nil, "VerificationPolicy": {"scope"}}
	ownRules := map[string][]string{"Store": {noPatterns}}
	twinRules := map[string][]string{"Store": {plainPatterns, plainProxy}, "VerificationPolicy": {inheritsNothing}}
	// A cluster resource may leave both out and use the identity of the pod.
	credentials := map[string][][]string{"Store": {{"identity"}}, "TrustStore": {{"source", "kms"}, {"awsSigner"}}}
	for kind, fields := range extra {
		own, twin := stripped(all[kind].schema.Properties["spec"]), stripped(all["Cluster"+kind].schema.Properties["spec"])
		for _, name := range fields {
			require.NotContains(t, own.Properties, name)
			require.Contains(t, twin.Properties, name)
			delete(twin.Properties, name)
		}
		without(t, &own, ownRules[kind]...)
		without(t, &twin, twinRules[kind]...)
		for _, path := range credentials[kind] {
			inside(t, &own, func(s *apiextensions.JSONSchemaProps) { without(t, s, exactlyOne("secretRef", "serviceAccount")) }, path...)
			inside(t, &twin, func(s *apiextensions.JSONSchemaProps) { without(t, s, atMostOne("secretRef", "serviceAccount")) }, path...)
		}
		require.Equal(t, normalised(own), normalised(twin), kind)
	}
}

// normalised makes lists without entries nil.
func normalised(s apiextensions.JSONSchemaProps) apiextensions.JSONSchemaProps {
	if len(s.Required) == 0 {
		s.Required = nil
	}
	if len(s.XValidations) == 0 {
		s.XValidations = nil
	}
	for name, property := range s.Properties {
		s.Properties[name] = normalised(property)
	}
	return s
}

func TestWhatWeakensSaysSo(t *testing.T) {
	// In an enumeration these words let something pass. The Notary Project's own words
	// keep their place, and Ignore of revocation is what its specification has.
	notary := []string{"spec.notation.level", "spec.notation.awsSigner.revocation", "spec.notation.revocation", "spec.notation.overrides.expiry", "spec.notation.overrides.authenticTimestamp", "spec.notation.overrides.revocation"}
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
	require.Equal(t, map[string]bool{"insecureIgnoreTransparencyLog": true, "insecureIgnoreSCT": true, "insecurePlainHTTP": true}, insecure)
}
