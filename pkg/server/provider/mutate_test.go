package provider

import (
	"context"
	"errors"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

func TestMutationKeepsWhatTheUserWroteAndAddsTheDigest(t *testing.T) {
	at := "@" + someDigest.String()
	for name, c := range map[string]struct{ key, kept, dropped string }{
		"tag":                  {"r.example.com/a:v1", "r.example.com/a:v1" + at, "r.example.com/a" + at},
		"short name":           {"alpine", "alpine" + at, "alpine" + at},
		"short name with tag":  {"alpine:3", "alpine:3" + at, "alpine" + at},
		"port is not a tag":    {"r.example.com:5000/a", "r.example.com:5000/a" + at, "r.example.com:5000/a" + at},
		"port and tag":         {"r.example.com:5000/a:v1", "r.example.com:5000/a:v1" + at, "r.example.com:5000/a" + at},
		"capitals of the host": {"R.example.com/a:v1", "R.example.com/a:v1" + at, "R.example.com/a" + at},
		"digest":               {"r.example.com/x" + at, "r.example.com/x" + at, "r.example.com/x" + at},
		"tag and digest":       {"r.example.com/x:v1" + at, "r.example.com/x:v1" + at, "r.example.com/x" + at},
	} {
		t.Run(name, func(t *testing.T) {
			for drop, want := range map[bool]string{false: c.kept, true: c.dropped} {
				h := testHandler(byRepository, pinning, func(o *Options) { o.DropTag = drop })
				response := ask(t, h, "/v1/mutate", c.key)
				require.Len(t, response.Items, 1, response.SystemError)
				require.Equal(t, c.key, response.Items[0].Key)
				require.Equal(t, want, response.Items[0].Value)
				ref, err := image.Parse(want)
				require.NoError(t, err)
				require.Equal(t, someDigest, ref.Digest)
			}
		})
	}
}

func TestMutationOfADigestAsksNobody(t *testing.T) {
	asked := &calls{}
	h := testHandler(byRepository, asked.resolver(pinning), nil)
	response := ask(t, h, "/v1/mutate", "r.example.com/anything@"+someDigest.String())
	require.Len(t, response.Items, 1)
	require.Empty(t, asked.get())
}

func TestMutationResolvesInTheNamespaceOfThePath(t *testing.T) {
	asked := &calls{}
	h := testHandler(byRepository, asked.resolver(pinning), nil)
	ask(t, h, "/v1/namespaces/team-a/mutate", "r.example.com/a", "R.example.com/a:latest")
	ask(t, h, "/v1/mutate", "r.example.com/a")
	ask(t, h, "/ratify/gatekeeper/v1/mutate", "r.example.com/a")
	require.Equal(t, map[string]int{"team-a|r.example.com/a:latest": 1, "|r.example.com/a:latest": 2}, asked.get())
}

func TestMutationErrorIsAnItemOnlyIfItIsPermanent(t *testing.T) {
	h := testHandler(byRepository, pinning, nil)
	response := ask(t, h, "/v1/mutate", "r.example.com/missing", "r.example.com/[a]", "r.example.com/a")
	require.Empty(t, response.SystemError)
	byKey := items(response)
	require.Contains(t, byKey["r.example.com/missing"].Error, "no such image")
	require.Contains(t, byKey["r.example.com/[a]"].Error, "namespace tag")
	require.NotEmpty(t, byKey["r.example.com/a"].Value)
	require.Contains(t, ask(t, h, "/v1/mutate", "r.example.com/a", "r.example.com/unreachable").SystemError, "503")
}

func TestMutationNeverPinsToWhatWasNotResolved(t *testing.T) {
	ref, err := image.Parse("r.example.com/a:v1")
	require.NoError(t, err)
	other := ref.WithDigest(someDigest)
	other.Repository = "b"
	for name, pinned := range map[string]image.Reference{
		"no digest":          ref,
		"another repository": other,
		"zero":               {},
		"malformed digest":   ref.WithDigest("sha256:abc"),
		"sha512":             ref.WithDigest(digest.SHA512.FromString("x")),
	} {
		t.Run(name, func(t *testing.T) {
			h := testHandler(byRepository, resolverFunc(func(context.Context, verify.Namespace, image.Reference) (image.Reference, error) { return pinned, nil }), nil)
			require.Contains(t, ask(t, h, "/v1/mutate", "r.example.com/a:v1").SystemError, "internal error")
		})
	}
}

func TestPermanentErrorWithoutTextIsStillAnError(t *testing.T) {
	h := testHandler(byRepository, resolverFunc(func(context.Context, verify.Namespace, image.Reference) (image.Reference, error) {
		return image.Reference{}, verify.Permanent(policy.ReasonNotFound, errors.New(""))
	}), nil)
	require.NotEmpty(t, ask(t, h, "/v1/mutate", "r.example.com/a").Items[0].Error)
}
