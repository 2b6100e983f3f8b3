//go:build e2e

package v1beta1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/test/kit/cluster"
	"github.com/landwaiter/landwaiter/test/kit/suite"
)

var parts = suite.New("v1beta1")

func TestMain(m *testing.M) { os.Exit(parts.Run(m)) }

// running is a real API server with the CRDs of this package and the namespace team-a.
var running = suite.Once(parts, func(ctx context.Context, e *suite.Env) (*cluster.Cluster, error) {
	c, err := e.Cluster(ctx, cluster.Options{WithoutGatekeeper: true})
	if err != nil {
		return nil, err
	}
	definitions, err := suite.Definitions()
	if err != nil {
		return nil, err
	}
	return c, c.Apply(ctx, append(definitions, suite.Namespace("team-a"))...)
})

// apiServer returns a client of a real API server that creates nothing.
func apiServer(t *testing.T) client.Client {
	t.Helper()
	return client.WithFieldValidation(client.NewDryRunClient(running(t).Client), metav1.FieldValidationStrict)
}

// specification reads YAML.
func specification(t *testing.T, text string) map[string]any {
	t.Helper()
	var spec map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &spec), text)
	return spec
}

// resource is an object of a kind.
func resource(kind string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion("landwaiter.dev/v1beta1")
	made.SetKind(kind)
	made.SetName("x")
	if row, _ := v1beta1.KindNamed(kind); row.Namespaced {
		made.SetNamespace("team-a")
	}
	made.Object["spec"] = spec
	return made
}

// submit returns what the API server says of a resource with a specification.
func submit(ctx context.Context, server client.Client, kind string, spec map[string]any) error {
	return server.Create(ctx, resource(kind, spec))
}

// complete are valid specifications that have, together with those of rules,
// every field of a kind.
func complete() map[string][]string {
	const (
		refs       = "trustStoreRefs: [{name: k}, {kind: ClusterTrustStore, name: k}]"
		anyKeys    = "keys: {" + refs + ", rootTrustStoreRef: {kind: ClusterTrustStore, name: r}}"
		identities = "keyless: {identities: [{issuerRegExp: i, subjectRegExp: s}, {issuer: i, subject: s}, {issuer: i, subjectRegExp: s, insecureAllowAnySubject: " +
			"true}, {insecureIgnoreIssuer: true, subject: s}], insecureIgnoreTransparencyLog: true, insecureIgnoreSCT: true, " +
			"thresholds: {transparencyLogs: 1, signedCertificateTimestamps: 1, timestamps: 1}, expression: 'true', rootTrustStoreRef: {kind: " +
			"ClusterTrustStore, name: r}}"
	)
	const people = "{kind: Group, name: devs}, {kind: ServiceAccount, name: s, namespace: b}"
	return map[string][]string{
		"Verifier": {
			"{images: [r.example.com/a], type: Cosign, cosign: {" + anyKeys + ", annotations: {a: b}, matchRepository: true}}",
			"{type: Cosign, cosign: {" + identities + "}}",
			"{type: Notation, notation: {" + refs + ", trustedIdentities: ['*'], level: Strict, revocation: Ignore, " +
				"timestamps: {" + refs + ", verifyTimestamp: Always}, overrides: {expiry: Log, authenticTimestamp: Log, revocation: Log}}}",
			fmt.Sprintf(notationOf, "signingAuthorities: {"+refs+"}, revocation: Check, revocationListTrustStoreRefs: [{kind: ClusterTrustStore, name: l}]"),
			"{type: Notation, notation: {signingAuthorities: {" + refs + "}, awsSigner: {profiles: ['" + profile + "'], revocation: Check}}}",
			"{type: Attestation, attestation: {predicateType: p, " + anyKeys + ", expression: 'true'}}",
			"{type: Attestation, attestation: {predicateType: p, " + identities + "}}",
		},
		"TrustStore": {"{type: PublicKeys, hash: SHA256, source: {inline: x}}",
			"{type: PublicKeys, source: {kms: {uri: 'gcpkms://k', " + account(asEmail) + "}}}",
			"{type: SigstoreRoot, source: {tuf: {mirror: 'https://m', root: '{}', caBundle: {inline: x}}}}"},
		"ClusterTrustStore": {"{type: PublicKeys, source: {kms: {uri: 'awskms:///k'}}}"},
		"Store": {"{registries: [r.example.com], mirrors: [{host: m.example.com, path: 'hub/{repository}', fallback: Origin}], evidence: " +
			"{repositories: [{repository: 'e.example.com/{repository}'}], exclusive: true}}"},
		"ClusterStore": {"{registries: [r.example.com], insecurePlainHTTP: true}", "{registries: [r.example.com], identity: {provider: ECR}}"},
		"VerificationPolicy": {"{contact: c, defaultAction: Deny, enforcementAction: Warn, tags: Pin, rules: [{images: [r.example.com/a], action: Require, " +
			"index: Itself, require: [{anyOf: [v], atLeast: 2}, {allOf: [v]}, {types: [Cosign]}]}]}"},
		"ClusterVerificationPolicy": {"{scope: Mandatory}"},
		"ClusterQuota":              {"{namespaces: [a], tenants: [iris], maxInFlight: 32, registryRequestsPerSecond: 1, cacheSharePercent: 1}"},
		"Exception":                 {"{" + terms + ", ticket: t, images: [r.example.com/a]}"},
		"ClusterException":          {"{" + terms + ", ticket: t, images: [r.example.com/a], namespaces: [b], overrideMandatory: true}"},
		"Tenant": {"{homeNamespace: iris, contact: c, namespaces: [b], namespacePrefix: iris-, adopt: true, namespaceReclaimPolicy: Retain, " +
			"access: {admins: [" + people + "], developers: [" + people + "], viewers: [" + people + "]}, " +
			"reconciler: {serviceAccount: s, clusterRole: r, createNamespaces: true, path: p, variables: {REGION: eu}, variablesFrom: [{secretRef: {name: app}, " +
			"optional: true}], " +
			"source: {url: 'https://git.example.com/iris', branch: main, interval: 1m30s, secretRef: {name: git}, exclude: README.md}}, " +
			"isolation: {podSecurity: Baseline, network: Open, quota: {pods: 50, limits.memory: 1Gi}, registries: ['registry.example.com/iris/']}, " +
			"verification: {policyLevel: Tenant}}"},
	}
}

func specifications(t *testing.T, kind string) []map[string]any {
	t.Helper()
	texts := slices.Clone(complete()[kind])
	if kind != v1beta1.KindClusterException { // it says for which namespaces
		texts = append(texts, complete()[strings.TrimPrefix(kind, "Cluster")]...)
	}
	for _, r := range rules() {
		if slices.Contains(r.kinds, kind) && !r.names {
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
		if r.names || r.before != "" {
			continue // see TestTenantRulesRefuseWithTheFix
		}
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

func TestAPIServerAppliesDefaults(t *testing.T) {
	server := apiServer(t)
	for kind, c := range crds(t) {
		for _, spec := range specifications(t, kind) {
			made := resource(kind, spec)
			want := made.DeepCopy()
			require.NoError(t, server.Create(t.Context(), made), "%s %v", kind, spec)
			defaulting.Default(want.Object, c.structural)
			expected, err := json.Marshal(want.Object["spec"])
			require.NoError(t, err)
			actual, err := json.Marshal(made.Object["spec"])
			require.NoError(t, err)
			require.JSONEq(t, string(expected), string(actual), "%s %v", kind, spec)
		}
	}
}

// table asks for a kind as kubectl get does.
func table(t *testing.T, running *cluster.Cluster, kind v1beta1.Kind) metav1.Table {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(running.Config)
	require.NoError(t, err)
	path := "/apis/" + v1beta1.GroupVersion.String() + "/"
	if kind.Namespaced {
		path += "namespaces/team-a/"
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, running.Config.Host+path+kind.Plural, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	response, err := httpClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode, kind.Name)
	var found metav1.Table
	require.NoError(t, json.NewDecoder(response.Body).Decode(&found))
	return found
}

// Right after a resource is created nobody has written its status yet.
func TestAPIServerShowsNoBlankColumn(t *testing.T) {
	running := running(t)
	for _, kind := range v1beta1.Kinds() {
		made := resource(kind.Name, specification(t, minimal()[kind.Name]))
		require.NoError(t, running.Client.Create(t.Context(), made), kind.Name)
		t.Cleanup(func() { require.NoError(t, running.Client.Delete(context.WithoutCancel(t.Context()), made)) })
		read := resource(kind.Name, nil)
		require.NoError(t, running.Client.Get(t.Context(), client.ObjectKeyFromObject(read), read))
		pending(t, read.Object)
		found := table(t, running, kind)
		require.Len(t, found.Rows, 1, kind.Name)
		cells := map[string]string{}
		for i, column := range found.ColumnDefinitions {
			cell := found.Rows[0].Cells[i]
			if column.Name == v1beta1.ConditionProvisioned || column.Name == "Scope" || column.Name == "Review" {
				continue // blank says that no operator provisions, Fallback, and that nothing needs a review
			}
			require.NotNil(t, cell, "%s: %s", kind.Name, column.Name)
			cells[column.Name] = strings.TrimSpace(fmt.Sprint(cell))
			require.NotContains(t, []string{"", "<none>", "<unknown>"}, cells[column.Name], "%s: the column %s is blank", kind.Name, column.Name)
		}
		require.Equal(t, "x", cells["Name"])
		require.Equal(t, "Unknown", cells["Ready"])
		require.Equal(t, "Unknown", cells["Effective"])
		require.Equal(t, "Pending", cells["Reason"])
		require.Contains(t, cells, "Age")
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
			if refused := func(field string) bool {
				return path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"[")
			}; slices.ContainsFunc(unusable()[kind], refused) {
				return
			}
			require.True(t, visited[path], "no valid specification of %s has the field %s", kind, path)
		})
	}
	t.Logf("%d wrong fields", asked)
}

// unusable are the fields that a kind has from a type that it shares, with its Cluster twin or
// with other identities, and that a rule refuses whatever they say.
func unusable() map[string][]string {
	signer := []string{"spec.awsSigner.serviceAccount.azure", "spec.awsSigner.serviceAccount.google"}
	return map[string][]string{"TrustStore": signer, "ClusterTrustStore": signer, "Store": {"spec.proxy", "spec.insecurePlainHTTP"},
		"VerificationPolicy": {"spec.scope"}, "Exception": {"spec.namespaces", "spec.overrideMandatory", "spec.delegate"}}
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
	if s.Pattern != "" {
		add("of another form", ", ")
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
