//go:build e2e

package evidence

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/gatekeeper"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

// signedAt writes a signature of an image into a repository that lacks the image.
func signedAt(t *testing.T, r *fixture.Registry, repository string, img fixture.Image, key *fixture.CosignKey) {
	t.Helper()
	img.Reference.Repository = repository
	_, err := r.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
	require.NoError(t, err)
}

// requireOnlyLogin fails if a registry has seen another credential than that of user.
func requireOnlyLogin(t *testing.T, r *fixture.Registry, user string) {
	t.Helper()
	seen := false
	for _, request := range r.Requests() {
		if header := request.Header.Get("Authorization"); header != "" {
			seen = true
			require.Equal(t, "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+user)), header)
		}
	}
	require.True(t, seen, "no credential came at all")
}

const plainHTTP = "insecurePlainHTTP: true"

func mirrors(fallback string, hosts ...string) string {
	list := make([]string, len(hosts))
	for i, host := range hosts {
		list[i] = fmt.Sprintf("{host: '%s', path: 'hub/{repository}', fallback: %s}", host, fallback)
	}
	return "mirrors: [" + strings.Join(list, ", ") + "]"
}

func evidence(only bool, repositories ...string) string {
	return fmt.Sprintf("evidence: {exclusive: %t, repositories: [{repository: '%s'}]}", only, strings.Join(repositories, "'}, {repository: '"))
}

func TestAMirrorThatIsBehindDeniesUnlessTheOriginMayFillIn(t *testing.T) {
	key, origin, mirror := newKey(t), plainRegistry(t), plainRegistry(t)
	signed, missing := pushed(t, origin, "team/app", key), pushed(t, origin, "team/new", key)
	copied(t, origin, signed, mirror, "hub/team/app")
	s := serve(t, map[string]string{
		"cluster": store("", "origin", []string{origin.Host()}, nil, plainHTTP, mirrors("Never", mirror.Host())) +
			store("", "mirror", []string{mirror.Host()}, nil, plainHTTP),
		"team-a": rules("team-a", key),
	})
	origin.Reset()
	for _, name := range []string{signed.Reference.String(), signed.Reference.Name() + ":v1"} {
		s.requireVerdict(t, gatekeeper.Denied, "team-a", name, "no signature was found", "looked at "+mirror.Host()+"/hub/team/app: nothing")
	}
	s.requireVerdict(t, gatekeeper.Denied, "team-a", missing.Reference.String(), mirror.Host()+" has no such image", "copy the image to the mirror")
	require.Zero(t, origin.Count(), "the origin is never asked")

	stdout, code := explain(t, s, "team-a", signed.Reference.String(), "--compare-origin")
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stdout, "LOCATIONS")
	require.Contains(t, stdout, "the origin has 1 signatures or attestations that the other repositories lack")
	stdout, _ = explain(t, s, "team-a", missing.Reference.Name()+":v1", "--compare-origin")
	require.Contains(t, stdout, "and the mirror lacks it")

	s.write(t, "cluster", store("", "origin", []string{origin.Host()}, nil, plainHTTP, mirrors("Origin", mirror.Host()))+
		store("", "mirror", []string{mirror.Host()}, nil, plainHTTP))
	for _, img := range []fixture.Image{signed, missing} {
		s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
		s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.Name()+":v1")
	}
}

// explain runs the command with the resources of a server.
func explain(t *testing.T, s *server, namespace, image string, more ...string) (stdout string, code int) {
	t.Helper()
	r := suite.Program{Path: suite.MustTool(t, suite.Landwaiter)}.Run(t, "",
		append([]string{"verify", "--explain", "--config-dir", s.dir, "-n", namespace, image}, more...)...)
	return r.Stdout, r.Code
}

func TestAMirrorThatIsDownDecidesNothing(t *testing.T) {
	key, origin, mirror := newKey(t), plainRegistry(t), plainRegistry(t)
	img := pushed(t, origin, "team/app", key)
	host := mirror.Host()
	require.NoError(t, mirror.Close())
	resources := func(fallback string) string {
		return store("", "origin", []string{origin.Host()}, nil, plainHTTP, mirrors(fallback, host)) + store("", "mirror", []string{host}, nil, plainHTTP)
	}
	s := serve(t, map[string]string{"cluster": resources("Never"), "team-a": rules("team-a", key)})
	origin.Reset()
	s.requireVerdict(t, undecided, "team-a", img.Reference.String(), host)
	require.Zero(t, origin.Count())
	s.write(t, "cluster", resources("Origin"))
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
}

func TestAMirrorThatLiesProvesNothing(t *testing.T) {
	key, stranger := newKey(t), newKey(t)
	for name, lie := range map[string]func(t *testing.T, mirror *fixture.Registry, signed fixture.Image){
		"another manifest for a digest": func(t *testing.T, mirror *fixture.Registry, signed fixture.Image) {
			mirror.SetIntercept(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/manifests/"+signed.Reference.Digest.String()) {
					return false
				}
				other := pushed(t, mirror, "hub/team/other", stranger)
				w.Header().Set("Docker-Content-Digest", other.Reference.Digest.String())
				w.Header().Set("Content-Type", other.Descriptor.MediaType)
				w.Header().Set("Content-Length", fmt.Sprint(other.Descriptor.Size))
				return true
			})
		},
		"the signature of another image": func(t *testing.T, mirror *fixture.Registry, signed fixture.Image) {
			other := pushed(t, mirror, "hub/team/other", key)
			to := signed
			to.Reference.Repository = "hub/team/app"
			_, err := mirror.CopyCosign(t.Context(), other, to)
			require.NoError(t, err)
		},
		"a stranger's signature": func(t *testing.T, mirror *fixture.Registry, signed fixture.Image) {
			signedAt(t, mirror, "hub/team/app", signed, stranger)
		},
	} {
		t.Run(name, func(t *testing.T) {
			origin, mirror := plainRegistry(t), plainRegistry(t)
			img := pushed(t, origin, "team/app", key)
			copied(t, origin, img, mirror, "hub/team/app")
			lie(t, mirror, img)
			resources := func(fallback string) string {
				return store("", "origin", []string{origin.Host()}, nil, plainHTTP, mirrors(fallback, mirror.Host())) +
					store("", "mirror", []string{mirror.Host()}, nil, plainHTTP)
			}
			s := serve(t, map[string]string{"cluster": resources("Never"), "team-a": rules("team-a", key)})
			s.requireVerdict(t, gatekeeper.Denied, "team-a", img.Reference.String())
			s.write(t, "cluster", resources("Origin"))
			s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
		})
	}
}

func TestEvidenceInASecondRegistryIsReadWithItsOwnLogin(t *testing.T) {
	key, origin, signatures := newKey(t), plainRegistry(t), plainRegistry(t)
	img, unsigned := pushed(t, origin, "team/app", nil), pushed(t, origin, "team/other", nil)
	own := pushed(t, origin, "team/own", key)
	signedAt(t, signatures, "signatures", img, key)
	signedAt(t, signatures, "signatures", pushed(t, origin, "team/third", nil), key)
	login(origin, "reader", "reader")
	login(signatures, "auditor", "auditor")
	resources := func(only bool) string {
		return store("", "origin", []string{origin.Host()}, nil, plainHTTP, "imagePullSecrets: [{name: origin}]", evidence(only, signatures.Host()+"/signatures")) +
			store("", "signatures", []string{signatures.Host()}, nil, plainHTTP, "imagePullSecrets: [{name: signatures}]") +
			pullSecret("landwaiter-system", "origin", origin.Host(), "reader", "reader") +
			pullSecret("landwaiter-system", "signatures", signatures.Host(), "auditor", "auditor")
	}
	s := serve(t, map[string]string{"cluster": resources(false), "team-a": rules("team-a", key)})
	origin.Reset()
	signatures.Reset()
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", own.Reference.String())
	s.requireVerdict(t, gatekeeper.Denied, "team-a", unsigned.Reference.String(),
		origin.Host()+"/team/other: nothing; "+signatures.Host()+"/signatures: nothing")
	require.NotZero(t, origin.Asked(".sig"))
	requireOnlyLogin(t, origin, "reader")
	requireOnlyLogin(t, signatures, "auditor")
	stdout, _ := explain(t, s, "team-a", img.Reference.String(), "-o", "json")
	require.Contains(t, stdout, `"repository": "`+signatures.Host()+`/signatures"`)
	require.NotContains(t, stdout, "auditor")

	s.write(t, "cluster", resources(true))
	s.requireVerdict(t, gatekeeper.Denied, "team-a", own.Reference.String(), "(looked at "+signatures.Host()+"/signatures: nothing)")
	origin.Reset()
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
	require.Zero(t, origin.Asked(".sig")+origin.Asked("/referrers/"), "the image's own repository is left out")
}

func TestATenantsLocationsAreItsOwnAndServeNoMandatoryPolicy(t *testing.T) {
	key, origin, mirror, signatures := newKey(t), plainRegistry(t), plainRegistry(t), plainRegistry(t)
	authority := newAuthority(t, "corp")
	img := pushed(t, origin, "team/app", nil)
	copied(t, origin, img, mirror, "hub/team/app")
	signedAt(t, mirror, "hub/team/app", img, key)
	old := pushed(t, mirror, "hub/team/tagged", key)
	tagged := pushed(t, origin, "team/tagged", nil)
	signedAt(t, signatures, "signatures", img, key)
	login(signatures, "team-a", "team-a")
	private := startRegistry(t, key, authority, nil)

	mandatory := strings.ReplaceAll(trusting("gone", key), ", namespace: gone", "")
	for _, kind := range []string{"TrustStore", "Verifier"} {
		mandatory = strings.ReplaceAll(mandatory, "kind: "+kind, "kind: Cluster"+kind)
	}
	mandatory += document("ClusterVerificationPolicy", "", "mandatory",
		"{scope: Mandatory, rules: [{images: ['"+origin.Host()+"/**'], require: [{anyOf: [release]}]}], defaultAction: Allow}")
	loopback := store("", "loopback", []string{origin.Host(), mirror.Host(), signatures.Host()}, nil, plainHTTP)
	own := func(namespace string, lines ...string) string {
		return rules(namespace, key) + store(namespace, "own", []string{origin.Host()}, nil, lines...)
	}
	s := serve(t, map[string]string{
		"cluster": loopback + store("", "corp", []string{"registry.corp.example"}, authority, mirrors("Never", private.host)),
		"team-a": own("team-a", evidence(false, signatures.Host()+"/signatures")) +
			store("team-a", "signatures", []string{signatures.Host()}, nil, "imagePullSecrets: [{name: pull}]") +
			pullSecret("team-a", "pull", signatures.Host(), "team-a", "team-a"),
		"team-b": own("team-b", evidence(false, signatures.Host()+"/signatures")),
		"team-c": rules("team-c", key) + store("team-c", "own", []string{"hub.corp.example"}, authority, mirrors("Never", private.host)),
		"team-d": own("team-d", mirrors("Never", mirror.Host())),
		"team-e": rules("team-e", key) + store("team-e", "own", []string{origin.Host()}, authority, evidence(true, private.host+"/team/app")),
	})
	// Without a mandatory policy, a team's places count for it alone.
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
	s.requireVerdict(t, gatekeeper.Denied, "team-b", img.Reference.String(), signatures.Host())
	s.requireVerdict(t, gatekeeper.Allowed, "team-d", img.Reference.String())
	requireOnlyLogin(t, signatures, "team-a")
	s.requireVerdict(t, gatekeeper.Allowed, "team-d", tagged.Reference.Name()+":v1")

	// A private mirror is for the ClusterStore that names it.
	private.Reset()
	s.requireVerdict(t, gatekeeper.Denied, "team-c", "hub.corp.example/hub"+private.image, "no ClusterStore lists it")
	s.requireVerdict(t, gatekeeper.Denied, "team-e", img.Reference.String(), "no ClusterStore lists it")
	require.Zero(t, private.Count())

	// With a mandatory policy, they no longer suffice.
	s.write(t, "mandatory", mandatory)
	s.requireVerdict(t, gatekeeper.Denied, "team-a", img.Reference.String(), "ClusterVerificationPolicy mandatory requires")
	s.requireVerdict(t, gatekeeper.Denied, "team-d", img.Reference.String(), "ClusterVerificationPolicy mandatory requires")
	s.requireVerdict(t, gatekeeper.Denied, "team-d", tagged.Reference.Name()+":v1", old.Reference.Digest.String(), tagged.Reference.Digest.String(),
		"which counts for ClusterVerificationPolicy mandatory")
	_, err := origin.SignCosign(t.Context(), img, key, fixture.CosignOptions{})
	require.NoError(t, err)
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", img.Reference.String())
	s.requireVerdict(t, gatekeeper.Allowed, "team-d", img.Reference.String())
}

func TestAClusterStoresMirrorMayBePrivate(t *testing.T) {
	key, authority := newKey(t), newAuthority(t, "corp")
	private := startRegistry(t, key, authority, nil)
	s := serve(t, map[string]string{
		"cluster": store("", "hub", []string{"hub.corp.example"}, authority, "mirrors: [{host: '"+private.host+"'}]"),
		"team-a":  rules("team-a", key),
	})
	s.requireVerdict(t, gatekeeper.Allowed, "team-a", "hub.corp.example"+private.image)
	s.requireVerdict(t, gatekeeper.Denied, "team-a", private.host+private.image, "no ClusterStore lists it")
}
