package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/hostile"
)

// index answers with a list of the one referrer that a name stands for.
func index(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		list := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"%s","manifests":[{"mediaType":"%s","digest":"%s","size":2}]}`,
			ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest, digest.FromString(name))
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		w.Header().Set("Content-Length", fmt.Sprint(len(list)))
		_, _ = fmt.Fprint(w, list)
	}
}

const nameUnknown, plainNotFound = `{"errors":[{"code":"NAME_UNKNOWN"}]}`, "404 page not found"

func answerWith(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func TestAQuestionAboutAMissingRepositoryHidesNoEvidence(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/v2/team-b/app/referrers/", index("signature"))
	h.Handle("", "/v2/missing/referrers/", answerWith(http.StatusNotFound, plainNotFound))
	client := registry.NewClient(registry.Options{})
	t.Cleanup(client.Close)
	for _, missing := range []string{"missing", "team-b/app/missing"} {
		_, err := of(client, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())}).
			Referrers(t.Context(), parse(t, h.Host()+"/"+missing+"@"+someDigest.String()))
		require.NoError(t, err)
		for _, namespace := range []verify.Namespace{"team-b", "team-a"} {
			found, err := of(client, registry.Access{Namespace: namespace, Hosts: plain(h.Host())}).
				Referrers(t.Context(), parse(t, h.Host()+"/team-b/app@"+someDigest.String()))
			require.NoError(t, err)
			require.Len(t, found, 1, "the signature of %s is found after a question about %s", namespace, missing)
		}
	}
}

// Whatever a registry showed before, to whom and about what, only costs or saves a request:
// the answer is that of a client that knows nothing.
func TestWhatIsRememberedNeverChangesAnAnswer(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"a list": index("by the API"), "an empty list": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			_, _ = fmt.Fprint(w, `{"schemaVersion":2,"manifests":[]}`)
		},
		"no API": answerWith(http.StatusNotFound, plainNotFound), "no repository": answerWith(http.StatusNotFound, nameUnknown),
		"405": hostile.Status(405), "a web page": answerWith(http.StatusOK, "<html>"), "401": hostile.Status(401), "403": hostile.Status(403),
		"500": hostile.Status(500),
		"a page and no more": func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("n") != "" {
				http.NotFound(w, req)
				return
			}
			w.Header().Set("Link", "<"+req.URL.Path+`?n=2>; rel="next"`)
			index("by the API")(w, req)
		},
	}
	tags := map[string]http.HandlerFunc{"no tag": http.NotFound, "a tag": index("by tag"), "a tag that fails": hostile.Status(500)}
	list := func(client *registry.Client, h *hostile.Registry, repository string) string {
		found, err := of(client, registry.Access{Namespace: "team-a", Hosts: plain(h.Host())}).
			Referrers(t.Context(), parse(t, h.Host()+"/"+repository+"@"+someDigest.String()))
		return fmt.Sprintf("%v %v %v", found, err, verify.IsPermanent(err))
	}
	for answered, api := range answers {
		for tagged, tag := range tags {
			for _, earlier := range []string{"a list", "no API", "no repository", "500"} {
				taught := answers[earlier]
				t.Run(answered+", "+tagged+", after "+earlier, func(t *testing.T) {
					t.Parallel()
					h := hostile.New()
					t.Cleanup(h.Close)
					h.Handle("", "/manifests/"+strings.ReplaceAll(someDigest.String(), ":", "-"), tag)
					h.Handle("", ".sig", http.NotFound)
					h.Handle("", "/referrers/", api)
					h.Handle("", "/other/referrers/", taught)
					ignorant, client := registry.NewClient(registry.Options{}), registry.NewClient(registry.Options{})
					t.Cleanup(ignorant.Close)
					t.Cleanup(client.Close)
					want := list(ignorant, h, "app")
					list(client, h, "other")
					require.Equal(t, want, list(client, h, "app"), "what another repository taught")
					require.Equal(t, want, list(client, h, "app"), "what this one taught")
				})
			}
		}
	}
}

func TestAPageThatIsMissingIsNoAbsenceOfTheAPI(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/referrers/", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Query().Get("n") != "" {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
		w.Header().Set("Link", "<"+req.URL.Path+`?n=2>; rel="next"`)
		_, _ = fmt.Fprint(w, `{"schemaVersion":2,"manifests":[]}`) // the evidence is on the second page
	})
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	_, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.EqualValues(t, "transient", reason(t, err))
}

func TestThePresenceOfTheReferrersAPISavesTheFallbackTag(t *testing.T) {
	for _, noReferrers := range []bool{false, true} {
		r, err := fixture.StartRegistry(fixture.RegistryOptions{NoReferrers: noReferrers})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		first, err := r.PushImage(t.Context(), "app", "v1")
		require.NoError(t, err)
		next, err := r.PushImage(t.Context(), "app", "v2")
		require.NoError(t, err)
		client := registry.NewClient(registry.Options{})
		t.Cleanup(client.Close)
		list := func(namespace verify.Namespace, img fixture.Image) int {
			r.Reset()
			found, err := of(client, registry.Access{Namespace: namespace, Hosts: plain(r.Host())}).Referrers(t.Context(), img.Reference)
			require.NoError(t, err)
			require.Empty(t, found)
			return r.Asked(img.Descriptor.Digest.Encoded())
		}
		want := 2 // the .sig tag and the API
		if noReferrers {
			want = 3 // and the fallback tag, in parallel
		}
		// The request for the fallback tag that the API's answer abandons may arrive late, so
		// what follows is about another image.
		require.LessOrEqual(t, list("team-a", first), 3)
		require.Equal(t, want, list("team-a", next))
		require.Equal(t, want, list("team-b", next), "a cluster admin named the host, so what it has counts for all")
	}
}

// Evidence that a retry may find must not be denied because other evidence is too large.
func TestOneIncompleteListMakesTheWholeTransient(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", ".sig", hostile.Stream(ocispec.MediaTypeImageManifest, 10<<20))
	h.Handle("", "/referrers/", hostile.Status(500))
	s := session(t, registry.Options{}, registry.Access{Hosts: plain(h.Host())})
	_, err := s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.EqualValues(t, "transient", reason(t, err))
	require.ErrorContains(t, err, "larger than")
	require.ErrorContains(t, err, "status 500")
	require.NotContains(t, err.Error(), "\n")
	h.Handle("", ".sig", hostile.Status(500))
	_, err = s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.Equal(t, 1, strings.Count(err.Error(), "status 500"), "%v", err)
	h.Handle("", ".sig", hostile.Stream(ocispec.MediaTypeImageManifest, 10<<20))
	h.Handle("", "/referrers/", hostile.LongList(100))
	_, err = s.Referrers(t.Context(), parse(t, h.Host()+"/app@"+someDigest.String()))
	require.Equal(t, policy.ReasonLimitExceeded, reason(t, err))
}

func TestListsOfManyAccountsAtOnceAreComplete(t *testing.T) {
	h := hostile.New()
	t.Cleanup(h.Close)
	h.Handle("", "/referrers/", func(w http.ResponseWriter, req *http.Request) {
		if strings.Contains(req.URL.Path, "/missing/") {
			http.NotFound(w, req)
			return
		}
		index("signature")(w, req)
	})
	client := registry.NewClient(registry.Options{})
	t.Cleanup(client.Close)
	var all sync.WaitGroup
	for i := range 20 {
		for _, repository := range []string{"app", "missing"} {
			all.Go(func() {
				access := registry.Access{Namespace: verify.Namespace(fmt.Sprint("team-", i)), Hosts: plain(h.Host())}
				ref := parse(t, h.Host()+"/"+repository+"@"+someDigest.String())
				found, err := of(client, access).Referrers(context.WithoutCancel(t.Context()), ref)
				if err != nil || (len(found) == 1) != (repository == "app") {
					t.Errorf("%s: %v %v", repository, found, err)
				}
			})
		}
	}
	all.Wait()
}
