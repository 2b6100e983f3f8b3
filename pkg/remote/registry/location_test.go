package registry_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// first asks the first location of a registry.
type first struct{ verify.Registry }

func of(client *registry.Client, access registry.Access) first { return first{client.For(access)} }

func (f first) Resolve(ctx context.Context, ref image.Reference) (ocispec.Descriptor, error) {
	return f.Locations(ref).Content[0].Resolve(ctx, ref)
}

func (f first) Referrers(ctx context.Context, subject image.Reference) ([]ocispec.Descriptor, error) {
	return f.Locations(subject).Evidence[0].Referrers(ctx, subject)
}

func (f first) Fetch(ctx context.Context, repo image.Reference, desc ocispec.Descriptor, limit int64) ([]byte, error) {
	return f.Locations(repo).Content[0].Fetch(ctx, desc, limit)
}

// Until the first signature or copy is written there, it does not exist; the image's own
// has the image.
func TestARepositoryThatDoesNotExistHoldsNothingUnlessItIsTheImagesOwn(t *testing.T) {
	fallback := "/v2/signatures/manifests/sha256-" + someDigest.Encoded()
	for name, c := range map[string]struct {
		routes     map[string]http.HandlerFunc
		found      int
		why        policy.Reason
		whyAtOwner policy.Reason
	}{
		"it does not exist":    {routes: nil, whyAtOwner: policy.ReasonNotFound},
		"it does, for the tag": {routes: map[string]http.HandlerFunc{fallback: index("signature")}, found: 1, whyAtOwner: policy.ReasonNotFound},
		"the tag of referrers is down": {routes: map[string]http.HandlerFunc{fallback: answerWith(http.StatusBadGateway, "")}, why: "transient",
			whyAtOwner: policy.ReasonNotFound},
		"it refuses access": {routes: map[string]http.HandlerFunc{"/v2/signatures/referrers/": answerWith(http.StatusForbidden, "")},
			why: policy.ReasonAccessDenied, whyAtOwner: policy.ReasonAccessDenied},
		"it says so without the code of a reason": {routes: map[string]http.HandlerFunc{"/v2/signatures/referrers/": answerWith(http.StatusNotFound, plainNotFound)}},
	} {
		for known, repository := range map[string]string{"by the first request": "", "after the host showed its API": "other"} {
			t.Run(name+", "+known, func(t *testing.T) {
				h := hostile.New()
				t.Cleanup(h.Close)
				h.Handle("", "/v2/signatures/referrers/", answerWith(http.StatusNotFound, nameUnknown))
				h.Handle("", "/v2/other/referrers/", index("another"))
				for path, handler := range c.routes {
					h.Handle("", path, handler)
				}
				h.Handle("", fallback+".sig", answerWith(http.StatusNotFound, plainNotFound))
				template, err := image.ParseTemplate(h.Host(), "signatures")
				require.NoError(t, err)
				client := registry.NewClient(registry.Options{})
				t.Cleanup(client.Close)
				access := registry.Access{Namespace: "team-a", Hosts: plain(h.Host()), Stores: []registry.Store{{
					Registries: []string{h.Host()}, Evidence: []registry.Location{{Template: template}}, EvidenceExclusive: true}}}
				own := access
				own.Stores = nil
				if repository != "" {
					_, err := of(client, own).Referrers(t.Context(), parse(t, h.Host()+"/"+repository+"@"+someDigest.String()))
					require.NoError(t, err)
				}
				asked := func(access registry.Access, name string) ([]ocispec.Descriptor, policy.Reason) {
					found, err := of(client, access).Referrers(t.Context(), parse(t, h.Host()+"/"+name+"@"+someDigest.String()))
					if err == nil {
						return found, ""
					}
					return found, reason(t, err)
				}
				found, why := asked(access, "app")
				require.Equal(t, c.why, why)
				require.Len(t, found, c.found)
				_, why = asked(own, "signatures")
				require.Equal(t, c.whyAtOwner, why)
			})
		}
	}
}

// Pods have pull secrets of their own, so whoever meets this looks there.
func TestARefusalWithoutALoginSaysWhereLoginsComeFrom(t *testing.T) {
	own, cluster := policy.ObjectRef{Kind: "Store", Namespace: "team-a", Name: "own"}, policy.ObjectRef{Kind: "ClusterStore", Name: "main"}
	for name, c := range map[string]struct {
		stores    func(host string) []registry.Store
		says, fix string // HOST stands for the host
	}{
		"no Store": {func(string) []registry.Store { return nil }, "and no Store lists HOST",
			"ask an admin of the namespace for a Store that lists HOST"},
		"a Store without a login": {func(h string) []registry.Store { return []registry.Store{{Source: own, Registries: []string{h}}} },
			"and Store team-a/own has none for HOST/app", "add a pull secret for HOST to imagePullSecrets of Store team-a/own"},
		"the cluster's without one": {func(h string) []registry.Store { return []registry.Store{{Source: cluster, Registries: []string{h}}} },
			"and ClusterStore main has none", "ask a cluster admin to add a pull secret"},
		"a Store with the wrong login": {func(h string) []registry.Store {
			return []registry.Store{{Source: own, Registries: []string{h}, Logins: loginFor(h, registry.Credential{Username: "u", Password: "p"})}}
		}, "HOST refuses access with the login of Store team-a/own", "renew the login for HOST that Store team-a/own uses"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostile.New()
			t.Cleanup(h.Close)
			h.Handle("", "/v2/app/", answerWith(http.StatusForbidden, ""))
			access := registry.Access{Namespace: "team-a", Hosts: plain(h.Host()), Stores: c.stores(h.Host())}
			_, err := session(t, registry.Options{}, access).Resolve(t.Context(), parse(t, h.Host()+"/app:v1"))
			var refused *verify.PermanentError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, policy.ReasonAccessDenied, refused.Reason)
			require.Contains(t, err.Error(), strings.ReplaceAll(c.says, "HOST", h.Host()))
			require.Contains(t, refused.Remediation, strings.ReplaceAll(c.fix, "HOST", h.Host()))
			require.Equal(t, !strings.Contains(name, "wrong"), strings.Contains(err.Error(), "not the pull secrets of pods"))
		})
	}
}
