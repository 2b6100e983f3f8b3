package v1alpha1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
)

// object writes a resource with the specification spec in YAML flow style.
func object(kind, spec string) string {
	metadata := "{name: x, namespace: team-a}"
	if strings.HasPrefix(kind, "Cluster") {
		metadata = "{name: x}"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: %s\nspec: %s\n", v1alpha1.GroupVersion(), kind, metadata, spec)
}

// rule is one CEL rule: where it stands, what it says, specifications that keep
// it and specifications that break it and nothing else.
type rule struct {
	kinds    []string
	path     string
	message  string
	accepted []string
	rejected []string
}

func both(kind string) []string { return []string{kind, "Cluster" + kind} }

// in puts fragments into a specification at the place of %s.
func in(frame string, fragments ...string) []string {
	list := make([]string, len(fragments))
	for i, fragment := range fragments {
		list[i] = fmt.Sprintf(frame, fragment)
	}
	return list
}

func rules() []rule {
	return slices.Concat(verifierRules(), referenceRules(), namespaceRules(), sourceRules(), limitRules())
}

func limitRules() []rule {
	return []rule{{
		kinds: []string{"ClusterLimits"}, path: "spec", message: "set at least one of imagesInWork, registryRequestsPerSecond and cachePercent in spec",
		accepted: in("{namespaces: [team-a], %s}", "imagesInWork: 32", "registryRequestsPerSecond: 1", "cachePercent: 100", "imagesInWork: 32, registryRequestsPerSecond: 1, cachePercent: 1"),
		rejected: []string{"{namespaces: [team-a]}"},
	}}
}

func verifierRules() []rule {
	const keys, keyless = "keys: [{trustStore: k}]", "keyless: {identities: [{issuer: i, subject: s}]}"
	list := []rule{{
		kinds: both("Verifier"), path: "spec", message: "set exactly one of spec.cosign, spec.notation and spec.attestation",
		accepted: []string{"{cosign: {" + keys + "}}", "{notation: {trustStores: [{trustStore: c}], trustedIdentities: ['*']}}", "{attestation: {predicateType: p, " + keys + "}}"},
		rejected: []string{"{}", "{images: ['**']}", "{cosign: {" + keys + "}, attestation: {predicateType: p, " + keys + "}}",
			"{cosign: {" + keys + "}, notation: {trustStores: [{trustStore: c}], trustedIdentities: ['*']}}"},
	}, {
		kinds: both("Verifier"), path: "spec.notation.trustedIdentities", message: `"*" trusts every identity, so it must be the only entry of trustedIdentities`,
		accepted: in("{notation: {trustStores: [{trustStore: c}], trustedIdentities: [%s]}}", "'*'", "'x509.subject: C=DE'", "'x509.subject: C=DE', 'x509.subject: C=FR'"),
		rejected: in("{notation: {trustStores: [{trustStore: c}], trustedIdentities: [%s]}}", "'*', 'x509.subject: C=DE'", "'x509.subject: C=DE', '*'"),
	}, {
		kinds: both("Verifier"), path: "spec.notation", message: "spec.notation.verifyTimestamp is for spec.notation.timestampAuthorities; remove it or name authorities",
		accepted: in("{notation: {trustStores: [{trustStore: c}], trustedIdentities: ['*']%s}}", "", ", timestampAuthorities: [{trustStore: t}]",
			", timestampAuthorities: [{trustStore: t}], verifyTimestamp: Always"),
		rejected: in("{notation: {trustStores: [{trustStore: c}], trustedIdentities: ['*']%s}}", ", verifyTimestamp: Always", ", verifyTimestamp: AfterCertificateExpiry"),
	}}
	for field, frame := range map[string]string{"cosign": "{cosign: {%s}}", "attestation": "{attestation: {predicateType: p, %s}}"} {
		list = append(list, rule{
			kinds: both("Verifier"), path: "spec." + field, message: fmt.Sprintf("set exactly one of spec.%s.keys and spec.%s.keyless", field, field),
			accepted: in(frame, keys, keyless), rejected: in(frame, "", keys+", "+keyless),
		})
		list = append(list, rule{
			kinds: both("Verifier"), path: "spec." + field,
			message:  fmt.Sprintf("spec.%s.logTrustStore is for spec.%s.keys with transparencyLog Required; remove it", field, field),
			accepted: in(frame, keys+", transparencyLog: Required, logTrustStore: {trustStore: r}", keys+", transparencyLog: Required"),
			rejected: in(frame, keys+", logTrustStore: {trustStore: r}", keys+", transparencyLog: Ignore, logTrustStore: {trustStore: r}",
				keyless+", transparencyLog: Required, logTrustStore: {trustStore: r}"),
		})
		for _, name := range []string{"issuer", "subject"} {
			other := map[string]string{"issuer": "subject: s", "subject": "issuer: i"}[name]
			identity := fmt.Sprintf(frame, "keyless: {identities: [{"+other+"%s}]}")
			list = append(list, rule{
				kinds: both("Verifier"), path: "spec." + field + ".keyless.identities[]", message: fmt.Sprintf("set exactly one of %s and %sRegExp", name, name),
				accepted: in(identity, fmt.Sprintf(", %s: x", name), fmt.Sprintf(", %sRegExp: x", name)),
				rejected: in(identity, "", fmt.Sprintf(", %s: x, %sRegExp: x", name, name)),
			})
		}
	}
	return append(list, rule{
		kinds: both("VerificationPolicy"), path: "spec.rules[].require[]", message: "set exactly one of anyOf, allOf, types and expression in a requirement",
		accepted: in("{rules: [{images: ['**'], require: [{%s}]}]}", "anyOf: [v]", "allOf: [v, w]", "types: [Cosign]", "expression: 'true'", "anyOf: [v], atLeast: 2"),
		rejected: in("{rules: [{images: ['**'], require: [{%s}]}]}", "", "atLeast: 2", "anyOf: [v], allOf: [v]", "anyOf: [v], types: [Cosign]", "types: [Cosign], expression: 'true'", "allOf: [v], types: [Cosign]"),
	})
}

// referenceRules are about the one way to name a trust store, wherever it stands.
func referenceRules() []rule {
	var list []rule
	const identities = "identities: [{issuer: i, subject: s}]"
	for path, frame := range map[string]string{
		"spec.cosign.keys[]":                   "{cosign: {keys: [{%s}]}}",
		"spec.cosign.keyless.trustStore":       "{cosign: {keyless: {" + identities + ", trustStore: {%s}}}}",
		"spec.cosign.logTrustStore":            "{cosign: {keys: [{trustStore: k}], transparencyLog: Required, logTrustStore: {%s}}}",
		"spec.notation.trustStores[]":          "{notation: {trustStores: [{%s}], trustedIdentities: ['*']}}",
		"spec.notation.timestampAuthorities[]": "{notation: {trustStores: [{trustStore: c}], trustedIdentities: ['*'], timestampAuthorities: [{%s}]}}",
		"spec.attestation.keys[]":              "{attestation: {predicateType: p, keys: [{%s}]}}",
		"spec.attestation.logTrustStore":       "{attestation: {predicateType: p, keys: [{trustStore: k}], transparencyLog: Required, logTrustStore: {%s}}}",
		"spec.attestation.keyless.trustStore":  "{attestation: {predicateType: p, keyless: {" + identities + ", trustStore: {%s}}}}",
	} {
		list = append(list, rule{
			kinds: both("Verifier"), path: path, message: "name a trust store either by trustStore or by kind and name",
			accepted: in(frame, "trustStore: k", "kind: ClusterTrustStore, name: k", "kind: TrustStore, name: k"),
			rejected: in(frame, "", "kind: TrustStore", "name: k", "trustStore: k, name: k", "trustStore: k, kind: TrustStore", "trustStore: k, kind: TrustStore, name: k"),
		})
	}
	return list
}

// namespaceRules keep a tenant in its namespace, and make a cluster resource say
// which one it means.
func namespaceRules() []rule {
	var list []rule
	for _, r := range []struct{ kind, path, what, frame string }{
		{"Store", "spec.caBundle.secretRef.namespace", "Secrets", "{registries: [r], caBundle: {secretRef: {name: s, key: k%s}}}"},
		{"Store", "spec.caBundle.configMapRef.namespace", "ConfigMaps", "{registries: [r], caBundle: {configMapRef: {name: s, key: k%s}}}"},
		{"TrustStore", "spec.source.secretRef.namespace", "Secrets", "{type: PublicKeys, source: {secretRef: {name: s, key: k%s}}}"},
		{"TrustStore", "spec.source.configMapRef.namespace", "ConfigMaps", "{type: PublicKeys, source: {configMapRef: {name: s, key: k%s}}}"},
		{"TrustStore", "spec.source.vault.token.namespace", "Secrets", "{type: PublicKeys, source: {vault: {address: 'https://v', path: p, token: {name: s, key: k%s}}}}"},
		{"TrustStore", "spec.source.kms.secretRef.namespace", "Secrets", "{type: PublicKeys, source: {kms: {uri: 'awskms:///k', secretRef: {name: s%s}}}}"},
		{"Store", "spec.identity.secretRef.namespace", "Secrets", "{registries: [r], identity: {provider: ECR, secretRef: {name: s%s}}}"},
	} {
		without, with := in(r.frame, ""), in(r.frame, ", namespace: other", ", namespace: team-a")
		list = append(list,
			rule{kinds: []string{r.kind}, message: fmt.Sprintf("leave %s out: only %s of the own namespace can be used", r.path, r.what), accepted: without, rejected: with},
			rule{kinds: []string{"Cluster" + r.kind}, message: fmt.Sprintf("set %s: a cluster resource has no namespace of its own", r.path), accepted: with, rejected: without})
	}
	const secrets = "{registries: [r], imagePullSecrets: [%s]}"
	return append(list, rule{
		kinds: []string{"Store"}, message: "leave namespace out of spec.imagePullSecrets: only Secrets of the own namespace can be used",
		accepted: in(secrets, "", "{name: s}, {name: t}"), rejected: in(secrets, "{name: s, namespace: other}", "{name: s}, {name: t, namespace: other}"),
	}, rule{
		kinds: []string{"ClusterStore"}, message: "set namespace in every entry of spec.imagePullSecrets: a cluster resource has no namespace of its own",
		accepted: in(secrets, "", "{name: s, namespace: ops}"), rejected: in(secrets, "{name: s}", "{name: s, namespace: ops}, {name: t}"),
	})
}

func sourceRules() []rule {
	// Where a reference to an object is given, the namespace rules want one in
	// cluster resources; so these cases differ by scope.
	var list []rule
	for prefix, namespace := range map[string]string{"": "", "Cluster": ", namespace: ops"} {
		secret, configMap := "secretRef: {name: s, key: k"+namespace+"}", "configMapRef: {name: s, key: k"+namespace+"}"
		kms, vault := "kms: {uri: 'awskms:///k', secretRef: {name: s"+namespace+"}}", "vault: {address: 'https://v', path: p, vaultNamespace: eu, caBundle: x, token: {name: s, key: k"+namespace+"}}"
		list = append(list, rule{
			kinds: []string{prefix + "Store"}, path: "spec.caBundle", message: "set exactly one of inline, secretRef and configMapRef in spec.caBundle",
			accepted: in("{registries: [r], caBundle: {%s}}", "inline: x", secret, configMap),
			rejected: in("{registries: [r], caBundle: {%s}}", "", "inline: x, "+secret, "inline: x, "+configMap, secret+", "+configMap),
		}, rule{
			kinds: []string{prefix + "TrustStore"}, path: "spec.source", message: "set exactly one of inline, secretRef, configMapRef, kms, vault and tuf in spec.source",
			accepted: in("{type: PublicKeys, source: {%s}}", "inline: x", secret, configMap, kms, vault),
			rejected: in("{type: PublicKeys, source: {%s}}", "", "inline: x, "+secret, secret+", "+configMap, kms+", "+vault, "inline: x, "+kms),
		}, rule{
			kinds: []string{prefix + "TrustStore"}, path: "spec", message: "spec.source.kms is only for spec.type PublicKeys",
			accepted: []string{"{type: PublicKeys, source: {" + kms + "}}"}, rejected: in("{type: %s, source: {"+kms+"}}", "Certificates", "TimestampAuthorities", "SigstoreRoot"),
		}, rule{
			kinds: []string{prefix + "TrustStore"}, path: "spec", message: "spec.source.vault is not for spec.type SigstoreRoot",
			accepted: in("{type: %s, source: {"+vault+"}}", "PublicKeys", "Certificates", "TimestampAuthorities"), rejected: []string{"{type: SigstoreRoot, source: {" + vault + "}}"},
		})
	}
	return append(list, rule{
		kinds: []string{"TrustStore"}, message: "set spec.source.kms.secretRef: a namespaced trust store needs credentials of its own",
		accepted: []string{"{type: PublicKeys, source: {kms: {uri: 'awskms:///k', secretRef: {name: s}}}}"},
		rejected: []string{"{type: PublicKeys, source: {kms: {uri: 'awskms:///k'}}}"},
	}, rule{
		kinds: []string{"Store"}, message: "set spec.identity.secretRef: a namespaced store needs credentials of its own",
		accepted: []string{"{registries: [r], identity: {provider: ECR, secretRef: {name: s}}}"}, rejected: []string{"{registries: [r], identity: {provider: ECR}}"},
	}, rule{
		kinds: both("TrustStore"), path: "spec", message: "spec.source.tuf is only for spec.type SigstoreRoot",
		accepted: []string{"{type: SigstoreRoot, source: {tuf: {}}}"}, rejected: in("{type: %s, source: {tuf: {}}}", "PublicKeys", "Certificates", "TimestampAuthorities"),
	}, rule{
		kinds: both("TrustStore"), path: "spec.source.tuf", message: "spec.source.tuf needs both mirror and root, or neither for the public-good repository",
		accepted: in("{type: SigstoreRoot, source: {tuf: {%s}}}", "", "mirror: 'https://m', root: '{}'"), rejected: in("{type: SigstoreRoot, source: {tuf: {%s}}}", "mirror: 'https://m'", "root: '{}'"),
	}, rule{
		kinds: both("TrustStore"), path: "spec", message: "spec.hash is only for spec.type PublicKeys; remove it",
		accepted: []string{"{type: PublicKeys, hash: SHA256, source: {inline: x}}", "{type: Certificates, source: {inline: x}}"},
		rejected: []string{"{type: Certificates, hash: SHA256, source: {inline: x}}", "{type: SigstoreRoot, hash: SHA256, source: {inline: x}}"},
	})
}

func TestRulesAcceptAndReject(t *testing.T) {
	all := crds(t)
	covered := map[string]bool{}
	for _, r := range rules() {
		for _, kind := range r.kinds {
			t.Run(kind+" "+r.path+" "+r.message, func(t *testing.T) {
				covered[kind+" "+r.path+" "+r.message] = true
				for _, spec := range r.accepted {
					require.Empty(t, all[kind].check(t, object(kind, spec)), spec)
				}
				require.NotEmpty(t, r.accepted)
				require.NotEmpty(t, r.rejected)
				for _, spec := range r.rejected {
					errs := all[kind].check(t, object(kind, spec))
					require.Len(t, errs, 1, spec)
					require.Equal(t, r.path, at(errs[0]), spec)
					require.Equal(t, r.message, errs[0].Detail, spec)
				}
			})
		}
	}
	for kind, c := range all {
		walk("", c.schema, func(path string, s *apiextensions.JSONSchemaProps) {
			for _, declared := range s.XValidations {
				require.True(t, covered[kind+" "+path+" "+declared.Message], "no test for the rule of %s at %q: %s", kind, path, declared.Message)
			}
		})
	}
}

// enums gives, for each enumeration, a specification with its value at %s.
func enums() map[string]string {
	return map[string]string{
		"Verifier spec.cosign.keys[].kind":                              "{cosign: {keys: [{kind: %s, name: k}]}}",
		"Verifier spec.cosign.transparencyLog":                          "{cosign: {keys: [{trustStore: k}], transparencyLog: %s}}",
		"Verifier spec.cosign.logTrustStore.kind":                       "{cosign: {keys: [{trustStore: k}], transparencyLog: Required, logTrustStore: {kind: %s, name: k}}}",
		"Verifier spec.cosign.keyless.signedCertificateTimestamps":      "{cosign: {keyless: {identities: [{issuer: i, subject: s}], signedCertificateTimestamps: %s}}}",
		"Verifier spec.attestation.keyless.signedCertificateTimestamps": "{attestation: {predicateType: p, keyless: {identities: [{issuer: i, subject: s}], signedCertificateTimestamps: %s}}}",
		"Verifier spec.cosign.keyless.trustStore.kind":                  "{cosign: {keyless: {identities: [{issuer: i, subject: s}], trustStore: {kind: %s, name: k}}}}",
		"Verifier spec.notation.trustStores[].kind":                     "{notation: {trustStores: [{kind: %s, name: k}], trustedIdentities: ['*']}}",
		"Verifier spec.notation.level":                                  "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], level: %s}}",
		"Verifier spec.notation.revocation":                             "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], revocation: %s}}",
		"Verifier spec.notation.verifyTimestamp":                        "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], timestampAuthorities: [{trustStore: t}], verifyTimestamp: %s}}",
		"Verifier spec.notation.timestampAuthorities[].kind":            "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], timestampAuthorities: [{kind: %s, name: k}]}}",
		"Verifier spec.notation.overrides.expiry":                       "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], overrides: {expiry: %s}}}",
		"Verifier spec.notation.overrides.authenticTimestamp":           "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], overrides: {authenticTimestamp: %s}}}",
		"Verifier spec.notation.overrides.revocation":                   "{notation: {trustStores: [{trustStore: k}], trustedIdentities: ['*'], overrides: {revocation: %s}}}",
		"Verifier spec.attestation.transparencyLog":                     "{attestation: {predicateType: p, keys: [{trustStore: k}], transparencyLog: %s}}",
		"Verifier spec.attestation.logTrustStore.kind":                  "{attestation: {predicateType: p, keys: [{trustStore: k}], transparencyLog: Required, logTrustStore: {kind: %s, name: k}}}",
		"Verifier spec.attestation.keys[].kind":                         "{attestation: {predicateType: p, keys: [{kind: %s, name: k}]}}",
		"Verifier spec.attestation.keyless.trustStore.kind":             "{attestation: {predicateType: p, keyless: {identities: [{issuer: i, subject: s}], trustStore: {kind: %s, name: k}}}}",
		"TrustStore spec.type":                                          "{type: %s, source: {inline: x}}",
		"TrustStore spec.hash":                                          "{type: PublicKeys, hash: %s, source: {inline: x}}",
		"Store spec.identity.provider":                                  "{registries: [r], identity: {provider: %s, secretRef: {name: s}}}",
		"ClusterStore spec.identity.provider":                           "{registries: [r], identity: {provider: %s}}",
		"VerificationPolicy spec.default":                               "{default: %s}",
		"VerificationPolicy spec.rules[].require[].types[]":             "{rules: [{images: ['**'], require: [{types: [%s]}]}]}",
		"VerificationPolicy spec.mode":                                  "{mode: %s}",
		"VerificationPolicy spec.rules[].index":                         "{rules: [{images: ['**'], require: [{types: [Cosign]}], index: %s}]}",
		"ClusterVerificationPolicy spec.enforcement":                    "{enforcement: %s}",
	}
}

func TestEnumerationsAcceptTheirValuesOnly(t *testing.T) {
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			if len(s.Enum) == 0 {
				return
			}
			frame, ok := enums()[kind+" "+path]
			if !ok {
				frame, ok = enums()[strings.TrimPrefix(kind, "Cluster")+" "+path]
			}
			require.True(t, ok, "no test for the enumeration of %s at %s", kind, path)
			for _, value := range s.Enum {
				require.Empty(t, c.check(t, object(kind, fmt.Sprintf(frame, value))), "%s %s %v", kind, path, value)
			}
			for _, value := range []string{"Bogus", strings.ToLower(fmt.Sprint(s.Enum[0])), "''"} {
				errs := c.check(t, object(kind, fmt.Sprintf(frame, value)))
				require.NotEmpty(t, errs, "%s %s %s", kind, path, value)
				require.Equal(t, path, at(errs[0]))
				require.Contains(t, errs[0].Error(), fmt.Sprintf("supported values: %q", s.Enum[0]))
			}
		})
	}
}

func TestEnumerationsAreTheConstantsOfTheTypes(t *testing.T) {
	for path, values := range map[string][]string{
		"Verifier spec.cosign.transparencyLog":       {string(v1alpha1.TransparencyLogRequired), string(v1alpha1.TransparencyLogIgnore)},
		"Verifier spec.notation.level":               {string(v1alpha1.LevelStrict), string(v1alpha1.LevelPermissive)},
		"Verifier spec.notation.revocation":          {string(v1alpha1.RevocationIgnore), string(v1alpha1.RevocationCheck)},
		"Verifier spec.notation.verifyTimestamp":     {string(v1alpha1.TimestampAlways), string(v1alpha1.TimestampAfterExpiry)},
		"Verifier spec.notation.overrides.expiry":    {string(v1alpha1.OverrideEnforce), string(v1alpha1.OverrideLog)},
		"Store spec.identity.provider":               {string(v1alpha1.ProviderECR), string(v1alpha1.ProviderACR), string(v1alpha1.ProviderGAR)},
		"TrustStore spec.hash":                       {string(v1alpha1.SHA256), string(v1alpha1.SHA384), string(v1alpha1.SHA512)},
		"VerificationPolicy spec.default":            {string(v1alpha1.DefaultDeny), string(v1alpha1.DefaultAllow)},
		"VerificationPolicy spec.mode":               {string(v1alpha1.ModeEnforce), string(v1alpha1.ModeWarn)},
		"VerificationPolicy spec.rules[].index":      {string(v1alpha1.IndexItself), string(v1alpha1.IndexOrManifests)},
		"ClusterVerificationPolicy spec.enforcement": {string(v1alpha1.EnforcementDefault), string(v1alpha1.EnforcementFloor)},
		"TrustStore spec.type": {string(v1alpha1.PublicKeys), string(v1alpha1.Certificates),
			string(v1alpha1.TimestampAuthorities), string(v1alpha1.SigstoreRoot)},
		"VerificationPolicy spec.rules[].require[].types[]": {string(v1alpha1.TypeCosign), string(v1alpha1.TypeNotation), string(v1alpha1.TypeAttestation)},
	} {
		kind, at, _ := strings.Cut(path, " ")
		spec := crds(t)[kind].schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			if path != at {
				return
			}
			var declared []string
			for _, value := range s.Enum {
				declared = append(declared, fmt.Sprint(value))
			}
			require.ElementsMatch(t, values, declared, path)
		})
	}
}

func TestRejectsUnknownFieldsAndWrongSizes(t *testing.T) {
	all := crds(t)
	for name, c := range map[string]struct{ kind, spec, path, message string }{
		"unknown field":         {"Store", "{registries: [r], registry: r}", "spec.registry", "unknown field"},
		"tenant without TLS":    {"Store", "{registries: [r], insecurePlainHTTP: true}", "spec.insecurePlainHTTP", "unknown field"},
		"tenant with a floor":   {"VerificationPolicy", "{enforcement: Floor}", "spec.enforcement", "unknown field"},
		"no registry":           {"Store", "{registries: []}", "spec.registries", "at least 1"},
		"registries left out":   {"Store", "{}", "spec.registries", "Required value"},
		"registry twice":        {"ClusterStore", "{registries: [r, r]}", "spec.registries[]", "Duplicate value"},
		"rule without images":   {"VerificationPolicy", "{rules: [{images: [], require: [{anyOf: [v]}]}]}", "spec.rules[].images", "at least 1"},
		"rule without a demand": {"VerificationPolicy", "{rules: [{images: ['**'], require: []}]}", "spec.rules[].require", "at least 1"},
		"nobody needs to sign":  {"VerificationPolicy", "{rules: [{images: ['**'], require: [{anyOf: [v], atLeast: 0}]}]}", "spec.rules[].require[].atLeast", "greater than or equal to 1"},
		"no identity":           {"Verifier", "{notation: {trustStores: [{trustStore: c}], trustedIdentities: []}}", "spec.notation.trustedIdentities", "at least 1"},
		"no key":                {"Verifier", "{cosign: {keys: []}}", "spec.cosign.keys", "at least 1"},
		"empty identity":        {"Verifier", "{cosign: {keyless: {identities: [{issuer: '', subject: s}]}}}", "spec.cosign.keyless.identities[].issuer", "at least 1 chars"},
		"limits for nobody":     {"ClusterLimits", "{namespaces: [], cachePercent: 1}", "spec.namespaces", "at least 1"},
		"limits for a pattern":  {"ClusterLimits", "{namespaces: ['team-*'], cachePercent: 1}", "spec.namespaces[]", "should match"},
		"more than all":         {"ClusterLimits", "{namespaces: [a], cachePercent: 101}", "spec.cachePercent", "less than or equal to 100"},
		"no image in work":      {"ClusterLimits", "{namespaces: [a], imagesInWork: 31}", "spec.imagesInWork", "greater than or equal to 32"},
		"no request at all":     {"ClusterLimits", "{namespaces: [a], registryRequestsPerSecond: 0}", "spec.registryRequestsPerSecond", "greater than or equal to 1"},
		"no source":             {"TrustStore", "{type: PublicKeys}", "spec.source", "Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := all[c.kind].check(t, object(c.kind, c.spec))
			require.NotEmpty(t, errs)
			require.Equal(t, c.path, at(errs[0]))
			require.Contains(t, errs[0].Error(), c.message)
		})
	}
}

func TestSpecificationIsRequired(t *testing.T) {
	for kind, c := range crds(t) {
		text := strings.Replace(object(kind, "{}"), "spec: {}", "", 1)
		require.Contains(t, c.check(t, text).ToAggregate().Error(), "spec: Required value", kind)
	}
}
