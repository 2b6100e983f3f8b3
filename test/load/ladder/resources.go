package main

import (
	"encoding/base64"
	"fmt"
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

// clusterStore names the stage's registry.
func (s *stage) clusterStore() string {
	return fmt.Sprintf(`apiVersion: landwaiter.dev/v1beta1
kind: ClusterStore
metadata: {name: load}
spec: {registries: [%q], insecurePlainHTTP: true}
`, s.registry.Host())
}

func namespaceObject(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, uid: uid-%[1]s}
`, name)
}

// trustedKey is a TrustStore with a key, and a Verifier of it: "keys" and "release", with a suffix.
func trustedKey(namespace, suffix string, key *fixture.CosignKey) string {
	return fmt.Sprintf(`---
apiVersion: landwaiter.dev/v1beta1
kind: TrustStore
metadata: {name: keys%[2]s, namespace: %[1]s}
spec:
  type: PublicKeys
  source:
    inline: |
%[3]s
---
apiVersion: landwaiter.dev/v1beta1
kind: Verifier
metadata: {name: release%[2]s, namespace: %[1]s}
spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: keys%[2]s}], insecureIgnoreTransparencyLog: true}}}
`, namespace, suffix, indented(string(key.PEM), "      "))
}

// strictPolicy demands the same of every image of a namespace.
func strictPolicy(namespace string, demands ...string) string {
	return fmt.Sprintf(`---
apiVersion: landwaiter.dev/v1beta1
kind: VerificationPolicy
metadata: {name: strict, namespace: %s}
spec: {rules: [{images: ["**"], require: [%s]}]}
`, namespace, strings.Join(demands, ", "))
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
