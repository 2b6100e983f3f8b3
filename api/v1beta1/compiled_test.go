package v1beta1_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	read "github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

// surroundings have what the specifications of these tests refer to.
type surroundings struct {
	objects   read.Objects
	key, root []byte
	authority string
}

func newSurroundings(t *testing.T) surroundings {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	authority, err := fixture.NewAuthority("authority")
	require.NoError(t, err)
	public, err := sigstore.New()
	require.NoError(t, err)
	root, err := public.TrustedRoot()
	require.NoError(t, err)
	s := surroundings{key: key.PEM, root: root, authority: string(authority.CertificatePEM)}
	for _, name := range []string{"team-a", "team-b", "ops", "a", "b", "iris", "kube-system", "default", "flux-system"} {
		s.objects.Namespaces = append(s.objects.Namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}})
	}
	for name, of := range map[string]v1beta1.TrustStoreType{"k": v1beta1.TrustStoreTypePublicKeys, "c": v1beta1.TrustStoreTypeCertificates,
		"a": v1beta1.TrustStoreTypeSigningAuthorities, "t": v1beta1.TrustStoreTypeTimestampAuthorities, "r": v1beta1.TrustStoreTypeSigstoreRoot} {
		text := map[string]string{"k": string(key.PEM), "r": string(root)}[name]
		if text == "" {
			text = s.authority
		}
		own, shared := &v1beta1.TrustStore{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}},
			&v1beta1.ClusterTrustStore{ObjectMeta: metav1.ObjectMeta{Name: name}}
		own.Spec.Type, own.Spec.Source.Inline, shared.Spec.Type, shared.Spec.Source.Inline = of, text, of, text
		s.objects.Resources = append(s.objects.Resources, own, shared)
	}
	signers := v1beta1.Signers{Keys: &v1beta1.Keys{Inline: string(key.PEM), TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}
	for _, name := range []string{"v", "w"} {
		v := v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign, Cosign: &v1beta1.CosignVerifier{Signers: signers}}
		s.objects.Resources = append(s.objects.Resources, &v1beta1.Verifier{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Spec: v},
			&v1beta1.ClusterVerifier{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v})
	}
	for _, namespace := range []string{"team-a", read.DefaultClusterResourceNamespace} {
		data := map[string][]byte{"k": key.PEM, ".dockerconfigjson": []byte(`{"auths": {"r.example.com": {"auth": "bWU6c2VjcmV0"}}}`)}
		s.objects.Secrets = append(s.objects.Secrets,
			corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, Type: corev1.SecretTypeDockerConfigJson, Data: data})
		s.objects.ConfigMaps = append(s.objects.ConfigMaps, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, BinaryData: data})
	}
	return s
}

// sound writes a specification so that what it names and holds is there.
func (s surroundings) sound(text string) string {
	text = strings.NewReplacer("C=DE'", "C=DE, ST=B, O=x'", "2026-12-31T18:00:00Z", "2026-11-30T18:00:00Z",
		"type: Cosign, cosign: {keys: {inline: x", fmt.Sprintf("type: Cosign, cosign: {keys: {inline: %q", s.key), "predicateType: p, keys: {inline: x",
		fmt.Sprintf("predicateType: p, keys: {inline: %q", s.key)).Replace(text)
	switch {
	case strings.Contains(text, "type: PublicKeys"):
		text = strings.ReplaceAll(text, "inline: x", fmt.Sprintf("inline: %q", s.key))
	case strings.Contains(text, "type: SigstoreRoot"):
		text = strings.ReplaceAll(text, "inline: x", fmt.Sprintf("inline: %q", s.root))
	}
	return strings.ReplaceAll(text, "inline: x", fmt.Sprintf("inline: %q", s.authority))
}

// namedBy returns the resources whose names are in a resource: compiling all takes long.
func (s surroundings) namedBy(t *testing.T, object v1beta1.Object) []v1beta1.Object {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return slices.DeleteFunc(slices.Clone(s.objects.Resources), func(o v1beta1.Object) bool {
		return (o.GetNamespace() == "") != (object.GetNamespace() == "") || !strings.Contains(string(text), fmt.Sprintf("%q", o.GetName()))
	})
}

// says returns what compiling says of one resource among what it refers to.
func (s surroundings) says(t *testing.T, object v1beta1.Object) []string {
	o := s.objects
	o.Resources = s.namedBy(t, object)
	object.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)))
	o.Resources = append(slices.Clip(o.Resources), object)
	fetched := external.Fetched{}
	for _, sources := range resolve.Group(o).Externals() {
		for _, source := range sources {
			content := s.key
			if source.Kind == external.TUF {
				content = s.root
			}
			fetched[source] = external.Value{Content: content, FetchedAt: time.Now()}
		}
	}
	_, problems := resolve.Empty(resolve.Outside{Registry: func(registry.Access) verify.Registry { return nil },
		Revocation: func(verify.Namespace) http.RoundTripper { return nil },
		AWSSigner:  func(verify.Namespace, external.Identity) external.RevokedOf { return nil }}).Next(resolve.Group(o), fetched)
	var said []string
	for _, p := range problems {
		if p.Source == read.RefOf(object) {
			said = append(said, p.Message)
		}
	}
	return said
}

// decoded reads a resource as whatever an API server stored, without looking at its schema.
func decoded(t *testing.T, kind string, text []byte) (v1beta1.Object, error) {
	t.Helper()
	row, ok := v1beta1.KindNamed(kind)
	require.True(t, ok)
	object := row.New()
	return object, yaml.Unmarshal(text, object)
}

// edits is how many random edits are tried.
func edits() int {
	if os.Getenv("LANDWAITER_NIGHTLY") != "" {
		return 20_000
	}
	return 300
}

// Random edits of every specification that a rule accepts: compile is none the worse for what nobody
// passes on to it, and what stands for a refused resource is broken, so somebody is told.
func TestNoEditThatTheSchemaRefusesIsTakenForSound(t *testing.T) {
	s, set := newSurroundings(t), schema.Embedded()
	type base struct{ kind, text string }
	var bases []base
	for _, r := range rules() {
		for _, kind := range r.kinds {
			for _, spec := range r.accepted {
				text := s.sound(r.text(kind, spec))
				object, err := decoded(t, kind, []byte(text))
				require.NoError(t, err)
				if set.Refuses(t.Context(), object) == nil && len(s.says(t, object)) == 0 {
					bases = append(bases, base{kind, text})
				}
			}
		}
	}
	d, refused, kinds := rand.New(rand.NewPCG(1, 1)), 0, map[string]int{}
	for range edits() {
		b := bases[d.IntN(len(bases))]
		var whole map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(b.text), &whole))
		spec, ok := whole["spec"].(map[string]any)
		require.True(t, ok)
		written.Edit(d, spec)
		text, err := json.Marshal(whole)
		require.NoError(t, err)
		object, err := decoded(t, b.kind, text)
		if err != nil {
			continue
		}
		s.says(t, object)
		if why := set.Refuses(t.Context(), object); why != nil {
			refused++
			kinds[b.kind]++
			require.NotEmpty(t, s.says(t, read.Refuse(object, why)), "%s\n%v", text, why)
		}
	}
	t.Logf("of %d specifications, %d were refused once edited", len(bases), refused)
	require.Greater(t, refused, edits()/2)
	require.Greater(t, len(kinds), 8, "%v", kinds)
}
