package precedence

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/service"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// vector is a world as it was written once, with real evidence, and the verdicts that it had
// then. Resources have names in capital letters in place of what each run creates.
type vector struct {
	Resources string
	Verdicts  map[string]string // by namespace and repository
}

const (
	frozen  = "testdata/verdicts.json.gz"
	vectors = 200
)

// lab is a registry with images that are signed in some ways.
type lab struct {
	registry *fixture.Registry
	images   map[string]fixture.Image
	names    *strings.Replacer // of what each run creates
	now      time.Time
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{images: map[string]fixture.Image{}, now: time.Now().Truncate(time.Second)}
	var err error
	l.registry, err = fixture.StartRegistry(fixture.RegistryOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.registry.Close()) })
	var keys [2]*fixture.CosignKey
	for i := range keys {
		keys[i], err = fixture.NewCosignKey(fixture.ECDSAP256)
		require.NoError(t, err)
	}
	responder := fixture.NewResponder()
	t.Cleanup(responder.Close)
	authority, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	plain, err := authority.IssueSigner("plain", fixture.CertificateOptions{})
	require.NoError(t, err)
	revocable, err := authority.IssueSigner("revocable", fixture.CertificateOptions{Responder: responder.OCSP})
	require.NoError(t, err)
	sign := map[string]func(fixture.Image) error{
		"cosign": func(img fixture.Image) error {
			_, err := l.registry.SignCosign(t.Context(), img, keys[0], fixture.CosignOptions{})
			return err
		},
		"bundle": func(img fixture.Image) error {
			_, err := l.registry.SignCosignBundle(t.Context(), img, keys[0], fixture.CosignOptions{})
			return err
		},
		"sbom": func(img fixture.Image) error {
			_, err := l.registry.SignCosignBundle(t.Context(), img, keys[1], fixture.CosignOptions{PredicateType: "https://example.com"})
			return err
		},
		"plain": func(img fixture.Image) error {
			_, err := l.registry.SignNotation(t.Context(), img, plain, fixture.NotationOptions{})
			return err
		},
		"revocable": func(img fixture.Image) error {
			_, err := l.registry.SignNotation(t.Context(), img, revocable, fixture.NotationOptions{})
			return err
		},
	}
	for name, signatures := range signed() {
		l.images[name], err = l.registry.PushImage(t.Context(), name, "v1")
		require.NoError(t, err)
		for _, how := range signatures {
			require.NoError(t, sign[how](l.images[name]))
		}
	}
	var root bytes.Buffer
	for _, certificate := range authority.Chain {
		root.WriteString(pemOf(certificate.Raw))
	}
	l.names = strings.NewReplacer("HOST", l.registry.Host(), "DIGEST", l.images["app/one"].Descriptor.Digest.String(),
		"KEY-COSIGN", strconv.Quote(string(keys[0].PEM)), "KEY-SBOM", strconv.Quote(string(keys[1].PEM)), "CERTIFICATES", strconv.Quote(root.String()))
	return l
}

// signed returns how each image is signed. The names are those of random worlds.
func signed() map[string][]string {
	return map[string][]string{"app/one": {"cosign", "sbom", "plain"}, "app/two": {"bundle", "revocable"}, "app/none": nil, "app/sbom": {"sbom"}}
}

func pemOf(certificate []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// realSpec is a Verifier of the evidence that images really have.
func realSpec(d dice) func(Verifier) v1beta1.VerifierSpec {
	return func(v Verifier) v1beta1.VerifierSpec {
		spec := v1beta1.VerifierSpec{Images: v.Images, Type: v1beta1.VerifierTypeCosign}
		refs := func(name string) []v1beta1.TrustStoreRef {
			if v.Broken {
				name = "missing"
			}
			return []v1beta1.TrustStoreRef{{Name: name}}
		}
		switch v.Name {
		case "sbom":
			spec.Type, spec.Attestation = v1beta1.VerifierTypeAttestation, &v1beta1.AttestationVerifier{PredicateType: "https://example.com"}
			spec.Attestation.Keys = &v1beta1.Keys{TrustStoreRefs: refs("key-sbom"), TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}
		case "release":
			spec.Type, spec.Notation = v1beta1.VerifierTypeNotation, &v1beta1.NotationVerifier{TrustStoreRefs: refs("certificates"), TrustedIdentities: []string{"*"},
				Level:      pick(d, "", v1beta1.NotationLevelStrict, v1beta1.NotationLevelPermissive),
				Revocation: pick(d, "", "", v1beta1.RevocationModeIgnore, v1beta1.RevocationModeCheck)}
		default:
			spec.Cosign = &v1beta1.CosignVerifier{}
			spec.Cosign.Keys = &v1beta1.Keys{TrustStoreRefs: refs("key-cosign"), TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}
		}
		return spec
	}
}

// write draws a world and writes it as it is frozen.
func write(seed uint64) (string, error) {
	d := newDice(seed)
	w := readable(d.world())
	o := w.objectsWith(realSpec(d))
	var documents []string
	add := func(kind string, object any) error {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		documents = append(documents, "apiVersion: "+map[bool]string{true: "v1", false: v1beta1.GroupVersion.String()}[kind == "Namespace"]+"\nkind: "+kind+
			"\n"+string(text))
		return nil
	}
	for _, n := range o.Namespaces {
		if err := add("Namespace", n); err != nil {
			return "", err
		}
	}
	for _, object := range append(o.Resources, trusted(o)...) {
		if ref := resource.RefOf(object); ref.Name != "key" {
			if err := add(ref.Kind, object); err != nil {
				return "", err
			}
		}
	}
	slices.Sort(documents)
	text := strings.Join(documents, "---\n")
	return strings.NewReplacer(hostA, "HOST", hostB+"/app/one", "HOST/app/sbom", hostB, "HOST", images()[0].Digest, "DIGEST").Replace(text), nil
}

// readable returns a world without what cannot be read: that cannot be written.
func readable(w World) World {
	level := func(l Level) Level {
		l.Unreadable = false
		for i := range l.Verifiers {
			l.Verifiers[i].Type = cmp.Or(l.Verifiers[i].Type, "Cosign")
		}
		l.Policies = slices.DeleteFunc(l.Policies, func(p Policy) bool { return len(p.Rules) == 0 })
		if l.Store != nil && l.Store.Host == "" {
			l.Store = nil
		}
		return l
	}
	if w.Cluster = level(w.Cluster); w.Cluster.Store == nil { // without one the registry is not reached
		w.Cluster.Store = &Store{Host: hostA}
	}
	for name, l := range w.Namespaces {
		w.Namespaces[name] = level(l)
	}
	for i := range w.Tenants {
		w.Tenants[i].Unreadable = false
	}
	return w
}

// trusted returns what Verifiers trust, in every namespace and the cluster.
func trusted(o resource.Objects) (stores []v1beta1.Object) {
	for name, content := range map[string]string{"key-cosign": "KEY-COSIGN", "key-sbom": "KEY-SBOM", "certificates": "CERTIFICATES"} {
		kind := v1beta1.TrustStoreTypePublicKeys
		if name == "certificates" {
			kind = v1beta1.TrustStoreTypeCertificates
		}
		shared := &v1beta1.ClusterTrustStore{}
		shared.Name, shared.Spec.Type, shared.Spec.Source.Inline = name, kind, content
		stores = append(stores, shared)
		for _, n := range o.Namespaces {
			store := &v1beta1.TrustStore{}
			store.Namespace, store.Name, store.Spec.Type, store.Spec.Source.Inline = n.Name, name, kind, content
			stores = append(stores, store)
		}
	}
	for _, object := range o.Resources {
		if store, ok := object.(*v1beta1.ClusterStore); ok {
			store.Spec.InsecurePlainHTTP = true
		}
	}
	return stores
}

// judge returns the verdicts on a world as it is frozen.
func (l *lab) judge(t *testing.T, resources string) map[string]string {
	t.Helper()
	objects := l.read(t, resources)
	s, err := service.New(service.Options{Exceptions: resource.ExceptionLimits{BreakGlass: 24 * time.Hour}, Wait: true}, service.AnyNamespace{})
	require.NoError(t, err)
	defer s.Close()
	snapshot, _ := resolve.Empty(s.Outside()).Next(resolve.Group(objects), nil)
	engine, verdicts := verify.NewEngine(nothing{}, func() time.Time { return l.now }, verify.Options{}), map[string]string{}
	namespaces := []string{""}
	for _, n := range objects.Namespaces {
		namespaces = append(namespaces, n.Name)
	}
	for _, namespace := range namespaces {
		for name := range signed() {
			img := l.images[name].Reference
			if name == "app/one" {
				img.Tag = "" // exceptions are for its digest
			} else {
				img.Digest = ""
			}
			verdict := engine.Verify(context.Background(), snapshot.For(verify.Namespace(namespace)), img).Verdict
			text := verdict.Outcome().String()
			if verdict.Warning != "" {
				text += ", warned"
			}
			verdicts[strings.TrimSpace(namespace+" "+name)] = text
		}
	}
	return verdicts
}

// read decodes resources, with all times moved to the clock of the lab.
func (l *lab) read(t *testing.T, resources string) (o resource.Objects) {
	t.Helper()
	resources = regexp.MustCompile(`20(29|30)-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllStringFunc(l.names.Replace(resources), func(text string) string {
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return at.Add(l.now.Sub(now())).UTC().Format(time.RFC3339)
	})
	for _, document := range strings.Split(resources, "---\n") {
		var head struct{ Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(document), &head))
		if head.Kind == "Namespace" {
			var n corev1.Namespace
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &n))
			o.Namespaces = append(o.Namespaces, n)
			continue
		}
		kind, ok := v1beta1.KindNamed(head.Kind)
		require.True(t, ok, "unknown kind %s", head.Kind)
		object := kind.New()
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), object), document)
		o.Resources = append(o.Resources, object)
	}
	return o
}

// The verdicts that worlds had when they were frozen are what they are now. With
// LANDWAITER_FREEZE the file is written again.
func TestVerdictsAreWhatTheyWereWhenTheyWereFrozen(t *testing.T) {
	l := newLab(t)
	if os.Getenv("LANDWAITER_FREEZE") != "" {
		l.freeze(t)
	}
	for i, v := range thaw(t) {
		require.Equal(t, v.Verdicts, l.judge(t, v.Resources), "vector %d:\n%s", i, v.Resources)
	}
}

func (l *lab) freeze(t *testing.T) {
	t.Helper()
	var made []vector
	counts := map[string]int{}
	for seed := range uint64(vectors) {
		text, err := write(seed)
		require.NoError(t, err)
		v := vector{text, l.judge(t, text)}
		for verdict := range maps.Values(v.Verdicts) {
			counts[verdict]++
		}
		made = append(made, v)
	}
	t.Log(counts)
	var file bytes.Buffer
	writer := gzip.NewWriter(&file)
	require.NoError(t, json.NewEncoder(writer).Encode(made))
	require.NoError(t, writer.Close())
	require.NoError(t, os.WriteFile(frozen, file.Bytes(), 0o600))
}

func thaw(t *testing.T) (made []vector) {
	t.Helper()
	file, err := os.Open(frozen)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	reader, err := gzip.NewReader(file)
	require.NoError(t, err)
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &made))
	require.Len(t, made, vectors, fmt.Sprintf("%s is not whole", frozen))
	return made
}
