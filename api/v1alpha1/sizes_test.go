package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1alpha1"
	read "github.com/landwaiter/landwaiter/pkg/resource"
)

const (
	tooLarge      = "spec holds more than 64 KiB: split it into several resources"
	tooLargeTrust = "spec holds more than 96 KiB: put the text into a ConfigMap or a Secret"
	tooLargeStore = "spec holds more than 64 KiB: put certificates into a ConfigMap or a Secret"
)

// many writes n items that differ, each of size characters.
func many(n, size int, item string) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(item, fmt.Sprintf("%03d%s", i, strings.Repeat("x", size-3))))
	}
	return strings.Join(items, ", ")
}

// sizeRules are about specs that are too large as a whole although each field is within
// its own limit.
func sizeRules() []rule {
	expressions := func(n int) string {
		return "{rules: [{images: ['**'], require: [" + many(n, 8000, "{expression: '%s'}") + "]}]}"
	}
	identities := func(n int) string {
		return "{type: Cosign, cosign: {keyless: {identities: [" + many(n, 1000, "{issuer: '%[1]s', subject: '%[1]s'}") + "]}}, images: [" + many(60, 500, "%s") + "]}"
	}
	bundles := func(n int) string {
		return "{registries: [r], additionalCABundles: [" + many(n, 20_000, "{inline: '%s'}") + "]}"
	}
	repository := func(size int) string {
		return "{type: SigstoreRoot, source: {tuf: {mirror: 'https://m', root: '" + strings.Repeat("x", 65_000) + "', caBundle: {inline: '" + strings.Repeat("x", size) + "'}}}}"
	}
	proxied := func(n int) string {
		return "{registries: [r], caBundle: {inline: '" + strings.Repeat("x", 30_000) + "'}, proxy: {url: 'http://p', noProxy: [" + many(n, 250, "%s") + "], alsoFor: [" + many(n, 250, "%s") + "]}}"
	}
	const long = "{type: Cosign, cosign: {" + keys + ", annotations: {%s}}}"
	return []rule{
		{kinds: both("VerificationPolicy"), path: "spec", message: tooLarge, accepted: []string{expressions(8)}, rejected: []string{expressions(9)}},
		{kinds: both("Verifier"), path: "spec", message: tooLarge, accepted: []string{identities(8)}, rejected: []string{identities(16)}},
		{kinds: both("Verifier"), path: "spec.cosign.annotations", message: "a name has more than 256 characters, or a value more than 1024",
			accepted: in(long, "a: "+strings.Repeat("x", 1024)), rejected: in(long, "a: "+strings.Repeat("x", 1025), strings.Repeat("x", 257)+": a")},
		{kinds: both("Store"), path: "spec", message: tooLargeStore, accepted: []string{bundles(2)}, rejected: []string{bundles(3)}},
		{kinds: []string{"ClusterStore"}, path: "spec", message: tooLargeStore, accepted: []string{proxied(10)}, rejected: []string{proxied(60)}},
		{kinds: both("TrustStore"), path: "spec", message: tooLargeTrust, accepted: []string{repository(20_000)}, rejected: []string{repository(30_000)}},
	}
}

func TestWhatTheDefinitionsAcceptIsKept(t *testing.T) {
	for _, r := range sizeRules() {
		for _, name := range r.kinds {
			kind, _ := v1alpha1.KindNamed(name)
			for _, spec := range r.accepted {
				made := kind.New()
				text, err := json.Marshal(decode(t, object(name, spec)))
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, made))
				require.NoError(t, read.Keep(made))
				require.NoError(t, read.Oversized(made), name)
			}
		}
	}
}
