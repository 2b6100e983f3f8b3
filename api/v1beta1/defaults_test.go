package v1beta1_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/client-go/util/jsonpath"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// defaults are the values that omission means, by the kind without Cluster. The
// paths are those of cosign; an attestation has the same signers.
func defaults() map[string]any {
	one := int64(1)
	return map[string]any{
		"Verifier spec.images":                                                []any{"**"},
		"Verifier spec.cosign.keyless.thresholds":                             map[string]any{},
		"Verifier spec.cosign.keyless.thresholds.transparencyLogs":            one,
		"Verifier spec.cosign.keyless.thresholds.signedCertificateTimestamps": one,
		"Verifier spec.cosign.keyless.thresholds.timestamps":                  one,
		"Verifier spec.notation.level":                                        "Strict",
		"Verifier spec.notation.timestamps.verifyTimestamp":                   "Always",
		"Verifier spec.notation.awsSigner.revocation":                         "Check",
		"VerificationPolicy spec.defaultAction":                               "Deny",
		"VerificationPolicy spec.enforcementAction":                           "Deny",
		"VerificationPolicy spec.rules[].action":                              "Require",
		"VerificationPolicy spec.rules[].index":                               "Itself",
		"VerificationPolicy spec.rules[].require[].atLeast":                   one,
		"Store spec.mirrors[].path":                                           "{repository}",
		"Store spec.mirrors[].fallback":                                       "Never",
		"TrustStore spec.source.vault.serviceAccount.mount":                   "kubernetes",
		"Quota spec.namespaces":                                               []any{},
		"Quota spec.tenants":                                                  []any{},
		"Tenant spec.namespaceReclaimPolicy":                                  "Retain",
		"Tenant spec.isolation":                                               map[string]any{},
		"Tenant spec.isolation.podSecurity":                                   "Restricted",
		"Tenant spec.isolation.network":                                       "Deny",
		"Tenant spec.verification":                                            map[string]any{},
		"Tenant spec.verification.policyLevel":                                "Namespace",
		"Tenant spec.reconciler.clusterRole":                                  "landwaiter-reconciler",
		"Tenant spec.reconciler.path":                                         "./",
		"Tenant spec.reconciler.source.interval":                              "1m",
	}
}

// absent are the fields whose omission means that there is nothing, or something
// that no schema can say.
func absent() map[string]string {
	all := map[string]string{
		"Verifier spec.cosign":                                            "by type",
		"Verifier spec.notation":                                          "by type",
		"Verifier spec.attestation":                                       "by type",
		"Verifier spec.cosign.keys":                                       "one of",
		"Verifier spec.cosign.keyless":                                    "one of",
		"Verifier spec.cosign.keys.inline":                                "one of",
		"Verifier spec.cosign.keys.trustStoreRefs":                        "one of",
		"Verifier spec.cosign.keys.trustStoreRefs[].kind":                 "the own scope",
		"Verifier spec.cosign.keys.rootTrustStoreRef":                     "Sigstore's public-good root, which is no resource",
		"Verifier spec.cosign.keys.rootTrustStoreRef.kind":                "the own scope",
		"Verifier spec.cosign.keyless.rootTrustStoreRef":                  "Sigstore's public-good root, which is no resource",
		"Verifier spec.cosign.keyless.rootTrustStoreRef.kind":             "the own scope",
		"Verifier spec.cosign.keyless.identities[].issuer":                "one of",
		"Verifier spec.cosign.keyless.identities[].issuerRegExp":          "one of",
		"Verifier spec.cosign.keyless.identities[].subject":               "one of",
		"Verifier spec.cosign.keyless.identities[].subjectRegExp":         "one of",
		"Verifier spec.cosign.keyless.expression":                         "none",
		"Verifier spec.cosign.expression":                                 "none",
		"Verifier spec.cosign.annotations":                                "none",
		"Verifier spec.notation.trustStoreRefs[].kind":                    "the own scope",
		"Verifier spec.notation.timestamps":                               "none are trusted",
		"Verifier spec.notation.trustStoreRefs":                           "signingAuthorities",
		"Verifier spec.notation.trustedIdentities":                        "every one, but only with awsSigner",
		"Verifier spec.notation.signingAuthorities":                       "none are trusted",
		"Verifier spec.notation.signingAuthorities.trustStoreRefs[].kind": "the own scope",
		"Verifier spec.notation.revocation":                               "Check, or with awsSigner Ignore",
		"Verifier spec.notation.revocationListTrustStoreRefs":             "no lists are carried in",
		"Verifier spec.notation.revocationListTrustStoreRefs[].kind":      "the own scope",
		"Verifier spec.notation.awsSigner":                                "AWS Signer is not trusted",
		"Store spec.mirrors":                                              "the registries themselves",
		"Store spec.evidence":                                             "the image's own repository",
		"TrustStore spec.awsSigner":                                       "nobody asks",
		"TrustStore spec.awsSigner.secretRef":                             "one of, or the identity of the pod",
		"TrustStore spec.awsSigner.serviceAccount":                        "one of, or the identity of the pod",
		"Verifier spec.notation.timestamps.trustStoreRefs[].kind":         "the own scope",
		"Verifier spec.notation.overrides":                                "as the level has it",
		"Verifier spec.notation.overrides.expiry":                         "as the level has it",
		"Verifier spec.notation.overrides.authenticTimestamp":             "as the level has it",
		"Verifier spec.notation.overrides.revocation":                     "as the level has it",
		"Store spec.imagePullSecrets":                                     "none",
		"Store spec.identity":                                             "none",
		"Store spec.identity.secretRef":                                   "one of, or the identity of the pod",
		"Store spec.identity.serviceAccount":                              "one of, or the identity of the pod",
		"Store spec.imagePullSecretsFrom":                                 "none",
		"Store spec.additionalCABundles":                                  "none",
		"Store spec.additionalCABundles[].inline":                         "one of",
		"Store spec.additionalCABundles[].secretKeyRef":                   "one of",
		"Store spec.additionalCABundles[].configMapKeyRef":                "one of",
		"Store spec.clientCertificate":                                    "none",
		"Store spec.proxy":                                                "what the environment says",
		"Store spec.proxy.url":                                            "the proxy of the environment",
		"Store spec.proxy.secretRef":                                      "none",
		"Store spec.proxy.caBundle":                                       "none",
		"Store spec.proxy.caBundle.inline":                                "one of",
		"Store spec.proxy.caBundle.secretKeyRef":                          "one of",
		"Store spec.proxy.caBundle.configMapKeyRef":                       "one of",
		"Store spec.proxy.noProxy":                                        "none",
		"Store spec.proxy.additionalHosts":                                "none",
		"Store spec.caBundle":                                             "none",
		"Store spec.caBundle.inline":                                      "one of",
		"Store spec.caBundle.secretKeyRef":                                "one of",
		"Store spec.caBundle.configMapKeyRef":                             "one of",
		"TrustStore spec.hash":                                            "what cosign uses, by the key",
		"TrustStore spec.source.inline":                                   "one of",
		"TrustStore spec.source.secretKeyRef":                             "one of",
		"TrustStore spec.source.configMapKeyRef":                          "one of",
		"TrustStore spec.source.kms":                                      "one of",
		"TrustStore spec.source.kms.secretRef":                            "one of, or the identity of the pod",
		"TrustStore spec.source.kms.serviceAccount":                       "one of, or the identity of the pod",
		"TrustStore spec.source.vault":                                    "one of",
		"TrustStore spec.source.vault.tokenSecretKeyRef":                  "one of",
		"TrustStore spec.source.vault.serviceAccount":                     "one of",
		"TrustStore spec.source.vault.vaultNamespace":                     "none",
		"TrustStore spec.source.vault.caBundle":                           "none",
		"TrustStore spec.source.vault.caBundle.inline":                    "one of",
		"TrustStore spec.source.vault.caBundle.secretKeyRef":              "one of",
		"TrustStore spec.source.vault.caBundle.configMapKeyRef":           "one of",
		"TrustStore spec.source.tuf":                                      "one of",
		"TrustStore spec.source.tuf.mirror":                               "the public-good repository, with its root",
		"TrustStore spec.source.tuf.root":                                 "the public-good repository, with its mirror",
		"TrustStore spec.source.tuf.caBundle":                             "none",
		"TrustStore spec.source.tuf.caBundle.inline":                      "one of",
		"TrustStore spec.source.tuf.caBundle.secretKeyRef":                "one of",
		"TrustStore spec.source.tuf.caBundle.configMapKeyRef":             "one of",
		"VerificationPolicy spec.contact":                                 "that of the Tenant, or nobody",
		"VerificationPolicy spec.rules":                                   "none",
		"VerificationPolicy spec.rules[].require":                         "by action",
		"VerificationPolicy spec.rules[].require[].anyOf":                 "one of",
		"VerificationPolicy spec.rules[].require[].allOf":                 "one of",
		"VerificationPolicy spec.rules[].require[].types":                 "one of",
		"VerificationPolicy spec.rules[].require[].expression":            "one of",
		"VerificationPolicy spec.tags":                                    "what the next level says",
		"Tenant spec.contact":                                             "nobody",
		"Tenant spec.namespaces":                                          "home alone",
		"Tenant spec.namespacePrefix":                                     "those listed",
		"Tenant spec.access":                                              "nobody",
		"Tenant spec.access.admins":                                       "nobody",
		"Tenant spec.access.admins[].namespace":                           "by kind",
		"Tenant spec.access.developers":                                   "nobody",
		"Tenant spec.access.developers[].namespace":                       "by kind",
		"Tenant spec.access.viewers":                                      "nobody",
		"Tenant spec.access.viewers[].namespace":                          "by kind",
		"Tenant spec.reconciler":                                          "no account",
		"Tenant spec.reconciler.serviceAccount":                           "the Tenant's name",
		"Tenant spec.reconciler.source":                                   "no objects for Flux",
		"Tenant spec.reconciler.source.branch":                            "by url",
		"Tenant spec.reconciler.source.secretRef":                         "none",
		"Tenant spec.reconciler.source.exclude":                           "what Flux leaves out by default",
		"Tenant spec.reconciler.variables":                                "none",
		"Tenant spec.reconciler.variablesFrom":                            "none",
		"Tenant spec.isolation.quota":                                     "none",
		"Tenant spec.isolation.registries":                                "no limit",
		"VerificationPolicy spec.scope":                                   "Fallback, in the cluster's; the other twin has none",
		"Exception spec.ticket":                                           "none",
		"Exception spec.images":                                           "one of",
		"Exception spec.namespaces":                                       "one of",
		"Exception spec.delegate":                                         "one of",
		"Exception spec.delegate.namespaces":                              "those of tenants",
		"Exception spec.delegate.tenants":                                 "those listed",
		"Exception spec.delegate.maxDuration":                             "what a flag says",
		"Quota spec.maxInFlight":                                          "what a flag gives to every namespace",
		"Quota spec.registryRequestsPerSecond":                            "what a flag gives to every namespace",
		"Quota spec.cacheSharePercent":                                    "what a flag gives to every namespace",
	}
	for _, at := range []string{"Store spec.identity", "TrustStore spec.awsSigner", "TrustStore spec.source.kms"} {
		maps.Copy(all, inClouds(at+".serviceAccount."))
	}
	return all
}

// inClouds are the fields of the accounts in clouds that trust a ServiceAccount.
func inClouds(at string) map[string]string {
	return map[string]string{
		at + "aws":                   "one of",
		at + "azure":                 "one of",
		at + "google":                "one of",
		at + "aws.region":            "that of the registry or the key",
		at + "google.serviceAccount": "direct access of the federated identity",
	}
}

// Each field that may be omitted has a default, or is on the list of those that
// cannot have one. Omitting a boolean means false.
func TestWhateverOmissionMeansIsADefault(t *testing.T) {
	seen := map[string]bool{}
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		walk("spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			for name, property := range s.Properties {
				id := strings.TrimPrefix(kind, "Cluster") + " " + strings.Replace(path, "spec.attestation", "spec.cosign", 1) + "." + name
				if slices.Contains(s.Required, name) {
					require.Nil(t, property.Default, "%s %s.%s is required", kind, path, name)
					continue
				}
				if want, ok := defaults()[id]; ok {
					require.NotNil(t, property.Default, "%s %s.%s has no default", kind, path, name)
					require.EqualValues(t, fmt.Sprint(want), fmt.Sprint(*property.Default), "%s %s.%s", kind, path, name)
					seen[id] = true
					continue
				}
				require.Nil(t, property.Default, "%s %s.%s has a default that is not on the list", kind, path, name)
				if property.Type != "boolean" {
					require.NotEmpty(t, absent()[id], "%s has no default: give it one, with a row in defaults, or say in absent what leaving it out means", id)
					seen[id] = true
				}
			}
		})
	}
	for id := range defaults() {
		require.True(t, seen[id], "%s does not exist", id)
	}
	for id := range absent() {
		require.True(t, seen[id], "%s does not exist", id)
	}
}

// minimal is the shortest specification of each kind.
func minimal() map[string]string {
	const verifier, store, trustStore = "{type: Cosign, " + cosign + "}", "{registries: [r.example.com]}", "{type: PublicKeys, source: {inline: x}}"
	return map[string]string{
		"Verifier": verifier, "ClusterVerifier": verifier, "Store": store, "ClusterStore": store, "TrustStore": trustStore, "ClusterTrustStore": trustStore,
		"VerificationPolicy": "{}", "ClusterVerificationPolicy": "{}", "ClusterQuota": "{namespaces: [team-a], maxInFlight: 32}",
		"Tenant": "{homeNamespace: team-a}", "Exception": "{" + terms + ", images: [r.example.com/a]}",
		"ClusterException": "{" + terms + ", images: [r.example.com/a], namespaces: [team-a]}",
	}
}

// pending are the conditions of a resource that nobody has looked at.
func pending(t *testing.T, object map[string]any) {
	t.Helper()
	status, ok := object["status"].(map[string]any)
	require.True(t, ok)
	conditions, ok := status["conditions"].([]any)
	require.True(t, ok)
	var types []any
	for _, entry := range conditions {
		condition, ok := entry.(map[string]any)
		require.True(t, ok)
		require.Equal(t, "Unknown", condition["status"])
		require.Equal(t, "Pending", condition["reason"])
		require.NotEmpty(t, condition["message"])
		types = append(types, condition["type"])
	}
	require.Equal(t, []any{v1beta1.ConditionReady, v1beta1.ConditionEffective}, types)
}

// kubectl get prints a column that yields nothing as blank.
func TestNoColumnIsEverBlank(t *testing.T) {
	all := crds(t)
	require.Len(t, minimal(), len(all))
	for kind, c := range all {
		made := decode(t, object(kind, minimal()[kind]))
		require.Empty(t, c.check(t, object(kind, minimal()[kind])), kind)
		defaulting.Default(made, c.structural)
		pending(t, made)
		metadata, ok := made["metadata"].(map[string]any)
		require.True(t, ok)
		metadata["creationTimestamp"] = "2026-01-01T00:00:00Z" // an API server sets it
		var columns []string
		require.NotEmpty(t, c.definition.Spec.Versions)
		for _, column := range append(c.definition.Spec.AdditionalPrinterColumns, c.definition.Spec.Versions[0].AdditionalPrinterColumns...) {
			path := jsonpath.New(column.Name).AllowMissingKeys(true)
			require.NoError(t, path.Parse("{"+column.JSONPath+"}"), "%s %s", kind, column.Name)
			var text bytes.Buffer
			require.NoError(t, path.Execute(&text, made), "%s %s", kind, column.Name)
			// blank says that no operator provisions, Fallback, and that nothing needs a review
			if column.Name != v1beta1.ConditionProvisioned && column.Name != "Scope" && column.Name != "Review" {
				require.NotEmpty(t, strings.TrimSpace(text.String()), "%s: the column %s is blank", kind, column.Name)
			}
			columns = append(columns, column.Name)
		}
		require.Subset(t, columns, []string{"Ready", "Effective", "Reason"}, kind)
		require.Equal(t, "Age", columns[len(columns)-1], "%s: kubectl users look for it at the end", kind)
	}
}
