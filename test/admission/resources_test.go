//go:build e2e || nightly

package admission

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// The resources that tests are made of, as YAML documents. An empty namespace
// makes the cluster's twin.

func header(namespace, kind, name string) string {
	if namespace == "" {
		return fmt.Sprintf("\n---\napiVersion: landwaiter.dev/v1beta1\nkind: Cluster%s\nmetadata: {name: %s}\n", kind, name)
	}
	return fmt.Sprintf("\n---\napiVersion: landwaiter.dev/v1beta1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", kind, name, namespace)
}

func trustStore(namespace, name string, key *fixture.CosignKey) string {
	return header(namespace, "TrustStore", name) + "spec:\n  type: PublicKeys\n  source:\n    inline: |\n" + indent(string(key.PEM))
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
}

func verifier(namespace, name, store string) string {
	return header(namespace, "Verifier", name) +
		fmt.Sprintf("spec: {type: Cosign, cosign: {keys: {trustStoreRefs: [{name: %s}], insecureIgnoreTransparencyLog: true}}}\n", store)
}

func policy(namespace, name, rules string) string {
	return header(namespace, "VerificationPolicy", name) + "spec: " + rules + "\n"
}

// own is a whole configuration of a namespace: images must be signed with key.
func own(namespace string, key *fixture.CosignKey) string {
	return trustStore(namespace, "keys", key) + verifier(namespace, "release", "keys") +
		policy(namespace, "release", `{rules: [{images: ["**"], require: [{anyOf: [release]}]}]}`)
}
