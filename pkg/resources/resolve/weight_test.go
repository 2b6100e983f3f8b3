package resolve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/memory"
	"github.com/landwaiter/landwaiter/test/kit/sigstore"
)

func pemOf(t testing.TB, kind string, der []byte, err error) string {
	t.Helper()
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func rsaKeys(t testing.TB, n, bits int) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	return strings.Repeat(pemOf(t, "PUBLIC KEY", der, err), n)
}

func ecKeys(t testing.TB, n int) string {
	t.Helper()
	all := ""
	for range n {
		key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		require.NoError(t, err)
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		all += pemOf(t, "PUBLIC KEY", der, err)
	}
	return all
}

// certificates are n authorities, each with names and extensions of about a size.
func certificates(t testing.TB, n, size int) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	for i := range size / 8 {
		template.URIs = append(template.URIs, &url.URL{Scheme: "a", Host: fmt.Sprint(i)})
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return strings.Repeat(pemOf(t, "CERTIFICATE", der, err), n)
}

func sigstoreRoot(t testing.TB) string {
	t.Helper()
	instance, err := sigstore.New()
	require.NoError(t, err)
	text, err := instance.TrustedRoot()
	require.NoError(t, err)
	return string(text)
}

func trustStoreOf(name string, kind v1beta1.TrustStoreType, inline string) *v1beta1.TrustStore {
	t := &v1beta1.TrustStore{}
	t.Namespace, t.Name = "team-a", name
	t.Spec.Type, t.Spec.Source.Inline = kind, inline
	return t
}

func verifierOf(i int, spec v1beta1.VerifierSpec) *v1beta1.Verifier {
	v := &v1beta1.Verifier{Spec: spec}
	v.Namespace, v.Name = "team-a", fmt.Sprintf("v%03d", i)
	return v
}

func keyless(expression string, identities ...v1beta1.Identity) v1beta1.VerifierSpec {
	return v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign, Cosign: &v1beta1.CosignVerifier{Signers: v1beta1.Signers{
		Keyless: &v1beta1.Keyless{Identities: identities, Expression: expression,
			TransparencyLog: v1beta1.TransparencyLog{RootTrustStoreRef: &v1beta1.TrustStoreRef{Name: "root"}}}}}}
}

func repeated(n int, of func(i int) v1beta1.Object) []v1beta1.Object {
	all := make([]v1beta1.Object, n)
	for i := range all {
		all[i] = of(i)
	}
	return all
}

// shapes are namespaces that keep much for what they write.
func shapes(t testing.TB) map[string][]v1beta1.Object {
	refs := func(names ...string) []v1beta1.TrustStoreRef {
		return compile.MapSlice(names, func(name string) v1beta1.TrustStoreRef { return v1beta1.TrustStoreRef{Name: name} })
	}
	keyed := func(i int) v1beta1.Object {
		return verifierOf(i,
			v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign,
				Cosign: &v1beta1.CosignVerifier{
					Signers: v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: refs("keys"),
						TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}}})
	}
	holding := func(i int, log v1beta1.TransparencyLog) v1beta1.Object {
		return verifierOf(i,
			v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeCosign,
				Cosign: &v1beta1.CosignVerifier{Signers: v1beta1.Signers{Keys: &v1beta1.Keys{Inline: ecKeys(t, 16), TransparencyLog: log}}}})
	}
	anchored := func(i int) v1beta1.Object {
		return verifierOf(i,
			v1beta1.VerifierSpec{Type: v1beta1.VerifierTypeNotation,
				Notation: &v1beta1.NotationVerifier{TrustStoreRefs: refs("authorities"), TrustedIdentities: []string{"*"}}})
	}
	root := trustStoreOf("root", v1beta1.TrustStoreTypeSigstoreRoot, sigstoreRoot(t))
	identity := v1beta1.Identity{Issuer: "https://x", SubjectRegExp: "(?:a?b?c?){100}"}
	long := v1beta1.Identity{IssuerRegExp: "^" + strings.Repeat("a", 1000), SubjectRegExp: "^" + strings.Repeat("a", 1000)}
	pattern := "r.io/" + strings.Repeat("a/", 30) + "*"
	patterns := strings.Split(strings.TrimSuffix(strings.Repeat(pattern+" ", 64), " "), " ")
	expression := strings.TrimSuffix(strings.Repeat("findings.all(x,x)||", 60), "||")
	named := func(i int, rules ...v1beta1.PolicyRule) v1beta1.Object {
		p := &v1beta1.VerificationPolicy{}
		p.Namespace, p.Name, p.Spec.Rules = "team-a", fmt.Sprintf("p%03d", i), rules
		return p
	}
	return map[string][]v1beta1.Object{
		"RSA keys": repeated(10, func(i int) v1beta1.Object {
			return trustStoreOf(fmt.Sprint("k", i), v1beta1.TrustStoreTypePublicKeys, rsaKeys(t, 16, 2048))
		}),
		"elliptic keys": repeated(60, func(i int) v1beta1.Object {
			return trustStoreOf(fmt.Sprint("k", i), v1beta1.TrustStoreTypePublicKeys, ecKeys(t, 16))
		}),
		"keys in use": append(repeated(60, keyed), trustStoreOf("keys", v1beta1.TrustStoreTypePublicKeys, ecKeys(t, 16))),
		"keys of Verifiers": repeated(20, func(i int) v1beta1.Object {
			return holding(i, v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true})
		}),
		"logged keys": append(repeated(20, func(i int) v1beta1.Object {
			return holding(i, v1beta1.TransparencyLog{RootTrustStoreRef: &refs("root")[0]})
		}), root),
		"certificates": repeated(10, func(i int) v1beta1.Object {
			return trustStoreOf(fmt.Sprint("c", i), v1beta1.TrustStoreTypeCertificates, certificates(t, 60, 0))
		}),
		"long lists in certificates": repeated(6, func(i int) v1beta1.Object {
			return trustStoreOf(fmt.Sprint("c", i), v1beta1.TrustStoreTypeCertificates, certificates(t, 4, 8000))
		}),
		"authorities in use": append(repeated(40, anchored), trustStoreOf("authorities", v1beta1.TrustStoreTypeCertificates, certificates(t, 20, 0))),
		"Sigstore roots": repeated(20, func(i int) v1beta1.Object {
			return trustStoreOf(fmt.Sprint("r", i), v1beta1.TrustStoreTypeSigstoreRoot, sigstoreRoot(t))
		}),
		"identities":          append(repeated(30, func(i int) v1beta1.Object { return verifierOf(i, keyless("", identity)) }), root),
		"anchored identities": append(repeated(6, func(i int) v1beta1.Object { return verifierOf(i, keyless("", long, long)) }), root),
		"claims":              append(repeated(12, func(i int) v1beta1.Object { return verifierOf(i, keyless("issuer.matches('^(?:a{300})$')", identity)) }), root),
		"expressions": repeated(2, func(i int) v1beta1.Object {
			return named(i,
				v1beta1.PolicyRule{Images: []string{"**"}, Require: []v1beta1.Requirement{{Expression: expression}, {Expression: expression}, {Expression: expression}}})
		}),
		"patterns": repeated(20, func(i int) v1beta1.Object {
			return named(i, v1beta1.PolicyRule{Images: patterns, Action: v1beta1.RuleActionDeny})
		}),
		"rules": repeated(10, func(i int) v1beta1.Object {
			rule := v1beta1.PolicyRule{Images: []string{"r.io/a"}}
			for range 16 {
				rule.Require = append(rule.Require, v1beta1.Requirement{AnyOf: []string{"a"}})
			}
			return named(i, rule, rule, rule, rule, rule, rule, rule, rule)
		}),
		"nothing": repeated(256, func(i int) v1beta1.Object { return named(i) }),
	}
}

func outsideOfTests() Outside {
	return Outside{Registry: func(registry.Access) verify.Registry { return nil }, Revocation: func(verify.Namespace) http.RoundTripper { return nil }}
}

func inTeamA(list []v1beta1.Object) resource.Objects {
	return resource.Objects{Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "1"}}}, Resources: list}
}

// heavier is how much more resources weigh at least than their specs take in memory: what may
// be compiled is always kept.
const heavier = 2

// draws is how many random specs are weighed.
func draws() int {
	if os.Getenv("LANDWAITER_NIGHTLY") != "" {
		return 2000
	}
	return 200
}

func TestAPolicyWeighsMoreThanItsSpecTakes(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2)) // the same each time
	list := func(most, length int) []string {
		all := make([]string, random.IntN(most+1))
		for i := range all {
			all[i] = strings.Repeat("x", random.IntN(length+1))
		}
		return all
	}
	for range draws() {
		p := &v1beta1.VerificationPolicy{}
		for range random.IntN(65) {
			rule := v1beta1.PolicyRule{Images: list(64, 512)}
			for range random.IntN(17) {
				rule.Require = append(rule.Require,
					v1beta1.Requirement{AnyOf: list(16, 253), AllOf: list(16, 253), Types: make([]v1beta1.VerifierType, random.IntN(4)),
						Expression: strings.Repeat("x", random.IntN(100))})
			}
			p.Spec.Rules = append(p.Spec.Rules, rule)
		}
		require.LessOrEqual(t, resource.Size(p)*heavier, policyOf(p.Spec))
	}
}

// What is within the limits of a Tenant once it is compiled is within those of its specs.
func TestATenantWhoseNamespacesAreCompiledHasRoomForTheirSpecs(t *testing.T) {
	home, others := resource.Specs.Limits()
	require.GreaterOrEqual(t, home*heavier, maxWeight)
	require.GreaterOrEqual(t, (home+others)*heavier, maxAccountWeight)
	home, others = resource.Exceptions.Limits()
	require.GreaterOrEqual(t, home, maxExceptionWeight)
	require.GreaterOrEqual(t, home+others, maxAccountExceptionWeight)
	random := mathrand.New(mathrand.NewPCG(1, 2))
	texts := func() []string {
		all := make([]string, random.IntN(65))
		for i := range all {
			all[i] = strings.Repeat("x", random.IntN(513))
		}
		return all
	}
	for range draws() {
		x := &v1beta1.Exception{}
		x.Spec.Until, x.Spec.Images = "2026-12-31T18:00:00Z", texts()
		x.Spec.Reason, x.Spec.Ticket = strings.Repeat("x", 2048), strings.Repeat("x", 1024) // of wide characters
		require.LessOrEqual(t, resource.Size(x), weightOf(x.Spec))
	}
}

// The weights hold against memory, for every shape that weighs little and keeps much.
func TestACompiledNamespaceKeepsNoMoreThanItWeighs(t *testing.T) {
	for name, list := range shapes(t) {
		o := inTeamA(list)
		s, problems := Empty(outsideOfTests()).Next(Group(resource.Objects{}), nil)
		require.Empty(t, problems)
		level := Group(o)["team-a"]
		weighed := &scale{uses: map[string]use{}}
		require.NoError(t, weighed.load(level), name)
		written := 0
		for _, object := range list {
			written += resource.Size(object)
		}
		require.LessOrEqual(t, written, weighed.total/heavier, "%s: what may be compiled is kept", name)
		before := memory.InUse()
		began := time.Now()
		next, problems := s.Next(Group(o).Only("team-a"), nil)
		took := time.Since(began)
		kept := memory.InUse() - before
		runtime.KeepAlive(next)
		for _, p := range problems {
			require.Contains(t, p.Message, "which does not exist", "%s: what is refused keeps nothing", name)
		}
		t.Logf("%-28s keeps %5d KiB, weighs %5d KiB, %s to compile", name, kept>>10, weighed.total>>10, took.Round(time.Millisecond))
		require.LessOrEqual(t, kept, weighed.total, name)
		runtime.KeepAlive(o)
	}
}
