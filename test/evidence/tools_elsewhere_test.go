//go:build !e2e

package evidence

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"oras.land/oras-go/v2/content"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// elsewhere is a registry whose images, or what is known about them, are in other ones.
type elsewhere struct {
	origin *fixture.Registry // that images name
	others []*fixture.Registry
	// store says where to read, in the team's Store or else in a ClusterStore.
	store   v1beta1.StoreSpec
	ofTeam  bool
	trusted []byte
}

func (e elsewhere) resources(verifier v1beta1.VerifierSpec) resource.Objects {
	objects := resources(e.origin, verifier, e.trusted)
	for _, other := range e.others {
		objects.Resources = append(objects.Resources, &v1beta1.ClusterStore{
			ObjectMeta: metav1.ObjectMeta{Name: "other"},
			Spec:       v1beta1.StoreSpec{Registries: []string{other.Host()}, InsecurePlainHTTP: true},
		})
	}
	e.store.Registries = []string{e.origin.Host()}
	if e.ofTeam {
		objects.Resources = append(objects.Resources, &v1beta1.Store{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "own"}, Spec: e.store})
		return objects
	}
	for _, object := range objects.Resources {
		if store, ok := object.(*v1beta1.ClusterStore); ok && store.Name == "loopback" {
			plain := store.Spec.InsecurePlainHTTP
			store.Spec = e.store
			store.Spec.InsecurePlainHTTP = plain
		}
	}
	return objects
}

func (e elsewhere) decide(t *testing.T, verifier v1beta1.VerifierSpec, ref image.Reference) verify.Result {
	t.Helper()
	return decideBy(t, e.resources(verifier), ref)
}

// withEvidence returns e with a repository of evidence.
func (e elsewhere) withEvidence(repository string, only bool) elsewhere {
	e.store.Evidence = &v1beta1.Evidence{Repositories: []v1beta1.EvidenceRepository{{Repository: repository}}, Exclusive: only}
	return e
}

// moved returns img under another name.
func moved(t *testing.T, img fixture.Image, name string) fixture.Image {
	t.Helper()
	ref, err := image.Parse(name + "@" + img.Descriptor.Digest.String())
	require.NoError(t, err)
	return fixture.Image{Reference: ref, Descriptor: img.Descriptor}
}

func ownType() v1beta1.VerifierSpec {
	return attesting(predicates["own type"].predicateType, predicates["own type"].yes)
}

// The variable names one repository; cosign adds nothing to it.
func TestAcceptsWhatCosignWritesToCosignRepository(t *testing.T) {
	const flat, each = "signatures", "signatures/" + repository
	for name, c := range map[string]struct {
		evidence       fixture.RegistryOptions
		format         format
		written, named string
		ofTeam         bool
		want           string
	}{
		"v2, tag":                           {format: v2Tag(), written: flat, named: flat, want: typeTag},
		"v2, tag, a repository for each":    {format: v2Tag(), written: each, named: "signatures/{repository}", want: typeTag},
		"v2, tag, by the team's Store":      {format: v2Tag(), written: flat, named: flat, ofTeam: true, want: typeTag},
		"v3, tag":                           {format: v3Tag(), written: flat, named: flat, want: typeTag},
		"v3, bundle":                        {format: v3Bundle(), written: flat, named: flat, want: typeBundle},
		"v3, bundle, a repository for each": {format: v3Bundle(), written: each, named: "signatures/{repository}", want: typeBundle},
		"v3, bundle in a registry without referrers": {evidence: fixture.RegistryOptions{NoReferrers: true}, format: v3Bundle(), written: flat, named: flat,
			want: typeBundle},
		"v3, bundle in a registry that mistakes types": {evidence: fixture.RegistryOptions{WrongTypes: true}, format: v3Bundle(), written: flat, named: flat,
			want: typeBundle},
	} {
		t.Run(name, func(t *testing.T) {
			origin, signatures, command := start(t, fixture.RegistryOptions{}), start(t, c.evidence), c.format.command(t)
			key, stranger := command.generate(t), command.generateAs(t, "stranger")
			img, unsigned := push(t, origin, repository, "v1"), push(t, origin, repository, "v2")
			f := c.format.into(signatures.Host() + "/" + c.written)
			f.sign(t, command, key, img)
			f.attest(t, command, key, img)

			own := elsewhere{origin: origin, others: []*fixture.Registry{signatures}, trusted: key.public, ofTeam: c.ofTeam}
			requireDeniedWithoutSignature(t, own.decide(t, byKey(trusted), img.Reference))
			for _, only := range []bool{false, true} {
				e := own.withEvidence(signatures.Host()+"/"+c.named, only)
				requireAllowed(t, c.want, e.decide(t, byKey(trusted), img.Reference))
				attested := e.decide(t, ownType(), img.Reference)
				require.Equal(t, "allowed", attested.Verdict.Outcome().String(), attested.Verdict.Reason)

				denied := e.decide(t, byKey(trusted), unsigned.Reference)
				requireDeniedWithoutSignature(t, denied)
				require.Contains(t, denied.Verdict.Reason, signatures.Host()+"/"+c.written+": nothing")
				if !only {
					require.Contains(t, denied.Verdict.Reason, img.Reference.Name()+": nothing")
				}
				e.trusted = stranger.public
				requireDenied(t, "WrongKey", e.decide(t, byKey(trusted), img.Reference))
			}
		})
	}
}

// Version 2 writes them into the image's repository whatever the variable says, so the
// repository that it names may not even exist.
func TestCosign2KeepsReferrersWithTheImage(t *testing.T) {
	for name, c := range map[string]struct {
		format format
		want   string
	}{"referrer": {v2Referrer(), typeReferrer}, "bundle": {v2Bundle(), typeBundle}} {
		t.Run(name, func(t *testing.T) {
			for where, options := range map[string]fixture.RegistryOptions{"referrers API": {}, "fallback tag": {NoReferrers: true}} {
				t.Run(where, func(t *testing.T) {
					origin, signatures, command := start(t, options), start(t, options), c.format.command(t)
					key := command.generate(t)
					img := push(t, origin, repository, "v1")
					flat := signatures.Host() + "/signatures"
					c.format.into(flat).sign(t, command, key, img)

					e := elsewhere{origin: origin, others: []*fixture.Registry{signatures}, trusted: key.public}
					requireAllowed(t, c.want, e.decide(t, byKey(trusted), img.Reference))
					requireAllowed(t, c.want, e.withEvidence(flat, false).decide(t, byKey(trusted), img.Reference))
					denied := e.withEvidence(flat, true).decide(t, byKey(trusted), img.Reference)
					requireDeniedWithoutSignature(t, denied)
					require.Contains(t, denied.Verdict.Reason, flat+": nothing")
				})
			}
		})
	}
}

// Anyone who may write to a repository of evidence may file a signature under any digest.
func TestASignatureFiledUnderAnotherDigestProvesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		format format
		refile func(*testing.T, *fixture.Registry, fixture.Image, fixture.Image)
	}{
		"v2, tag": {v2Tag(), func(t *testing.T, registry *fixture.Registry, from, to fixture.Image) {
			_, err := registry.CopyCosign(t.Context(), from, to)
			require.NoError(t, err)
		}},
		"v3, bundle": {v3Bundle(), func(t *testing.T, registry *fixture.Registry, from, to fixture.Image) {
			target, err := registry.Repository(t.Context(), to.Reference.Repository)
			require.NoError(t, err)
			layer := evidence(t, registry, from)
			bundle, err := content.FetchAll(t.Context(), target.Blobs(), layer)
			require.NoError(t, err)
			_, err = fixture.PushBundle(t.Context(), target, to, bundle)
			require.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			origin, signatures, command := start(t, fixture.RegistryOptions{}), start(t, fixture.RegistryOptions{}), c.format.command(t)
			key := command.generate(t)
			img, unsigned := push(t, origin, repository, "v1"), push(t, origin, repository, "v2")
			flat := signatures.Host() + "/signatures"
			c.format.into(flat).sign(t, command, key, img)
			c.refile(t, signatures, moved(t, img, flat), moved(t, unsigned, flat))

			e := elsewhere{origin: origin, others: []*fixture.Registry{signatures}, trusted: key.public}
			for _, only := range []bool{false, true} {
				denied := e.withEvidence(flat, only).decide(t, byKey(trusted), unsigned.Reference)
				requireDenied(t, "WrongDigest", denied)
				require.Contains(t, denied.Verdict.Reason, flat+": 1 to check")
			}
		})
	}
}
