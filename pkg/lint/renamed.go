package lint

// renamed returns what fields and values of earlier versions are called now, by their path or
// by field and value.
func renamed() map[string]string {
	return map[string]string{
		"spec.home":                              "homeNamespace",
		"spec.people":                            "access",
		"spec.onDelete":                          "namespaceReclaimPolicy, Keep is Retain and DeleteMade is DeleteCreated",
		"spec.verification.decides":              "policyLevel",
		"spec.evidence.only":                     "exclusive",
		"spec.proxy.alsoFor":                     "additionalHosts",
		"spec.floors":                            "overrideMandatory",
		"spec.cosign.keys.logTrustStoreRef":      "rootTrustStoreRef",
		"spec.attestation.keys.logTrustStoreRef": "rootTrustStoreRef",
		"spec.cosign.keyless.trustStoreRef":      "rootTrustStoreRef",
		"spec.attestation.keyless.trustStoreRef": "rootTrustStoreRef",
		"spec.scope: Floor":                      "Mandatory",
	}
}
