// Package written has resources for tests, as the text that their authors write.
package written

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

// Objects decodes YAML documents, strictly.
func Objects(t *testing.T, documents ...string) resource.Objects {
	t.Helper()
	var o resource.Objects
	for _, document := range strings.Split(strings.Join(documents, "\n---\n"), "\n---\n") {
		var head struct{ Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(document), &head))
		switch head.Kind {
		case "":
		case "Namespace":
			o.Namespaces = append(o.Namespaces, Decode[corev1.Namespace](t, document))
		case "Secret":
			o.Secrets = append(o.Secrets, Decode[corev1.Secret](t, document))
		case "ConfigMap":
			o.ConfigMaps = append(o.ConfigMaps, Decode[corev1.ConfigMap](t, document))
		case "ServiceAccount":
			o.ServiceAccounts = append(o.ServiceAccounts, Decode[corev1.ServiceAccount](t, document))
		default:
			kind, ok := v1beta1.KindNamed(head.Kind)
			require.True(t, ok, "unknown kind %s", head.Kind)
			resource := kind.New()
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), resource), document)
			require.NoError(t, o.Add(resource))
		}
	}
	return o
}

// Decode decodes a YAML document, strictly.
func Decode[T any](t *testing.T, document string) T {
	t.Helper()
	var v T
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), &v), document)
	return v
}

// commented matches a line of a resource that is commented out. Other comments have a space after the #.
var commented = regexp.MustCompile(`(?m)^#(---|[a-z]|  )`)

// placeholder is the time that the reader of a sample fills in.
const placeholder = "YYYY-MM-DDThh:mm:ssZ"

// Samples returns a folder with the files of another, in which the exceptions that are commented out are in
// force until the given time.
func Samples(t testing.TB, folder string, until time.Time) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	made, filled := t.TempDir(), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		filled += strings.Count(string(text), placeholder)
		whole := strings.ReplaceAll(commented.ReplaceAllString(string(text), "$1"), placeholder, until.UTC().Format(time.RFC3339))
		require.NoError(t, os.WriteFile(filepath.Join(made, filepath.Base(file)), []byte(whole), 0o600))
	}
	require.Positive(t, filled, "no sample has a time to fill in")
	return made
}

// Object writes one document; spec is YAML, one indentation deep.
func Object(kind, namespace, name, spec string) string {
	where := ""
	if namespace != "" {
		where = ", namespace: " + namespace
	}
	return fmt.Sprintf("kind: %s\nmetadata: {name: %s%s}\nspec:\n  %s", kind, name, where, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

// Namespace writes a Namespace.
func Namespace(name, uid string) string {
	return fmt.Sprintf("kind: Namespace\nmetadata: {name: %s, uid: %q}", name, uid)
}

// Secret writes a Secret with one key.
func Secret(namespace, name, key, value string) string {
	return fmt.Sprintf("kind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData:\n  %s: |\n    %s",
		name, namespace, key, strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n    "))
}

// InlineKey is a trust store's specification with a key in it.
func InlineKey(pem string) string {
	return "type: PublicKeys\nsource:\n  inline: |\n    " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n    ")
}

// CosignVerifier is the specification of a Verifier with the TrustStore keys.
const CosignVerifier = "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}"

// PolicySpec is the specification of a policy with one requirement for all images.
func PolicySpec(require string) string {
	return fmt.Sprintf("rules: [{images: [\"**\"], require: [%s]}]", require)
}

// NoRegistry is for tests that look at configurations only.
type NoRegistry struct {
	verify.Registry
	Access registry.Access // that it was made with
}

// AsRead returns objects as whoever reads them passes them on: without the specs that the schema refuses.
func AsRead(t *testing.T, o resource.Objects) resource.Objects {
	t.Helper()
	o.Resources = slices.Clone(o.Resources)
	for i, object := range o.Resources {
		if why := schema.Embedded().Refuses(t.Context(), object); why != nil {
			o.Resources[i] = resource.Refuse(object, why)
		}
	}
	return o
}

// Compiled compiles objects that reach nothing.
func Compiled(o resource.Objects) (*resolve.Snapshot, []resource.Problem) {
	return resolve.Empty(resolve.Outside{
		Registry:   func(a registry.Access) verify.Registry { return &NoRegistry{Access: a} },
		Revocation: func(verify.Namespace) http.RoundTripper { return http.DefaultTransport },
	}).Next(resolve.Group(o), nil)
}

// NewKey returns a new key of cosign.
func NewKey(t *testing.T) *fixture.CosignKey {
	t.Helper()
	key, err := fixture.NewCosignKey(fixture.ECDSAP256)
	require.NoError(t, err)
	return key
}

// Store is a Store of a namespace, or a ClusterStore, for registries.
func Store(namespace, name, registries string) string {
	kind := "Store"
	if namespace == "" {
		kind = "ClusterStore"
	}
	return Object(kind, namespace, name, "registries: ["+registries+"]")
}

// Iris is the specification of a Tenant, and Warn the field of a policy that only warns.
const (
	Iris = "homeNamespace: iris\nnamespaces: [iris-web]\nnamespacePrefix: iris-dev-"
	Warn = "enforcementAction: Warn\n"
)

// Verdict is what an engine without a cache says about an image in a namespace.
func Verdict(t *testing.T, s *resolve.Snapshot, namespace verify.Namespace, name string) policy.Verdict {
	t.Helper()
	ref, err := image.Parse(name + "@sha256:" + strings.Repeat("0", 64))
	require.NoError(t, err)
	return verify.NewEngine(nil, time.Now, verify.Options{}).Verify(t.Context(), s.For(namespace), ref).Verdict
}

// WhyUnusable is everything that a configuration says about what cannot be used.
func WhyUnusable(config *verify.Config) string {
	var why []string
	for _, tier := range config.Tiers {
		why = append(why, tier.Judge.Why())
		for _, v := range tier.Verifiers {
			why = append(why, compile.TextOf(v.Broken))
		}
		for _, s := range tier.Registry.(*NoRegistry).Access.Stores {
			why = append(why, compile.TextOf(s.Broken))
		}
	}
	return strings.TrimSpace(strings.Join(why, " "))
}

// ReportOn is the status of the resource of that name.
func ReportOn(t *testing.T, s *resolve.Snapshot, ref string) conditions.Report {
	t.Helper()
	for _, namespace := range s.Namespaces() {
		for source, report := range conditions.Reports(s, namespace) {
			if source.String() == ref {
				require.Equal(t, string(namespace), source.Namespace)
				return report
			}
		}
	}
	require.FailNow(t, "no report on "+ref)
	return conditions.Report{}
}

// Short is a condition's reason, with "!" in front of one that is False.
func Short(c conditions.Condition) string {
	if c.True {
		return string(c.Reason)
	}
	return "!" + string(c.Reason)
}
