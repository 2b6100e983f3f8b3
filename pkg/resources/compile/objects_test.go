package compile_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/compile"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// objects decodes YAML documents, strictly.
func objects(t *testing.T, documents ...string) resource.Objects {
	t.Helper()
	var o resource.Objects
	for _, document := range strings.Split(strings.Join(documents, "\n---\n"), "\n---\n") {
		var head struct{ Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(document), &head))
		switch head.Kind {
		case "":
		case "Namespace":
			o.Namespaces = append(o.Namespaces, decode[corev1.Namespace](t, document))
		case "Secret":
			o.Secrets = append(o.Secrets, decode[corev1.Secret](t, document))
		case "ConfigMap":
			o.ConfigMaps = append(o.ConfigMaps, decode[corev1.ConfigMap](t, document))
		case "ServiceAccount":
			o.ServiceAccounts = append(o.ServiceAccounts, decode[corev1.ServiceAccount](t, document))
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

func decode[T any](t *testing.T, document string) T {
	t.Helper()
	var v T
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), &v), document)
	return v
}

// object writes one document; spec is YAML, one indentation deep.
func object(kind, namespace, name, spec string) string {
	where := ""
	if namespace != "" {
		where = ", namespace: " + namespace
	}
	return fmt.Sprintf("kind: %s\nmetadata: {name: %s%s}\nspec:\n  %s", kind, name, where, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

func namespace(name, uid string) string {
	return fmt.Sprintf("kind: Namespace\nmetadata: {name: %s, uid: %q}", name, uid)
}

func secret(namespace, name, key, value string) string {
	return fmt.Sprintf("kind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData:\n  %s: |\n    %s",
		name, namespace, key, strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n    "))
}

// inlineKey is a trust store's specification with a key in it.
func inlineKey(pem string) string {
	return "type: PublicKeys\nsource:\n  inline: |\n    " + strings.ReplaceAll(strings.TrimSpace(pem), "\n", "\n    ")
}

const cosignVerifier = "type: Cosign\ncosign: {keys: {trustStoreRefs: [{name: keys}], insecureIgnoreTransparencyLog: true}}"

func policySpec(require string) string {
	return fmt.Sprintf("rules: [{images: [\"**\"], require: [%s]}]", require)
}

// noRegistry is for tests that look at configurations only.
type noRegistry struct {
	verify.Registry
	access registry.Access
}

func compiled(o resource.Objects) (*compile.Snapshot, []resource.Problem) {
	return compile.New(o, nil, compile.Outside{
		Registry:   func(a registry.Access) verify.Registry { return &noRegistry{access: a} },
		Revocation: func(verify.Namespace) http.RoundTripper { return http.DefaultTransport },
	})
}
