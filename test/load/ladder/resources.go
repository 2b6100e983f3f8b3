package main

import (
	"encoding/base64"
	"strings"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// ladderConstraints give two of the ladder's namespaces a judge each.
const ladderConstraints = `
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: VerifiedImages, metadata: {name: ladder},
  spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [ladder-verified]}, parameters: {provider: landwaiter-verdict}}}
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: Yardstick, metadata: {name: yardstick},
  spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [ladder-yardstick]}, parameters: {provider: yardstick}}}
`

// ladderResources are the namespaces, and what the cluster demands of images.
func ladderResources(key *fixture.CosignKey) string {
	return `
{apiVersion: v1, kind: Namespace, metadata: {name: ladder-alone}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ladder-yardstick}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ladder-verified}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ladder-ratify}}
---
apiVersion: landwaiter.dev/v1beta1
kind: ClusterTrustStore
metadata: {name: keys}
spec:
  type: PublicKeys
  source:
    inline: |
` + indented(string(key.PEM), "      ") + `
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerifier, metadata: {name: release}, spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}}}
---
{apiVersion: landwaiter.dev/v1beta1, kind: ClusterVerificationPolicy, metadata: {name: signed}, spec: {rules: [{images: ["**"], require: [{anyOf: [release]}]}]}}
`
}

func yardstickTemplate(rules, url string, authority []byte) string {
	return `
apiVersion: externaldata.gatekeeper.sh/v1beta1
kind: Provider
metadata: {name: yardstick}
spec: {url: "` + url + `", timeout: 3, caBundle: ` + base64.StdEncoding.EncodeToString(authority) + `}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: yardstick}
spec:
  crd:
    spec:
      names: {kind: Yardstick}
      validation: {openAPIV3Schema: {type: object, properties: {provider: {type: string}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    code:
    - engine: Rego
      source:
        version: v1
        rego: |
` + indented(rules, "          ") + "\n"
}

func indented(text, indent string) string {
	return indent + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+indent)
}
