package v1beta1_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// enums gives, for each enumeration, a specification with its value at %s.
func enums() map[string]string {
	all := map[string]string{
		"Verifier spec.notation.trustStoreRefs[].kind": "{type: Notation, notation: {trustStoreRefs: [{kind: %s, name: k}], " +
			"trustedIdentities: ['*']}}",
		"Verifier spec.notation.level":                                    fmt.Sprintf(notationOf, "level: %s"),
		"Verifier spec.notation.revocation":                               fmt.Sprintf(notationOf, "revocation: %s"),
		"Verifier spec.notation.timestamps.verifyTimestamp":               fmt.Sprintf(notationOf, "timestamps: {trustStoreRefs: [{name: t}], verifyTimestamp: %s}"),
		"Verifier spec.notation.signingAuthorities.trustStoreRefs[].kind": fmt.Sprintf(notationOf, "signingAuthorities: {trustStoreRefs: [{kind: %s, name: k}]}"),
		"Verifier spec.notation.awsSigner.revocation": "{type: Notation, notation: {signingAuthorities: {trustStoreRefs: [{name: a}]}, " +
			"awsSigner: {profiles: ['" + profile + "'], revocation: %s}}}",
		"Verifier spec.notation.revocationListTrustStoreRefs[].kind": fmt.Sprintf(notationOf,
			"revocation: Check, revocationListTrustStoreRefs: [{kind: %s, name: k}]"),
		"Verifier spec.notation.timestamps.trustStoreRefs[].kind": fmt.Sprintf(notationOf, "timestamps: {trustStoreRefs: [{kind: %s, name: k}]}"),
		"Verifier spec.notation.overrides.expiry":                 fmt.Sprintf(notationOf, "overrides: {expiry: %s}"),
		"Verifier spec.notation.overrides.authenticTimestamp":     fmt.Sprintf(notationOf, "overrides: {authenticTimestamp: %s}"),
		"Verifier spec.notation.overrides.revocation":             fmt.Sprintf(notationOf, "overrides: {revocation: %s}"),
		"TrustStore spec.type":                                    "{type: %s, source: {inline: x}}",
		"TrustStore spec.hash":                                    "{type: PublicKeys, hash: %s, source: {inline: x}}",
		"Store spec.mirrors[].fallback":                           "{registries: [r.example.com], mirrors: [{host: m.example.com, fallback: %s}]}",
		"Store spec.identity.provider":                            "{registries: [r.example.com], identity: {provider: %s, secretRef: {name: s}}}",
		"VerificationPolicy spec.defaultAction":                   "{defaultAction: %s}",
		"VerificationPolicy spec.enforcementAction":               "{enforcementAction: %s}",
		"VerificationPolicy spec.rules[].require[].types[]":       "{rules: [{images: ['**'], require: [{types: [%s]}]}]}",
		"VerificationPolicy spec.rules[].index":                   "{rules: [{images: ['**'], require: [{types: [Cosign]}], index: %s}]}",
		"VerificationPolicy spec.scope":                           "{scope: %s}",
		"VerificationPolicy spec.tags":                            "{tags: %s}",
		"Tenant spec.namespaceReclaimPolicy":                      "{homeNamespace: a, namespaceReclaimPolicy: %s}",
		"Tenant spec.isolation.podSecurity":                       "{homeNamespace: a, isolation: {podSecurity: %s}}",
		"Tenant spec.isolation.network":                           "{homeNamespace: a, isolation: {network: %s}}",
		"Tenant spec.verification.policyLevel":                    "{homeNamespace: a, verification: {policyLevel: %s}}",
	}
	for field, frame := range map[string]string{"cosign": "{type: Cosign, cosign: {%s}}",
		"attestation": "{type: Attestation, attestation: {predicateType: p, %s}}"} {
		at := "Verifier spec." + field
		all[at+".keys.trustStoreRefs[].kind"] = fmt.Sprintf(frame, "keys: {trustStoreRefs: [{kind: %s, name: k}], insecureIgnoreTransparencyLog: true}")
		all[at+".keys.rootTrustStoreRef.kind"] = fmt.Sprintf(frame, "keys: {trustStoreRefs: [{name: k}], rootTrustStoreRef: {kind: %s, name: k}}")
		all[at+".keyless.rootTrustStoreRef.kind"] = fmt.Sprintf(frame, "keyless: {identities: [{issuer: i, subject: s}], rootTrustStoreRef: {kind: %s, name: k}}")
	}
	return all
}

// together are the enumerations of which a value decides what else a specification
// has: their values with one that is valid.
func together() map[string]map[string]string {
	return map[string]map[string]string{
		"Verifier spec.type":                     {"Cosign": cosign, "Notation": notation, "Attestation": attested},
		"VerificationPolicy spec.rules[].action": {"Require": "require: [{types: [Cosign]}]", "Allow": "index: Itself", "Deny": "index: Itself"},
	}
}

// person is a specification of a Tenant with one person, of a kind.
func person(list, kind string) string {
	namespace := ""
	if kind == string(v1beta1.SubjectServiceAccount) {
		namespace = ", namespace: a"
	}
	return fmt.Sprintf("{homeNamespace: a, access: {%s: [{kind: %s, name: someone%s}]}}", list, kind, namespace)
}

// valid returns a specification with a value of the enumeration at path, and whether
// there is one.
func valid(kind, path, value string) (string, bool) {
	if list, ok := strings.CutPrefix(path, "spec.access."); ok {
		return person(strings.TrimSuffix(list, "[].kind"), value), true
	}
	if kind == "ClusterVerificationPolicy" && value == string(v1beta1.DefaultActionInherit) {
		return "{}", true // only the namespaced twin may inherit, by a rule
	}
	if kind == "VerificationPolicy" && path == "spec.scope" && slices.Contains(constants()["VerificationPolicy scope"], value) {
		return "{}", true // only the cluster's twin has a scope, by a rule
	}
	for _, id := range []string{kind + " " + path, strings.TrimPrefix(kind, "Cluster") + " " + path} {
		if beside, ok := together()[id]; ok {
			if path == "spec.type" {
				return fmt.Sprintf("{type: %s, %s}", value, cmp.Or(beside[value], cosign)), true
			}
			return fmt.Sprintf("{rules: [{images: ['**'], action: %s, %s}]}", value, cmp.Or(beside[value], "index: Itself")), true
		}
		if frame, ok := enums()[id]; ok {
			return fmt.Sprintf(frame, value), true
		}
	}
	return "", false
}

func TestEnumerationsAcceptTheirValuesOnly(t *testing.T) {
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			for _, value := range s.Enum {
				text, ok := valid(kind, path, fmt.Sprint(value))
				require.True(t, ok, "no test for the enumeration of %s at %s", kind, path)
				require.Empty(t, c.check(t, object(kind, text)), "%s %s %v", kind, path, value)
			}
			if len(s.Enum) == 0 {
				return
			}
			for _, value := range []string{"Bogus", strings.ToLower(fmt.Sprint(s.Enum[0])), "''"} {
				text, _ := valid(kind, path, value)
				errs := c.check(t, object(kind, text))
				require.NotEmpty(t, errs, "%s %s %s", kind, path, value)
				require.Equal(t, path, at(errs[0]))
				require.Contains(t, errs[0].Error(), fmt.Sprintf("supported values: %q", s.Enum[0]))
			}
		})
	}
}

func texts[T ~string](values ...T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// constants are the values of each enumeration, by the last part of its path.
func constants() map[string][]string {
	trustStoreKinds := texts(v1beta1.TrustStoreKindTrustStore, v1beta1.TrustStoreKindClusterTrustStore)
	verifierTypes := texts(v1beta1.VerifierTypeCosign, v1beta1.VerifierTypeNotation, v1beta1.VerifierTypeAttestation)
	overrides := texts(v1beta1.OverrideActionEnforce, v1beta1.OverrideActionLog)
	return map[string][]string{
		"Verifier type":            verifierTypes,
		"Verifier kind":            trustStoreKinds,
		"Verifier level":           texts(v1beta1.NotationLevelStrict, v1beta1.NotationLevelPermissive),
		"Verifier revocation":      texts(v1beta1.RevocationModeIgnore, v1beta1.RevocationModeCheck),
		"Verifier verifyTimestamp": texts(v1beta1.TimestampModeAlways, v1beta1.TimestampModeAfterCertificateExpiry),
		"Verifier overrides":       overrides,
		"TrustStore type": texts(v1beta1.TrustStoreTypePublicKeys, v1beta1.TrustStoreTypeCertificates, v1beta1.TrustStoreTypeSigningAuthorities,
			v1beta1.TrustStoreTypeTimestampAuthorities, v1beta1.TrustStoreTypeSigstoreRoot, v1beta1.TrustStoreTypeRevocationLists),
		"TrustStore hash": texts(v1beta1.HashAlgorithmSHA256, v1beta1.HashAlgorithmSHA384, v1beta1.HashAlgorithmSHA512),
		"Store provider": texts(v1beta1.RegistryProviderECR, v1beta1.RegistryProviderACR, v1beta1.RegistryProviderGAR,
			v1beta1.RegistryProviderGHCR),
		"Store fallback":                       texts(v1beta1.MirrorFallbackNever, v1beta1.MirrorFallbackOrigin),
		"VerificationPolicy defaultAction":     texts(v1beta1.DefaultActionDeny, v1beta1.DefaultActionAllow, v1beta1.DefaultActionInherit),
		"VerificationPolicy enforcementAction": texts(v1beta1.EnforcementActionDeny, v1beta1.EnforcementActionWarn),
		"VerificationPolicy action":            texts(v1beta1.RuleActionRequire, v1beta1.RuleActionAllow, v1beta1.RuleActionDeny),
		"VerificationPolicy types[]":           verifierTypes,
		"VerificationPolicy index":             texts(v1beta1.IndexModeItself, v1beta1.IndexModeItselfOrEveryManifest),
		"VerificationPolicy tags":              texts(v1beta1.TagActionPin, v1beta1.TagActionLeave),
		"Tenant namespaceReclaimPolicy":        texts(v1beta1.NamespaceReclaimPolicyRetain, v1beta1.NamespaceReclaimPolicyDeleteCreated),
		"Tenant kind":                          texts(v1beta1.SubjectUser, v1beta1.SubjectGroup, v1beta1.SubjectServiceAccount),
		"Tenant podSecurity":                   texts(v1beta1.PodSecurityRestricted, v1beta1.PodSecurityBaseline, v1beta1.PodSecurityPrivileged),
		"Tenant network":                       texts(v1beta1.NetworkIsolationDeny, v1beta1.NetworkIsolationOpen),
		"Tenant policyLevel":                   texts(v1beta1.PolicyLevelNamespace, v1beta1.PolicyLevelTenant, v1beta1.PolicyLevelCluster),
		"VerificationPolicy scope":             texts(v1beta1.PolicyScopeFallback, v1beta1.PolicyScopeMandatory),
	}
}

func TestEnumerationsAreTheConstantsOfTheTypes(t *testing.T) {
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			if len(s.Enum) == 0 {
				return
			}
			name := path[strings.LastIndex(path, ".")+1:]
			if strings.Contains(path, ".overrides.") {
				name = "overrides"
			}
			id := strings.TrimPrefix(kind, "Cluster") + " " + name
			values, ok := constants()[id]
			require.True(t, ok, "%s %s: no constants for %s", kind, path, id)
			require.ElementsMatch(t, values, texts(words(s.Enum)...), "%s %s", kind, path)
		})
	}
}

func words(values []apiextensions.JSON) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = fmt.Sprint(value)
	}
	return list
}
