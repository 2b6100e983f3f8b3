package arch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/conditions"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/test/kit/rbac"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

const (
	defaults = "config/default/landwaiter.yaml" // the chart with its default values
	service  = "landwaiter"                     // the ClusterRole of Landwaiter itself
)

// manifests is what the repository has of all kinds. Whoever adds a kind to the table of
// kinds runs `go test ./test/arch` and works through what is missing.
type manifests struct {
	listed      []string // files of config/crd/kustomization.yaml
	roles       map[string]rbacv1.ClusterRole
	sampled     map[string]bool // kinds with a sample
	headings    []string        // of the pages in docs/reference
	definitions map[string]map[string]apiextensionsv1.CustomResourceDefinition
	scratch     string // an empty folder
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// documentsOf splits YAML.
func documentsOf(text string) []string { return regexp.MustCompile(`(?m)^---$`).Split(text, -1) }

// folders have the CRDs; the chart has a copy.
func folders() []string { return []string{"config/crd", "charts/landwaiter/files/crds"} }

// readManifests parses them once for all tests.
func readManifests(t *testing.T) manifests {
	t.Helper()
	if parsedManifests == nil {
		found := parseManifests(t)
		parsedManifests = &found
	}
	found := *parsedManifests
	found.scratch = t.TempDir()
	return found
}

var parsedManifests *manifests

func parseManifests(t *testing.T) manifests {
	t.Helper()
	found := manifests{roles: map[string]rbacv1.ClusterRole{}, sampled: map[string]bool{},
		definitions: map[string]map[string]apiextensionsv1.CustomResourceDefinition{}}
	for _, folder := range folders() {
		found.definitions[folder] = map[string]apiextensionsv1.CustomResourceDefinition{}
		files, err := filepath.Glob(filepath.Join(root, folder, v1beta1.Group+"_*.yaml"))
		require.NoError(t, err)
		for _, name := range files {
			var definition apiextensionsv1.CustomResourceDefinition
			require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(folder, filepath.Base(name)))), &definition), name)
			found.definitions[folder][definition.Spec.Names.Kind] = definition
		}
	}
	var kustomization struct{ Resources []string }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "config/crd/kustomization.yaml")), &kustomization))
	found.listed = kustomization.Resources
	for _, document := range documentsOf(read(t, defaults)) {
		var role rbacv1.ClusterRole
		if yaml.Unmarshal([]byte(document), &role) == nil && role.Kind == "ClusterRole" {
			found.roles[role.Name] = role
		}
	}
	samples, err := filepath.Glob(filepath.Join(written.Samples(t, filepath.Join(root, "config/samples"), time.Now()), "*.yaml"))
	require.NoError(t, err)
	for _, name := range samples {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, document := range documentsOf(string(text)) {
			var head metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal([]byte(document), &head), name)
			found.sampled[head.Kind] = true
		}
	}
	references, err := filepath.Glob(filepath.Join(root, "docs/reference/*.md"))
	require.NoError(t, err)
	for _, name := range references {
		title, _, _ := strings.Cut(read(t, filepath.Join("docs/reference", filepath.Base(name))), "\n")
		found.headings = append(found.headings, strings.TrimPrefix(title, "# "))
	}
	return found
}

// missing names everything that a kind needs and does not have.
func (found manifests) missing(ctx context.Context, kind v1beta1.Kind) []string {
	return slices.Concat(found.withoutDefinition(kind), found.withoutRights(kind), found.withoutWords(kind), found.withoutCode(ctx, kind))
}

func (found manifests) withoutDefinition(kind v1beta1.Kind) []string {
	file := v1beta1.Group + "_" + kind.Plural + ".yaml"
	var lacks []string
	if !slices.Contains(found.listed, file) {
		lacks = append(lacks, fmt.Sprintf("an entry %s in config/crd/kustomization.yaml: run make generate", file))
	}
	for _, folder := range folders() {
		definition, ok := found.definitions[folder][kind.Name]
		if !ok {
			lacks = append(lacks, fmt.Sprintf("a CRD in %s: run make generate", folder))
			continue
		}
		if definition.Spec.Names.Plural != kind.Plural || (definition.Spec.Scope == apiextensionsv1.NamespaceScoped) != kind.Namespaced {
			lacks = append(lacks, fmt.Sprintf("the plural and scope of the table in %s", folder))
		}
	}
	columns := map[string]bool{}
	for _, version := range found.definitions[folders()[0]][kind.Name].Spec.Versions {
		for _, column := range version.AdditionalPrinterColumns {
			columns[column.Name] = true
		}
	}
	for _, column := range []string{"Ready", "Age"} {
		if !columns[column] {
			lacks = append(lacks, fmt.Sprintf("the column %s: a marker +kubebuilder:printcolumn", column))
		}
	}
	return lacks
}

func (found manifests) withoutRights(kind v1beta1.Kind) []string {
	read, write := []string{"get", "list", "watch"}, []string{"create", "update", "patch", "delete"}
	type right struct {
		role, resource string
		verbs          []string
	}
	wanted := []right{
		{service, kind.Plural, read}, {service, kind.Plural + "/status", []string{"patch"}},
		{service + "-cluster-admin", kind.Plural, slices.Concat(read, write)},
	}
	if kind.Namespaced {
		wanted = append(wanted, right{service + "-rules-writer", kind.Plural, slices.Concat(read, write)}, right{service + "-reader", kind.Plural, read})
	} else if rbac.NamesTeams(kind.Name) {
		wanted = append(wanted, right{service + "-tenant-reader", kind.Plural, read})
	} else {
		wanted = append(wanted, right{service + "-cluster-reader", kind.Plural, read})
	}
	var lacks []string
	for _, w := range wanted {
		for _, verb := range w.verbs {
			if !slices.ContainsFunc(found.roles[w.role].Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, v1beta1.Group) && slices.Contains(rule.Resources, w.resource) && slices.Contains(rule.Verbs, verb)
			}) {
				lacks = append(lacks, fmt.Sprintf("the permission to %s %s in ClusterRole %s: charts/landwaiter/templates", verb, w.resource, w.role))
			}
		}
	}
	return lacks
}

func (found manifests) withoutWords(kind v1beta1.Kind) []string {
	var lacks []string
	if !found.sampled[kind.Name] {
		lacks = append(lacks, "a sample in config/samples")
	}
	if !slices.ContainsFunc(found.headings, func(heading string) bool { return slices.Contains(strings.Fields(heading), kind.Name) }) {
		lacks = append(lacks, "a page in docs/reference whose title names it")
	}
	return lacks
}

func (found manifests) withoutCode(ctx context.Context, kind v1beta1.Kind) []string {
	var lacks []string
	if err := decoded(ctx, found.scratch, kind); err != nil {
		lacks = append(lacks, fmt.Sprintf("decoding from files: pkg/resources/configdir: %v", err))
	}
	if err := compiled(kind); err != nil {
		lacks = append(lacks, fmt.Sprintf("a compile step: pkg/resources/compile: %v", err))
	}
	return lacks
}

// decoded reads a minimal object from a file in dir.
func decoded(ctx context.Context, dir string, kind v1beta1.Kind) error {
	namespace := ""
	if kind.Namespaced {
		namespace = ", namespace: team-a"
	}
	text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x%s}\nspec: {}\n", v1beta1.GroupVersion, kind.Name, namespace)
	if err := os.WriteFile(filepath.Join(dir, "object.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	objects, _, err := configdir.Load(ctx, dir)
	switch {
	case err != nil:
		return err
	case len(objects.Broken) == 1 && strings.Contains(objects.Broken[0].Err.Error(), ": spec"):
		return nil // it was decoded, and its schema needs more than an empty spec
	case len(objects.Broken) > 0:
		return objects.Broken[0].Err
	case len(objects.Resources) != 1:
		return fmt.Errorf("a file with one object gives %d", len(objects.Resources))
	}
	return nil
}

// compiled compiles a minimal object, which nothing may take for a sound one or
// overlook.
func compiled(kind v1beta1.Kind) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("%v", failure)
		}
	}()
	object := kind.New()
	object.SetName("x")
	namespace := verify.Cluster
	if kind.Namespaced {
		namespace = "team-a"
		object.SetNamespace(string(namespace))
	}
	snapshot, _ := resolve.Empty(resolve.Outside{Registry: func(registry.Access) verify.Registry { return nil }}).
		Next(resolve.Group(resource.Objects{Resources: []v1beta1.Object{object}}), nil)
	if _, ok := conditions.Reports(snapshot, namespace)[resource.RefOf(object)]; !ok {
		return fmt.Errorf("nothing says anything of %s", resource.RefOf(object))
	}
	return nil
}

func TestNothingIsMissingOfAnyKind(t *testing.T) {
	found := readManifests(t)
	for _, kind := range v1beta1.Kinds() {
		require.Empty(t, found.missing(t.Context(), kind), "%s lacks", kind.Name)
	}
	require.Len(t, found.definitions[folders()[0]], len(v1beta1.Kinds()), "there are CRDs of kinds that are not in the table")
}

// bogus is a kind of which there is nothing but its type.
type bogus struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	status v1beta1.Status
}

func (b *bogus) CommonStatus() *v1beta1.Status { return &b.status }

func (b *bogus) DeepCopyObject() runtime.Object {
	made := *b
	return &made
}

func TestEverythingThatANewKindLacksIsNamed(t *testing.T) {
	lacks := readManifests(t).
		missing(t.Context(), v1beta1.Kind{Name: "Bogus", Plural: "boguses", Namespaced: true, New: func() v1beta1.Object { return &bogus{} }})
	for _, want := range []string{
		"an entry landwaiter.dev_boguses.yaml in config/crd/kustomization.yaml",
		"a CRD in config/crd", "a CRD in charts/landwaiter/files/crds",
		"the column Ready", "the column Age",
		"the permission to get boguses in ClusterRole landwaiter:", "the permission to list boguses in ClusterRole landwaiter:",
		"the permission to watch boguses in ClusterRole landwaiter:",
		"the permission to patch boguses/status in ClusterRole landwaiter:",
		"the permission to create boguses in ClusterRole landwaiter-rules-writer", "the permission to get boguses in ClusterRole landwaiter-reader",
		"the permission to delete boguses in ClusterRole landwaiter-cluster-admin",
		"a sample in config/samples", "a page in docs/reference",
		"decoding from files", "a compile step",
	} {
		require.True(t, slices.ContainsFunc(lacks, func(text string) bool { return strings.HasPrefix(text, want) }), "not named: %s\n%s", want,
			strings.Join(lacks, "\n"))
	}
	inCluster := readManifests(t).
		missing(t.Context(), v1beta1.Kind{Name: "ClusterBogus", Plural: "clusterboguses", New: func() v1beta1.Object { return &bogus{} }})
	require.Contains(t, strings.Join(inCluster, "\n"), "the permission to get clusterboguses in ClusterRole landwaiter-cluster-reader")
	require.NotContains(t, strings.Join(inCluster, "\n"), "landwaiter-rules-writer", "a team has no permission to cluster resources")
}
