package v1beta1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	read "github.com/landwaiter/landwaiter/pkg/resources/resource"
)

const tooLarge = "spec holds more than 96 KiB: put the text into a ConfigMap or a Secret"

// sizeRules are about specs that are too large as a whole although each field is within
// its own limit.
func sizeRules() []rule {
	repository := func(size int) string {
		return "{type: SigstoreRoot, source: {tuf: {mirror: 'https://m', root: '" + strings.Repeat("x", 65_000) + "', caBundle: {inline: '" +
			strings.Repeat("x", size) + "'}}}}"
	}
	const long = "{type: Cosign, cosign: {" + keys + ", annotations: {%s}}}"
	return []rule{
		{kinds: both("Verifier"), path: "spec.cosign.annotations", message: "a name has more than 256 characters, or a value more than 1024",
			accepted: in(long, "a: "+strings.Repeat("x", 1024)), rejected: in(long, "a: "+strings.Repeat("x", 1025), strings.Repeat("x", 257)+": a")},
		{kinds: both("TrustStore"), path: "spec", message: tooLarge, accepted: []string{repository(20_000)}, rejected: []string{repository(30_000)}},
	}
}

func TestWhatTheDefinitionsAcceptIsKept(t *testing.T) {
	for _, r := range sizeRules() {
		for _, name := range r.kinds {
			kind, _ := v1beta1.KindNamed(name)
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
