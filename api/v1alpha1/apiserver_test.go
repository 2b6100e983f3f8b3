//go:build e2e

package v1alpha1_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/test/kit/cluster"
)

// apiServer starts a real one with the definitions of this package.
func apiServer(t *testing.T) client.Client {
	t.Helper()
	tools := os.Getenv("LANDWAITER_CLUSTER_TOOLS")
	require.NotEmpty(t, tools, "LANDWAITER_CLUSTER_TOOLS is not set; run make e2e")
	running, err := cluster.Start(t.Context(), cluster.Options{Tools: tools, Dir: t.TempDir(), WithoutGatekeeper: true})
	require.NoError(t, err)
	t.Cleanup(running.Stop)
	for _, name := range kustomization(t) {
		objects, err := cluster.DecodeFile(filepath.Join(crdDir, name))
		require.NoError(t, err)
		require.NoError(t, running.Apply(t.Context(), objects...))
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team-a"}}}
	require.NoError(t, running.Apply(t.Context(), namespace))
	return client.WithFieldValidation(client.NewDryRunClient(running.Client), metav1.FieldValidationStrict)
}

// specification reads YAML.
func specification(t *testing.T, text string) map[string]any {
	t.Helper()
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &spec), text)
	return spec
}

// submit returns what the API server says of a resource with a specification.
func submit(ctx context.Context, server client.Client, kind string, spec map[string]any) error {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion("landwaiter.dev/v1alpha1")
	made.SetKind(kind)
	made.SetName("x")
	if !strings.HasPrefix(kind, "Cluster") {
		made.SetNamespace("team-a")
	}
	made.Object["spec"] = spec
	return server.Create(ctx, made)
}

// complete are valid specifications that have, together with those of rules,
// every field of a kind.
func complete() map[string][]string {
	const identities = "identities: [{issuerRegExp: i, subjectRegExp: s}, {issuer: i, subject: s}], signedCertificateTimestamps: Ignore, " +
		"thresholds: {transparencyLogs: 1, signedCertificateTimestamps: 1, timestamps: 1}, expression: 'true', trustStore: "
	return map[string][]string{
		"Verifier": {
			"{images: [a], cosign: {keys: [{trustStore: k}, {kind: TrustStore, name: k}], transparencyLog: Ignore, annotations: {a: b}, matchRepository: true}}",
			"{cosign: {keyless: {" + identities + "{trustStore: r}}}}", "{cosign: {keyless: {" + identities + "{kind: TrustStore, name: r}}}}",
			"{notation: {trustStores: [{trustStore: k}, {kind: ClusterTrustStore, name: k}], trustedIdentities: ['*'], level: Strict, revocation: Ignore, " +
				"timestampAuthorities: [{trustStore: t}, {kind: TrustStore, name: t}], verifyTimestamp: Always, overrides: {expiry: Log, authenticTimestamp: Log, revocation: Log}}}",
			"{attestation: {predicateType: p, keys: [{trustStore: k}, {kind: TrustStore, name: k}], transparencyLog: Ignore, expression: 'true'}}",
			"{attestation: {predicateType: p, keyless: {" + identities + "{trustStore: r}}}}", "{attestation: {predicateType: p, keyless: {" + identities + "{kind: TrustStore, name: r}}}}",
		},
		"TrustStore":                {"{type: PublicKeys, hash: SHA256, source: {inline: x}}", "{type: SigstoreRoot, source: {tuf: {mirror: 'https://m', root: '{}', caBundle: x}}}"},
		"ClusterTrustStore":         {"{type: PublicKeys, source: {kms: {uri: 'awskms:///k'}}}"},
		"ClusterStore":              {"{registries: [r], insecurePlainHTTP: true}"},
		"VerificationPolicy":        {"{default: Deny, mode: Warn, rules: [{images: [a], index: Itself, require: [{anyOf: [v], atLeast: 2}, {allOf: [v]}, {types: [Cosign]}]}]}"},
		"ClusterVerificationPolicy": {"{enforcement: Floor}"},
	}
}

func specifications(t *testing.T, kind string) []map[string]any {
	t.Helper()
	texts := slices.Concat(complete()[kind], complete()[strings.TrimPrefix(kind, "Cluster")])
	for _, r := range rules() {
		if slices.Contains(r.kinds, kind) {
			texts = append(texts, r.accepted...)
		}
	}
	slices.Sort(texts)
	var all []map[string]any
	for _, text := range slices.Compact(texts) {
		all = append(all, specification(t, text))
	}
	return all
}

func TestAPIServerHoldsEveryRule(t *testing.T) {
	server := apiServer(t)
	for _, r := range rules() {
		for _, kind := range r.kinds {
			for _, spec := range r.accepted {
				require.NoError(t, submit(t.Context(), server, kind, specification(t, spec)), "%s %s", kind, spec)
			}
			for _, spec := range r.rejected {
				require.ErrorContains(t, submit(t.Context(), server, kind, specification(t, spec)), r.message, "%s %s", kind, spec)
			}
		}
	}
}

// Every field that there is gets every value that its schema forbids, one at a
// time, in a specification that is valid otherwise.
func TestAPIServerRejectsEveryWrongFieldByItsName(t *testing.T) {
	server := apiServer(t)
	asked := 0
	for kind, c := range crds(t) {
		spec := c.schema.Properties["spec"]
		visited, tried := map[string]bool{}, map[string]bool{}
		for _, valid := range specifications(t, kind) {
			m := &mutator{visited: visited, root: valid}
			m.value("spec", "spec", valid, &spec, nil)
			for _, change := range m.changes {
				if id := change.schemaPath + " " + change.what; tried[id] {
					continue
				} else {
					tried[id] = true
				}
				err := submit(t.Context(), server, kind, change.spec)
				require.ErrorContains(t, err, change.names, "%s %s: %s\n%v", kind, change.names, change.what, change.spec)
				asked++
			}
		}
		walk("spec", &spec, func(path string, _ *apiextensions.JSONSchemaProps) {
			forbidden := !strings.HasPrefix(kind, "Cluster") && strings.HasSuffix(path, ".namespace") // by a rule
			require.True(t, visited[path] || forbidden, "no valid specification of %s has the field %s", kind, path)
		})
	}
	t.Logf("%d wrong fields", asked)
}

// change is a specification with one thing wrong, which an error must name.
type change struct {
	what, names, schemaPath string
	spec                    map[string]any
}

// mutator makes changes of every value in a specification.
type mutator struct {
	root    map[string]any
	visited map[string]bool // paths in the schema
	changes []change
}

// with returns the specification with another value at steps; remove takes it out.
func (m *mutator) with(steps []any, value any, remove bool) map[string]any {
	copied := (&unstructured.Unstructured{Object: map[string]any{"spec": m.root}}).DeepCopy().Object
	at := copied["spec"]
	for i, step := range steps {
		last := i == len(steps)-1
		switch container := at.(type) {
		case map[string]any:
			name := fmt.Sprint(step)
			if last && remove {
				delete(container, name)
			} else if last {
				container[name] = value
			}
			at = container[name]
		case []any:
			index, _ := step.(int)
			if last {
				container[index] = value
			}
			at = container[index]
		}
	}
	spec, _ := copied["spec"].(map[string]any)
	return spec
}

func (m *mutator) add(what, names, schemaPath string, steps []any, value any) {
	if len(steps) > 0 {
		m.changes = append(m.changes, change{what: what, names: names, schemaPath: schemaPath, spec: m.with(steps, value, false)})
	}
}

// value changes one value, at path of the object and schemaPath of its schema.
func (m *mutator) value(path, schemaPath string, value any, s *apiextensions.JSONSchemaProps, steps []any) {
	m.visited[schemaPath] = true
	add := func(what string, wrong any) { m.add(what, path, schemaPath, steps, wrong) }
	if s.Type == "string" {
		add("wrong type", map[string]any{"x": "y"})
	} else {
		add("wrong type", "text")
	}
	if len(s.Enum) > 0 {
		add("not in the enumeration", "Bogus")
	}
	if s.MaxLength != nil {
		add("too long", strings.Repeat("x", int(*s.MaxLength)+1))
	}
	if s.MinLength != nil && *s.MinLength > 0 {
		add("too short", "")
	}
	if s.Minimum != nil {
		add("too small", int64(*s.Minimum)-1)
	}
	if s.Maximum != nil {
		add("too large", int64(*s.Maximum)+1)
	}
	switch value := value.(type) {
	case []any:
		m.list(path, schemaPath, value, s, steps)
	case map[string]any:
		m.object(path, schemaPath, value, s, steps)
	}
}

func (m *mutator) list(path, schemaPath string, list []any, s *apiextensions.JSONSchemaProps, steps []any) {
	if s.MinItems != nil && *s.MinItems > 0 {
		m.add("too few", path, schemaPath, steps, []any{})
	}
	if s.MaxItems != nil && len(list) > 0 {
		long := make([]any, *s.MaxItems+1)
		for i := range long {
			if long[i] = list[0]; s.Items.Schema.Type == "string" {
				long[i] = fmt.Sprintf("x%d", i)
			}
		}
		m.add("too many", path, schemaPath, steps, long)
	}
	for i, item := range list {
		m.value(fmt.Sprintf("%s[%d]", path, i), schemaPath+"[]", item, s.Items.Schema, append(slices.Clone(steps), i))
	}
}

func (m *mutator) object(path, schemaPath string, object map[string]any, s *apiextensions.JSONSchemaProps, steps []any) {
	for _, name := range s.Required {
		m.changes = append(m.changes, change{what: "without " + name, names: path + "." + name, schemaPath: schemaPath,
			spec: m.with(append(slices.Clone(steps), name), nil, true)})
	}
	if s.MaxProperties != nil {
		many := map[string]any{}
		for i := range *s.MaxProperties + 1 {
			many[fmt.Sprintf("x%d", i)] = "y"
		}
		m.add("too many", path, schemaPath, steps, many)
	}
	if len(s.Properties) > 0 {
		m.changes = append(m.changes, change{what: "unknown field", names: `unknown field "` + path + ".bogus", schemaPath: schemaPath,
			spec: m.with(append(slices.Clone(steps), "bogus"), "x", false)})
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner := append(slices.Clone(steps), name)
		if property, ok := s.Properties[name]; ok {
			m.value(path+"."+name, schemaPath+"."+name, object[name], &property, inner)
		} else if s.AdditionalProperties != nil {
			m.value(path+"."+name, schemaPath+".*", object[name], s.AdditionalProperties.Schema, inner)
		}
	}
}
