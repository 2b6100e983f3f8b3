package provider

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// For every list of keys, either the answered keys are the asked ones, each
// once, and only what the verifier allows succeeds; or there is a system error
// and no item.
func TestAnswersAllKeysOrNone(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	key := rapid.OneOf(
		rapid.Map(rapid.IntRange(0, 600), func(i int) string { return fmt.Sprintf("[team-%d]r.example.com/a%d", i%3, i) }),
		rapid.Map(rapid.IntRange(0, 20), func(i int) string { return fmt.Sprintf("r.example.com/d%d", i) }),
		rapid.SampledFrom([]string{"[a][b]r.example.com/a", "", "[", "r.example.com/A", "alpine", "docker.io/library/alpine", "[]alpine"}),
	)
	size := rapid.OneOf(rapid.IntRange(0, 8), rapid.SampledFrom([]int{511, 512, 513, maxKeys, maxKeys + 1}))
	rapid.Check(t, func(rt *rapid.T) {
		n := size.Draw(rt, "size")
		keys := rapid.SliceOfN(key, n, n).Draw(rt, "keys")
		if n > 0 && rapid.IntRange(0, 3).Draw(rt, "with an undecided key") == 0 {
			keys[rapid.IntRange(0, n-1).Draw(rt, "at")] = "r.example.com/u"
		}
		path := rapid.SampledFrom([]string{"/v1/verify", "/v1/mutate", "/v1/namespaces/team-a/verify", "/ratify/gatekeeper/v1/verify"}).Draw(rt, "path")
		response := ask(t, h, path, keys...)

		asked, distinct, undecided := map[string]bool{}, map[any]bool{}, false
		for _, k := range keys {
			asked[k] = true
			undecided = undecided || k == "r.example.com/u"
			if target, err := endpointOf(t, path).parseKey(k, image.Parse); err == nil {
				distinct[target] = true
			} else {
				distinct[k] = true
			}
		}
		if (response.SystemError != "") != (undecided || n > maxKeys || len(distinct) > maxImages) {
			rt.Fatalf("%d keys, %d images, undecided %t: system error %q", n, len(distinct), undecided, response.SystemError)
		}
		if response.SystemError != "" {
			return // parseAnswer has checked that there are no items
		}
		answered := items(response)
		if len(response.Items) != len(asked) || len(answered) != len(asked) {
			rt.Fatalf("%d distinct keys, %d items", len(asked), len(response.Items))
		}
		for k, item := range answered {
			target, err := endpointOf(t, path).parseKey(k, image.Parse)
			if !asked[k] || (err != nil) != (item.Error != "" && item.Value == nil) && target.ref.Repository[0] != 'd' {
				rt.Fatalf("item of %q: %+v", k, item)
			}
			if succeeded(item) && (err != nil || target.ref.Repository[0] != 'a' && target.ref.Repository != "library/alpine") {
				rt.Fatalf("%q succeeded", k)
			}
		}
	})
}
